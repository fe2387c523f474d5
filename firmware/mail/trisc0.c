/* T0 of mail. */
#include "mail/worker.h"

int main(void) {
    work();
    done_words[1 + 0] = DONE_TRISC(0);
    return 0;
}
