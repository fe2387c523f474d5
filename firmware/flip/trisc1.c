/* T1 of flip: four faces to a Dst half. */
#include "flip/flip.h"

#define STEP 6u

static void configure(void) {
    TTI_SEMINIT(2, 0, SEM_SEL(SEM_TILE));
    TTI_SETC16(ADDR_MOD_AB_SEC6_SrcAIncr_ADDR32, CFG(ADDR_MOD_AB_SEC6_SrcAIncr, 8));
    TTI_SETC16(ADDR_MOD_DST_SEC6_DestIncr_ADDR32, CFG(ADDR_MOD_DST_SEC6_DestIncr, 8));
}

static void program(void) {
    uint32_t move = TTO_MOVA2D | TTF_MOVA2D_instr_mod(2) | TTF_MOVA2D_addr_mode(STEP);
    uint32_t release = TTO_SETRWC | TTF_SETRWC_bit_mask(1) | TTF_SETRWC_clear_ab_vld(1);
    mop_loop_program(4, 2, TT_OP_NOP, move, release, move, move);
}

static void tile(uint32_t half) {
    TTI_SEMWAIT(STALL_SYNC | STALL_MATH, SEM_SEL(SEM_TILE), SEMWAIT_WHILE_MAX);
    TT_SETC16(DEST_TARGET_REG_CFG_MATH_Offset_ADDR32, half * DST_HALF_ROWS);
    TTI_SETRWC(0, 0, 0, 0, 0, 0xF);
    TTI_MOP(1, 0, 0);
    TTI_STALLWAIT(STALL_SYNC | STALL_CFG, WAIT_MATH);
    TTI_SEMPOST(SEM_SEL(SEM_TILE));
}

int main(void) {
    configure();
    program();
    for (uint32_t i = 0; i < runtime_args.tiles; i++) {
        tile(i % 2);
    }
    tensix_sync();
    done_words[2] = DONE_TRISC(1);
    return 0;
}
