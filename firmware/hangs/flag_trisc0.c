/* TRISC0 of "flag": sets the word that BRISC waits for. */
#include "lib/done.h"

__attribute__((noinline)) static void report_done(void) { done_words[1] = DONE_TRISC(0); }

int main(void) {
    report_done();
    return 0;
}
