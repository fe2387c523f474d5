/* BRISC of mail: jobs in turn to the three others. */
#include "mail/mail.h"

int main(void) {
    for (uint32_t i = 0; i < NJOBS; i += 3) {
        for (uint32_t n = 0; n < 3; n++) {
            send(1 + n, (uint32_t)&JOBS[i + n]);
        }
        for (uint32_t n = 0; n < 3; n++) {
            store(ANSWERS + 4 * (i + n), receive(1 + n));
        }
    }
    for (uint32_t n = 0; n < 3; n++) {
        send(1 + n, STOP);
    }
    done_words[0] = DONE_BRISC;
    return 0;
}
