/* T2 of mail. */
#include "mail/worker.h"

int main(void) {
    work();
    done_words[1 + 2] = DONE_TRISC(2);
    return 0;
}
