/* T1 of widen: SrcA + SrcB to a Dst half, eight rows a time. */
#include "widen/widen.h"

#define MODE_NEXT 3u

static void configure(void) {
    TTI_SEMINIT(2, 0, SEM_SEL(SEM_FULL));
    TTI_SETC16(ADDR_MOD_AB_SEC3_SrcAIncr_ADDR32,
               CFG(ADDR_MOD_AB_SEC3_SrcAIncr, 8) | CFG(ADDR_MOD_AB_SEC3_SrcBIncr, 8));
    TTI_SETC16(ADDR_MOD_DST_SEC3_DestIncr_ADDR32, CFG(ADDR_MOD_DST_SEC3_DestIncr, 8));
    TTI_SETRWC(0, 0, 0, 0, 0, 0xF);
}

static void tile(uint32_t half) {
    TTI_SEMWAIT(STALL_SYNC | STALL_MATH, SEM_SEL(SEM_FULL), SEMWAIT_WHILE_MAX);
    TT_SETC16(DEST_TARGET_REG_CFG_MATH_Offset_ADDR32, half * DST_HALF_ROWS);
    TTI_SETRWC(0, 0, 0, 0, 0, 4);
    for (uint32_t face = 0; face < 4; face++) {
        TTI_ELWADD(0, 0, 0, MODE_NEXT, 0);
        TTI_ELWADD(0, 0, 0, MODE_NEXT, 0);
        TTI_SETRWC(3, 0, 0, 0, 0, 3);
    }
    TTI_STALLWAIT(STALL_SYNC | STALL_CFG, WAIT_MATH);
    TTI_SEMPOST(SEM_SEL(SEM_FULL));
}

int main(void) {
    done_words[2] = 0;
    configure();
    for (uint32_t i = 0; i < NTILES; i++) {
        tile(i & 1);
    }
    tensix_sync();
    done_words[2] = DONE_TRISC(1);
    return 0;
}
