/* TRISC1: moves each tile from SrcA to a Dst half and adds the scalar there on the vector unit. */
#include "add1_chip/args.h"
#include "lib/math_half.h"

#define STAY 0u      /* SFPLOAD */
#define NEXT_ROWS 2u /* MOVA2D */
#define NEXT 7u      /* SFPSTORE: two Dst rows on, the next 32 datums */

#define LREG_DATA 0u
#define LREG_SCALAR 1u
#define LREG_ONE 10u

static void configure(uint32_t scalar) {
    TTI_SEMINIT(2, 0, SEM_SEL(SEMAPHORE_MATH_PACK));
    ADDR_MODE(STAY, 0, 0);
    ADDR_MODE(NEXT_ROWS, AB_STEP(8, 0), DST_STEP(8));
    ADDR_MODE(NEXT, 0, DST_STEP(2));
    TTI_SFPENCC(3, 0, 0, 10); /* all lanes on */
    SFPLOAD_HALF(scalar & 0xFFFF, 10, LREG_SCALAR);
    SFPLOAD_HALF(scalar >> 16, 8, LREG_SCALAR);
    TTI_SETRWC(0, 0, 0, 0, 0, RWC_ALL);
}

/* 32 datums: LReg0 = Dst; LReg0 = 1.0 * LReg0 + scalar; Dst = LReg0. */
static void add_32(void) {
    TTI_SFPLOAD(LREG_DATA, 0, STAY, 0);
    TTI_SFPADD(LREG_ONE, LREG_DATA, LREG_SCALAR, LREG_DATA, 0);
    TTI_SFPNOP; /* SFPADD takes two cycles */
    TTI_SFPSTORE(LREG_DATA, 0, NEXT, 0);
}

static void math_tile(uint32_t half) {
    acquire_half(half);
    for (uint32_t row = 0; row < TILE_ROWS; row += 8) {
        TTI_MOVA2D(0, 0, NEXT_ROWS, 2, 0);
    }
    TTI_SETRWC(CLEAR_SRCA, 0, 0, 0, 0, RWC_ALL);
    TTI_STALLWAIT(STALL_SFPU, WAIT_MATH);
    for (uint32_t datum = 0; datum < TILE_DATUMS; datum += 32) {
        add_32();
    }
    TTI_SETRWC(0, 0, 0, 0, 0, RWC_ALL);
    TTI_STALLWAIT(STALL_SYNC, WAIT_SFPU);
    release_half();
}

int main(void) {
    volatile struct add1_args *args = KERNEL_ARGS(add1_args);
    uint32_t half = 0;
    configure(args->scalar);
    for (uint32_t tile = args->first; tile < args->end; tile += args->step) {
        math_tile(half);
        half ^= 1;
    }
    tensix_sync();
    return 0;
}
