/* T1 of refeed: ELWMUL to Dst, the product back to SrcA, ELWADD; three recorded sequences. */
#include "refeed/refeed.h"

#define ROWS_8 1u /* address modes */
#define ROWS_4 2u
#define STAY 3u

#define MUL 0u /* places in the replay buffer */
#define BACK 8u
#define ADD 24u

static void modes(void) {
    TTI_SETC16(CFG(ADDR_MOD_AB_SEC0_SrcAIncr, 8) | CFG(ADDR_MOD_AB_SEC0_SrcBIncr, 8),
               ADDR_MOD_AB_SEC0_SrcAIncr_ADDR32 + ROWS_8);
    TTI_SETC16(CFG(ADDR_MOD_DST_SEC0_DestIncr, 8), ADDR_MOD_DST_SEC0_DestIncr_ADDR32 + ROWS_8);
    TTI_SETC16(CFG(ADDR_MOD_AB_SEC0_SrcAIncr, 4), ADDR_MOD_AB_SEC0_SrcAIncr_ADDR32 + ROWS_4);
    TTI_SETC16(CFG(ADDR_MOD_DST_SEC0_DestIncr, 4), ADDR_MOD_DST_SEC0_DestIncr_ADDR32 + ROWS_4);
    TTI_SETC16(0, ADDR_MOD_AB_SEC0_SrcAIncr_ADDR32 + STAY);
    TTI_SETC16(0, ADDR_MOD_DST_SEC0_DestIncr_ADDR32 + STAY);
}

static void record(void) {
    TTI_REPLAY(1, 0, 8, MUL);
    for (uint32_t i = 0; i < 8; i++) {
        TTI_ELWMUL(0, ROWS_8, 0, 0, 0);
    }
    TTI_REPLAY(1, 0, 16, BACK);
    for (uint32_t i = 0; i < 16; i++) {
        TTI_MOVD2A(0, 2, ROWS_4, 0, 0);
    }
    TTI_REPLAY(1, 0, 8, ADD);
    for (uint32_t i = 0; i < 8; i++) {
        TTI_ELWADD(0, ROWS_8, 0, 0, 0);
    }
}

static void tile(uint32_t half) {
    TTI_SEMWAIT(SEMWAIT_WHILE_MAX, SEM_SEL(SEM_HALF), STALL_SYNC | STALL_MATH);
    TTP_SETC16(half * DST_HALF_ROWS, DEST_TARGET_REG_CFG_MATH_Offset_ADDR32);
    TTP_ZEROACC(half, STAY, 0, 0, 2);
    TTI_SETRWC(0xF, 0, 0, 0, 0, 0);
    TTI_REPLAY(0, 0, 8, MUL);
    TTI_SETRWC(0xF, 0, 0, 0, 0, 0);
    TTI_REPLAY(0, 0, 16, BACK);
    TTI_SETRWC(0xF, 0, 0, 0, 0, 0);
    TTI_GATESRCRST(1, 1);
    TTI_REPLAY(0, 0, 8, ADD);
    TTI_SETRWC(0xF, 0, 0, 0, 0, 3);
    TTI_STALLWAIT(WAIT_MATH, STALL_SYNC | STALL_CFG);
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
