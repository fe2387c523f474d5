/* TRISC1 of "cycle": fills both Dst halves, then waits for a free one before it hands any over. */
#include "lib/tensix.h"

#define SEMAPHORE_FREE 2u

static void give(void) { TTI_SEMPOST(SEM_SEL(SEMAPHORE_MATH_PACK)); }

int main(void) {
    TTI_SEMINIT(SEM_SEL(SEMAPHORE_MATH_PACK), 0, 2);
    TTI_SEMINIT(SEM_SEL(SEMAPHORE_FREE), 0, 2);
    TTI_SEMWAIT(SEMWAIT_WHILE_ZERO, SEM_SEL(SEMAPHORE_FREE), STALL_SYNC);
    TTI_SEMGET(SEM_SEL(SEMAPHORE_FREE));
    give();
    tensix_sync();
    return 0;
}
