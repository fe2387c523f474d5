/* TRISC1 of "cycle": fills both Dst halves, then waits for a free one before it hands any over. */
#include "lib/tensix.h"

#define SEMAPHORE_FREE 2u

static void give(void) { TTI_SEMPOST(SEM_SEL(SEMAPHORE_MATH_PACK)); }

int main(void) {
    TTI_SEMINIT(2, 0, SEM_SEL(SEMAPHORE_MATH_PACK));
    TTI_SEMINIT(2, 0, SEM_SEL(SEMAPHORE_FREE));
    TTI_SEMWAIT(STALL_SYNC, SEM_SEL(SEMAPHORE_FREE), SEMWAIT_WHILE_ZERO);
    TTI_SEMGET(SEM_SEL(SEMAPHORE_FREE));
    give();
    tensix_sync();
    return 0;
}
