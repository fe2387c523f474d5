/* T1 of colsum: GAPOOL adds SrcB's weights times the columns of SrcA to a row of Dst. */
#include "colsum/colsum.h"

#define STAY 4u
#define HIFI 5u
#define ROWS_OF_FACE 16u

static void configure(void) {
    TTI_ZEROACC(0, 0, 0, 0, 3);
    TTI_SETC16(0, ADDR_MOD_AB_SEC0_SrcAIncr_ADDR32 + STAY);
    TTI_SETC16(CFG(ADDR_MOD_DST_SEC0_FidelityClear, 1), ADDR_MOD_DST_SEC0_DestIncr_ADDR32 + STAY);
    TTI_SETC16(0, ADDR_MOD_AB_SEC0_SrcAIncr_ADDR32 + HIFI);
    TTI_SETC16(CFG(ADDR_MOD_DST_SEC0_FidelityIncr, 1), ADDR_MOD_DST_SEC0_DestIncr_ADDR32 + HIFI);
    TTI_SEMINIT(SEM_SEL(SEM_DONE), 0, 1);
    TTI_SETRWC(0xF, 0, 0, 0, 0, 0);
}

static void side(uint32_t number) {
    TTP_SETC16(number * ROWS_OF_FACE, DEST_TARGET_REG_CFG_MATH_Offset_ADDR32);
    for (uint32_t i = 0; i < 2 * TILES; i++) {
        TTI_GAPOOL(0, 0, HIFI, 1, 0);
        TTI_GAPOOL(0, 0, HIFI, 1, 0);
        TTI_GAPOOL(0, 0, HIFI, 1, 0);
        TTI_GAPOOL(0, 0, STAY, 1, 0);
        TTI_SETRWC(0xF, 0, 0, 0, 0, 3);
    }
}

int main(void) {
    configure();
    side(0);
    side(1);
    TTI_STALLWAIT(WAIT_MATH, STALL_SYNC);
    TTI_SEMPOST(SEM_SEL(SEM_DONE));
    tensix_sync();
    done_words[2] = DONE_TRISC(1);
    return 0;
}
