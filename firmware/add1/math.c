/* TRISC1: moves each tile from SrcA to a Dst half and adds the scalar there on the vector unit. */
#include "add1/args.h"
#include "lib/tensix.h"

#define ADDR_MOD_STAY 0u    /* SFPLOAD */
#define ADDR_MOD_8_ROWS 2u  /* MOVA2D */
#define ADDR_MOD_NEXT 7u    /* SFPSTORE: two Dst rows on, the next 32 datums */

#define LREG_DATA 0u
#define LREG_SCALAR 1u
#define LREG_ONE 10u

#define RWC_A 1u
#define RWC_B 2u
#define RWC_D 4u
#define RWC_FIDELITY 8u
#define CLEAR_SRCA_SRCB 3u

uint32_t tiles_done; /* in local RAM, for a debugger */

static void configure(void) {
    TTI_SETC16(0, ADDR_MOD_AB_SEC0_SrcAIncr_ADDR32);
    TTI_SETC16(0, ADDR_MOD_DST_SEC0_DestIncr_ADDR32);
    TTI_SETC16(CFG(ADDR_MOD_AB_SEC2_SrcAIncr, 8), ADDR_MOD_AB_SEC2_SrcAIncr_ADDR32);
    TTI_SETC16(CFG(ADDR_MOD_DST_SEC2_DestIncr, 8), ADDR_MOD_DST_SEC2_DestIncr_ADDR32);
    TTI_SETC16(0, ADDR_MOD_AB_SEC7_SrcAIncr_ADDR32);
    TTI_SETC16(CFG(ADDR_MOD_DST_SEC7_DestIncr, 2), ADDR_MOD_DST_SEC7_DestIncr_ADDR32);
    TTI_SETRWC(RWC_A | RWC_B | RWC_D | RWC_FIDELITY, 0, 0, 0, 0, 0);
}

/* Per face: 16 rows in two moves, then both banks go back to the unpackers. */
static void program_mop(void) {
    uint32_t move = TTO_MOVA2D | TTF_MOVA2D_instr_mod(2) | TTF_MOVA2D_addr_mode(ADDR_MOD_8_ROWS);
    uint32_t clear = TTO_SETRWC | TTF_SETRWC_bit_mask(RWC_A | RWC_B) |
                     TTF_SETRWC_clear_ab_vld(CLEAR_SRCA_SRCB);
    mop_loop_program(FACES, 2, TT_NOP(), move, clear, move, move);
}

static void load_scalar(uint32_t bits) {
    TTI_SFPENCC(10, 0, 3);                              /* all lanes on */
    TTP_SFPLOADI(bits & 0xFFFF, 10, LREG_SCALAR);       /* low half */
    TTP_SFPLOADI(bits >> 16, 8, LREG_SCALAR);           /* high half */
}

/* 32 datums: LReg0 = Dst; LReg0 = 1.0 * LReg0 + scalar; Dst = LReg0. */
static inline __attribute__((always_inline)) void add_32(void) {
    TTI_SFPLOAD(0, ADDR_MOD_STAY, 0, LREG_DATA);
    TTI_SFPADD(0, LREG_DATA, LREG_SCALAR, LREG_DATA, LREG_ONE);
    TTI_SFPNOP(); /* SFPADD takes two cycles */
    TTI_SFPSTORE(0, ADDR_MOD_NEXT, 0, LREG_DATA);
}

static void add_face(void) {
    add_32();
    add_32();
    add_32();
    add_32();
    add_32();
    add_32();
    add_32();
    add_32();
    /* The next face starts 16 rows on; the counter moves in steps of at most 15. */
    TTI_SETRWC(RWC_D, 0, 0, 8, RWC_D, 0);
    TTI_SETRWC(RWC_D, 0, 0, 8, RWC_D, 0);
}

static void math_tile(uint32_t half) {
    TTI_SEMWAIT(SEMWAIT_WHILE_MAX, SEM_SEL(SEMAPHORE_MATH_PACK),
                STALL_SYNC | STALL_MATH | STALL_SFPU);
    TTP_SETC16(half * DST_HALF_ROWS, DEST_TARGET_REG_CFG_MATH_Offset_ADDR32);
    TTI_SETRWC(RWC_D, 0, 0, 0, 0, 0);
    MOP_LOOP_RUN();
    TTI_STALLWAIT(WAIT_MATH, STALL_SFPU);
    TTI_SETRWC(RWC_D, 0, 0, 0, 0, 0);
    for (uint32_t face = 0; face < FACES; face++) {
        add_face();
    }
    TTI_STALLWAIT(WAIT_MATH | WAIT_SFPU, STALL_SYNC | STALL_CFG);
    TTI_SEMPOST(SEM_SEL(SEMAPHORE_MATH_PACK));
}

int main(void) {
    configure();
    program_mop();
    load_scalar(runtime_args.scalar);
    uint32_t half = 0;
    for (uint32_t i = 0; i < runtime_args.n_tiles; i++) {
        math_tile(half);
        half ^= 1;
        tiles_done = i + 1;
    }
    tensix_sync();
    done_words[2] = DONE_TRISC(1);
    return 0;
}
