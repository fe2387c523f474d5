/* T1 of colsum: GAPOOL adds SrcB's weights times the columns of SrcA to a row of Dst. */
#include "colsum/colsum.h"

#define STAY 4u
#define HIFI 5u
#define ROWS_OF_FACE 16u

static void configure(void) {
    TTI_ZEROACC(3, 0, 0, 0, 0);
    TTI_SETC16(ADDR_MOD_AB_SEC0_SrcAIncr_ADDR32 + STAY, 0);
    TTI_SETC16(ADDR_MOD_DST_SEC0_DestIncr_ADDR32 + STAY, CFG(ADDR_MOD_DST_SEC0_FidelityClear, 1));
    TTI_SETC16(ADDR_MOD_AB_SEC0_SrcAIncr_ADDR32 + HIFI, 0);
    TTI_SETC16(ADDR_MOD_DST_SEC0_DestIncr_ADDR32 + HIFI, CFG(ADDR_MOD_DST_SEC0_FidelityIncr, 1));
    TTI_SEMINIT(1, 0, SEM_SEL(SEM_DONE));
    TTI_SETRWC(0, 0, 0, 0, 0, 0xF);
}

static void side(uint32_t number) {
    TT_SETC16(DEST_TARGET_REG_CFG_MATH_Offset_ADDR32, number * ROWS_OF_FACE);
    for (uint32_t i = 0; i < 2 * TILES; i++) {
        TTI_GAPOOL(0, 1, HIFI, 0, 0);
        TTI_GAPOOL(0, 1, HIFI, 0, 0);
        TTI_GAPOOL(0, 1, HIFI, 0, 0);
        TTI_GAPOOL(0, 1, STAY, 0, 0);
        TTI_SETRWC(3, 0, 0, 0, 0, 0xF);
    }
}

int main(void) {
    configure();
    side(0);
    side(1);
    TTI_STALLWAIT(STALL_SYNC, WAIT_MATH);
    TTI_SEMPOST(SEM_SEL(SEM_DONE));
    tensix_sync();
    done_words[2] = DONE_TRISC(1);
    return 0;
}
