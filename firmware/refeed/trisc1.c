/* T1 of refeed: ELWMUL to Dst, the product back to SrcA, ELWADD; three recorded sequences. */
#include "refeed/refeed.h"

#define ROWS_8 1u /* address modes */
#define ROWS_4 2u
#define STAY 3u

#define MUL 0u /* places in the replay buffer */
#define BACK 8u
#define ADD 24u

static void modes(void) {
    TTI_SETC16(ADDR_MOD_AB_SEC0_SrcAIncr_ADDR32 + ROWS_8,
               CFG(ADDR_MOD_AB_SEC0_SrcAIncr, 8) | CFG(ADDR_MOD_AB_SEC0_SrcBIncr, 8));
    TTI_SETC16(ADDR_MOD_DST_SEC0_DestIncr_ADDR32 + ROWS_8, CFG(ADDR_MOD_DST_SEC0_DestIncr, 8));
    TTI_SETC16(ADDR_MOD_AB_SEC0_SrcAIncr_ADDR32 + ROWS_4, CFG(ADDR_MOD_AB_SEC0_SrcAIncr, 4));
    TTI_SETC16(ADDR_MOD_DST_SEC0_DestIncr_ADDR32 + ROWS_4, CFG(ADDR_MOD_DST_SEC0_DestIncr, 4));
    TTI_SETC16(ADDR_MOD_AB_SEC0_SrcAIncr_ADDR32 + STAY, 0);
    TTI_SETC16(ADDR_MOD_DST_SEC0_DestIncr_ADDR32 + STAY, 0);
}

static void record(void) {
    TTI_REPLAY(MUL, 8, 0, 1);
    for (uint32_t i = 0; i < 8; i++) {
        TTI_ELWMUL(0, 0, 0, ROWS_8, 0);
    }
    TTI_REPLAY(BACK, 16, 0, 1);
    for (uint32_t i = 0; i < 16; i++) {
        TTI_MOVD2A(0, 0, ROWS_4, 2, 0);
    }
    TTI_REPLAY(ADD, 8, 0, 1);
    for (uint32_t i = 0; i < 8; i++) {
        TTI_ELWADD(0, 0, 0, ROWS_8, 0);
    }
}

static void tile(uint32_t half) {
    TTI_SEMWAIT(STALL_SYNC | STALL_MATH, SEM_SEL(SEM_HALF), SEMWAIT_WHILE_MAX);
    TT_SETC16(DEST_TARGET_REG_CFG_MATH_Offset_ADDR32, half * DST_HALF_ROWS);
    TT_ZEROACC(2, 0, 0, STAY, half);
    TTI_SETRWC(0, 0, 0, 0, 0, 0xF);
    TTI_REPLAY(MUL, 8, 0, 0);
    TTI_SETRWC(0, 0, 0, 0, 0, 0xF);
    TTI_REPLAY(BACK, 16, 0, 0);
    TTI_SETRWC(0, 0, 0, 0, 0, 0xF);
    TTI_GATESRCRST(1, 1);
    TTI_REPLAY(ADD, 8, 0, 0);
    TTI_SETRWC(3, 0, 0, 0, 0, 0xF);
    TTI_STALLWAIT(STALL_SYNC | STALL_CFG, WAIT_MATH);
    TTI_SEMPOST(SEM_SEL(SEM_HALF));
}

int main(void) {
    modes();
    record();
    for (uint32_t i = 0; i < runtime_args.tiles; i++) {
        tile(i % 2);
    }
    tensix_sync();
    done_words[2] = DONE_TRISC(1);
    return 0;
}
