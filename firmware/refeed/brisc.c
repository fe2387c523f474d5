/* BRISC of refeed: a ring of two jobs, which T0 and T2 read. */
#include "refeed/refeed.h"

static void start(void) {
    for (uint32_t n = 0; n < 3; n++) {
        store(RISCV_DEBUG_REG_TRISC0_RESET_PC + 4 * n, 0x10000 + 0x4000 * n);
    }
    store(RISCV_DEBUG_REG_TRISC_RESET_PC_OVERRIDE, 7);
    fence();
    store(RISCV_DEBUG_REG_SOFT_RESET_0, load(RISCV_DEBUG_REG_SOFT_RESET_0) & ~SOFT_RESET_TRISCS);
}

static void issue(uint32_t i) {
    volatile struct job *job = JOB(i);
    while (i - TAKEN_0 >= SLOTS || i - TAKEN_2 >= SLOTS) {
        fence();
    }
    job->a = runtime_args.a + i * TILE;
    job->b = runtime_args.b + i * TILE;
    job->out = runtime_args.out + i * TILE;
    job->relu = i % 2;
    fence();
    ISSUED = i + 1;
}

int main(void) {
    for (uint32_t n = 1; n < 4; n++) {
        done_words[n] = 0;
    }
    ISSUED = 0;
    TAKEN_0 = 0;
    TAKEN_2 = 0;
    TT_SEMINIT(2, 0, SEM_SEL(SEM_HALF));
    start();
    for (uint32_t i = 0; i < runtime_args.tiles; i++) {
        issue(i);
    }
    for (uint32_t n = 1; n < 4; n++) {
        while (done_words[n] != DONE_TRISC(n - 1)) {
            fence();
        }
    }
    while (done_words[5] != DONE_NCRISC) {
        fence();
    }
    done_words[0] = DONE_BRISC;
    return 0;
}
