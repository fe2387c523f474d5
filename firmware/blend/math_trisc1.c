/* TRISC1 of blend: both products of a pair add up in a 32-bit Dst half. */
#include "blend/blend.h"
#include "lib/math_half.h"

#define ROWS 8u
#define PASS 8u
#define PHASES 4u /* HiFi4: all bits of both factors */

#define STEP 0u
#define NEXT_PASS 1u

static void configure(void) {
    TTI_ZEROACC(3, 0, 0, 0, 0);
    TTI_SEMINIT(2, 0, SEM_SEL(SEMAPHORE_MATH_PACK));
    ADDR_MODE(STEP, AB_STEP(ROWS, ROWS), DST_STEP(ROWS));
    ADDR_MODE(NEXT_PASS, AB_CLEAR, DST_CLEAR | NEXT_PHASE);
    TTI_SETRWC(0, 0, 0, 0, 0, RWC_ALL);
}

static void record(void) {
    TTI_REPLAY(0, PASS, 0, 1);
    for (uint32_t i = 0; i < PASS - 1; i++) {
        TTI_ELWMUL(0, 0, 0, STEP, 0);
    }
    TTI_ELWMUL(0, 0, 0, NEXT_PASS, 0);
}

int main(void) {
    volatile struct blend_args *args = KERNEL_ARGS(blend_args);
    uint32_t sums = args->sums;
    configure();
    record();
    program_phases(PHASES, PASS);
    for (uint32_t i = 0; i < sums; i++) {
        acquire_half(i % 2);
        for (uint32_t j = 0; j < PAIR; j++) {
            MOP_LOOP_RUN();
        }
        release_half();
    }
    tensix_sync();
    return 0;
}
