/* T1 of rectify: the difference of both operands to a Dst half. */
#include "rectify/rectify.h"

#define ON 0u
#define BACK 1u

static void modes(void) {
    TTI_SETC16(ADDR_MOD_AB_SEC0_SrcAIncr_ADDR32 + ON,
               CFG(ADDR_MOD_AB_SEC0_SrcAIncr, 8) | CFG(ADDR_MOD_AB_SEC0_SrcBIncr, 8));
    TTI_SETC16(ADDR_MOD_DST_SEC0_DestIncr_ADDR32 + ON, CFG(ADDR_MOD_DST_SEC0_DestIncr, 8));
    TTI_SETC16(ADDR_MOD_AB_SEC0_SrcAIncr_ADDR32 + BACK,
               CFG(ADDR_MOD_AB_SEC0_SrcAClear, 1) | CFG(ADDR_MOD_AB_SEC0_SrcBClear, 1));
    TTI_SETC16(ADDR_MOD_DST_SEC0_DestIncr_ADDR32 + BACK, CFG(ADDR_MOD_DST_SEC0_DestClear, 1));
    TTI_SETRWC(0, 0, 0, 0, 0, 0xF);
}

static void program(void) {
    uint32_t word = TTO_ELWSUB | TTF_ELWSUB_addr_mode(ON);
    uint32_t last = TTO_ELWSUB | TTF_ELWSUB_addr_mode(BACK);
    uint32_t free = TTO_SETRWC | TTF_SETRWC_clear_ab_vld(3);
    mop_loop_program(1, 8, TT_OP_NOP, word, free, last, last);
}

int main(void) {
    modes();
    program();
    for (uint32_t i = 0; i < runtime_args.pairs; i++) {
        TTI_SEMWAIT(STALL_SYNC | STALL_MATH, SEM_SEL(SEM_FULL), SEMWAIT_WHILE_MAX);
        TT_SETC16(DEST_TARGET_REG_CFG_MATH_Offset_ADDR32, i % 2 * DST_HALF_ROWS);
        MOP_LOOP_RUN();
        TTI_STALLWAIT(STALL_SYNC | STALL_CFG, WAIT_MATH);
        TTI_SEMPOST(SEM_SEL(SEM_FULL));
    }
    tensix_sync();
    done_words[2] = DONE_TRISC(1);
    return 0;
}
