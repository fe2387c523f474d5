/* T1 of mail. */
#include "mail/worker.h"

int main(void) {
    work();
    done_words[1 + 1] = DONE_TRISC(1);
    return 0;
}
