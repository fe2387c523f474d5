/* BRISC of poly: semaphores, then the three others. */
#include "poly/poly.h"

static void start(void) {
    for (uint32_t n = 0; n < 3; n++) {
        store(RISCV_DEBUG_REG_TRISC0_RESET_PC + 4 * n, 0x10000 + 0x4000 * n);
    }
    store(RISCV_DEBUG_REG_TRISC_RESET_PC_OVERRIDE, 7);
    fence();
    store(RISCV_DEBUG_REG_SOFT_RESET_0, load(RISCV_DEBUG_REG_SOFT_RESET_0) & ~SOFT_RESET_TRISCS);
}

int main(void) {
    assert_that(runtime_args.count > 0 && runtime_args.count <= 16);
    assert_that(runtime_args.from % 16 == 0 && runtime_args.to % 16 == 0);
    for (uint32_t n = 1; n < 4; n++) {
        done_words[n] = 0;
    }
    TT_SEMINIT(2, 2, SEM_SEL(SEM_ROOM));
    TT_SEMINIT(2, 0, SEM_SEL(SEM_READY));
    start();
    for (uint32_t n = 1; n < 4; n++) {
        while (done_words[n] != DONE_TRISC(n - 1)) {
            fence();
        }
    }
    done_words[0] = DONE_BRISC;
    return 0;
}
