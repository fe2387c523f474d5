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
    TTI_SETC16(ADDR_MOD_AB_SEC0_SrcAIncr_ADDR32, 0);
    TTI_SETC16(ADDR_MOD_DST_SEC0_DestIncr_ADDR32, 0);
    TTI_SETC16(ADDR_MOD_AB_SEC2_SrcAIncr_ADDR32, CFG(ADDR_MOD_AB_SEC2_SrcAIncr, 8));
    TTI_SETC16(ADDR_MOD_DST_SEC2_DestIncr_ADDR32, CFG(ADDR_MOD_DST_SEC2_DestIncr, 8));
    TTI_SETC16(ADDR_MOD_AB_SEC7_SrcAIncr_ADDR32, 0);
    TTI_SETC16(ADDR_MOD_DST_SEC7_DestIncr_ADDR32, CFG(ADDR_MOD_DST_SEC7_DestIncr, 2));
    TTI_SETRWC(0, 0, 0, 0, 0, RWC_A | RWC_B | RWC_D | RWC_FIDELITY);
}

/* Per face: 16 rows in two moves, then both banks go back to the unpackers. */
static void program_mop(void) {
    uint32_t move = TTO_MOVA2D | TTF_MOVA2D_instr_mod(2) | TTF_MOVA2D_addr_mode(ADDR_MOD_8_ROWS);
    uint32_t clear = TTO_SETRWC | TTF_SETRWC_bit_mask(RWC_A | RWC_B) |
                     TTF_SETRWC_clear_ab_vld(CLEAR_SRCA_SRCB);
    mop_loop_program(FACES, 2, TT_OP_NOP, move, clear, move, move);
}

static void load_scalar(uint32_t bits) {
    TTI_SFPENCC(3, 0, 0, 10);                           /* all lanes on */
    SFPLOAD_HALF(bits & 0xFFFF, 10, LREG_SCALAR);       /* low half */
    SFPLOAD_HALF(bits >> 16, 8, LREG_SCALAR);           /* high half */
}

/* 32 datums: LReg0 = Dst; LReg0 = 1.0 * LReg0 + scalar; Dst = LReg0. */
static inline __attribute__((always_inline)) void add_32(void) {
    TTI_SFPLOAD(LREG_DATA, 0, ADDR_MOD_STAY, 0);
    TTI_SFPADD(LREG_ONE, LREG_DATA, LREG_SCALAR, LREG_DATA, 0);
    TTI_SFPNOP; /* SFPADD takes two cycles */
    TTI_SFPSTORE(LREG_DATA, 0, ADDR_MOD_NEXT, 0);
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
    TTI_SETRWC(0, RWC_D, 8, 0, 0, RWC_D);
    TTI_SETRWC(0, RWC_D, 8, 0, 0, RWC_D);
}

static void math_tile(uint32_t half) {
    TTI_SEMWAIT(STALL_SYNC | STALL_MATH | STALL_SFPU, SEM_SEL(SEMAPHORE_MATH_PACK),
                SEMWAIT_WHILE_MAX);
    THREAD_CFG(half * DST_HALF_ROWS, DEST_TARGET_REG_CFG_MATH_Offset_ADDR32);
    TTI_SETRWC(0, 0, 0, 0, 0, RWC_D);
    MOP_LOOP_RUN();
    TTI_STALLWAIT(STALL_SFPU, WAIT_MATH);
    TTI_SETRWC(0, 0, 0, 0, 0, RWC_D);
    for (uint32_t face = 0; face < FACES; face++) {
        add_face();
    }
    TTI_STALLWAIT(STALL_SYNC | STALL_CFG, WAIT_MATH | WAIT_SFPU);
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
