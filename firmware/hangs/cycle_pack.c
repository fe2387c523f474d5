/* TRISC2 of "cycle": frees a Dst half only after it has got one. */
#include "lib/tensix.h"

#define SEMAPHORE_FREE 2u

static void release(void) { TTI_SEMPOST(SEM_SEL(SEMAPHORE_FREE)); }

int main(void) {
    TTI_SEMWAIT(SEMWAIT_WHILE_ZERO, SEM_SEL(SEMAPHORE_MATH_PACK), STALL_SYNC);
    TTI_SEMGET(SEM_SEL(SEMAPHORE_MATH_PACK));
    release();
    tensix_sync();
    return 0;
}
