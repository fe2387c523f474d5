/* TRISC2 of "cycle": frees a Dst half only after it has got one. */
#include "lib/tensix.h"

#define SEMAPHORE_FREE 2u

static void release(void) { TTI_SEMPOST(SEM_SEL(SEMAPHORE_FREE)); }

int main(void) {
    TTI_SEMWAIT(STALL_SYNC, SEM_SEL(SEMAPHORE_MATH_PACK), SEMWAIT_WHILE_ZERO);
    TTI_SEMGET(SEM_SEL(SEMAPHORE_MATH_PACK));
    release();
    tensix_sync();
    return 0;
}
