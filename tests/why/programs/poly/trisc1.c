/* T1 of poly: SrcA to Dst, then 32 rounds of a recorded sequence. */
#include "poly/poly.h"

#define STAY 0u
#define ROWS_8 1u
#define NEXT 2u
#define LREG_P 4u
#define LENGTH 7u

static void modes(void) {
    TTI_SETC16(0, ADDR_MOD_AB_SEC0_SrcAIncr_ADDR32 + STAY);
    TTI_SETC16(0, ADDR_MOD_DST_SEC0_DestIncr_ADDR32 + STAY);
    TTI_SETC16(CFG(ADDR_MOD_AB_SEC0_SrcAIncr, 8), ADDR_MOD_AB_SEC0_SrcAIncr_ADDR32 + ROWS_8);
    TTI_SETC16(CFG(ADDR_MOD_DST_SEC0_DestIncr, 8), ADDR_MOD_DST_SEC0_DestIncr_ADDR32 + ROWS_8);
    TTI_SETC16(0, ADDR_MOD_AB_SEC0_SrcAIncr_ADDR32 + NEXT);
    TTI_SETC16(CFG(ADDR_MOD_DST_SEC0_DestIncr, 2), ADDR_MOD_DST_SEC0_DestIncr_ADDR32 + NEXT);
}

static void constant(uint32_t bits) {
    TTI_SFPENCC(10, 0, 3);
    TTP_SFPLOADI(bits & 0xFFFF, 10, LREG_P);
    TTP_SFPLOADI(bits >> 16, 8, LREG_P);
}

static void record(void) {
    TTI_REPLAY(1, 0, LENGTH, 8);
    TTI_SFPLOAD(0, STAY, 0, 0);
    TTI_SFPMUL(0, 1, 9, 0, 0);      /* L1 = L0 * L0 */
    TTI_SFPNOP();
    TTI_SFPMAD(0, 2, 1, LREG_P, 0); /* L2 = L0 * p + L1 */
    TTI_SFPNOP();
    TTI_SFPSTORE(0, NEXT, 0, 2);
    TTI_SFPNOP();
}

static void move(uint32_t half) {
    TTP_SETC16(half * DST_HALF_ROWS, DEST_TARGET_REG_CFG_MATH_Offset_ADDR32);
    TTI_SETRWC(0xF, 0, 0, 0, 0, 0);
    for (uint32_t i = 0; i < 8; i++) {
        TTI_MOVA2D(0, 2, ROWS_8, 0, 0);
    }
    TTI_SETRWC(0xF, 0, 0, 0, 0, 1);
}

static void compute(void) {
    TTI_STALLWAIT(WAIT_MATH, STALL_SFPU);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        TTI_REPLAY(0, 0, LENGTH, 8);
    }
}

int main(void) {
    modes();
    constant(runtime_args.p);
    record();
    for (uint32_t i = 0; i < runtime_args.count; i++) {
        TTI_SEMWAIT(SEMWAIT_WHILE_ZERO, SEM_SEL(SEM_ROOM), STALL_SYNC | STALL_MATH | STALL_SFPU);
        TTI_SEMGET(SEM_SEL(SEM_ROOM));
        move(i % 2);
        compute();
        TTI_STALLWAIT(WAIT_SFPU | WAIT_MATH, STALL_SYNC | STALL_CFG);
        TTI_SEMPOST(SEM_SEL(SEM_READY));
    }
    tensix_sync();
    done_words[2] = DONE_TRISC(1);
    return 0;
}
