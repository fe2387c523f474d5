/* BRISC of "flag": waits for a word that TRISC0 would set, but never releases TRISC0. */
#include "lib/done.h"
#include "lib/tensix.h"

__attribute__((noinline)) static void wait_for(volatile uint32_t *word, uint32_t wanted) {
    while (*word != wanted) {
        fence();
    }
}

int main(void) {
    wait_for(&done_words[1], DONE_TRISC(0));
    done_words[0] = DONE_BRISC;
    return 0;
}
