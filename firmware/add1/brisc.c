/* BRISC: prepares the coprocessor, releases the three TRISCs and waits until they are done. */
#include "add1/args.h"
#include "lib/tensix.h"

#define L1_SIZE 0x180000u

/* The TRISCs' text bases, see lib/trisc*.ld. */
#define TRISC_TEXT(n) (0x10000u + 0x4000u * (n))
#define TRISC_TEXT_END TRISC_TEXT(3)

static void check_args(void) {
    uint32_t bytes = runtime_args.n_tiles * TILE_BYTES;
    assert_that(runtime_args.n_tiles <= L1_SIZE / TILE_BYTES);
    assert_that(runtime_args.src % 16 == 0 && runtime_args.dst % 16 == 0);
    assert_that(runtime_args.src >= TRISC_TEXT_END && runtime_args.src <= L1_SIZE - bytes);
    assert_that(runtime_args.dst >= TRISC_TEXT_END && runtime_args.dst <= L1_SIZE - bytes);
}

/* These words enter thread 0's queue. T0's own words follow them, and T1 and T2 depend on T0's data
 * or on the semaphore's maximum (0 until SEMINIT), so none can overtake them. */
static void prepare_tensix(void) {
    TT_ZEROACC(3, 0, 0, 0, 0);         /* all of Dst */
    TT_SFPENCC(3, 0, 0, 10);           /* all lanes on, condition codes in force */
    TT_NOP;
    TT_SFPLOADI(0, 0, 0xBF80);         /* LReg0 = bf16 -1.0 */
    TT_SFPCONFIG(0, 11, 0);            /* LReg11 = LReg0 */
    TT_SEMINIT(2, 0, SEM_SEL(SEMAPHORE_MATH_PACK));
}

static void release_triscs(void) {
    for (uint32_t n = 0; n < 3; n++) {
        store(RISCV_DEBUG_REG_TRISC0_RESET_PC + 4 * n, TRISC_TEXT(n));
    }
    store(RISCV_DEBUG_REG_TRISC_RESET_PC_OVERRIDE, 7);
    cfg_write(RISCV_IC_INVALIDATE_InvalidateAll_ADDR32,
              CFG(RISCV_IC_INVALIDATE_InvalidateAll, 0x1F));
    fence();
    store(RISCV_DEBUG_REG_SOFT_RESET_0, load(RISCV_DEBUG_REG_SOFT_RESET_0) & ~SOFT_RESET_TRISCS);
}

int main(void) {
    check_args();
    for (uint32_t n = 0; n < 4; n++) {
        done_words[n] = 0;
    }
    prepare_tensix();
    release_triscs();
    for (uint32_t n = 0; n < 3; n++) {
        while (done_words[1 + n] != DONE_TRISC(n)) {
            fence();
        }
    }
    done_words[0] = DONE_BRISC;
    return 0;
}
