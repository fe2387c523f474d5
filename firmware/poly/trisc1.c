/* T1 of poly: SrcA to Dst, then 32 rounds of a recorded sequence. */
#include "poly/poly.h"

#define STAY 0u
#define ROWS_8 1u
#define NEXT 2u
#define LREG_P 4u
#define LENGTH 7u

static void modes(void) {
    TTI_SETC16(ADDR_MOD_AB_SEC0_SrcAIncr_ADDR32 + STAY, 0);
    TTI_SETC16(ADDR_MOD_DST_SEC0_DestIncr_ADDR32 + STAY, 0);
    TTI_SETC16(ADDR_MOD_AB_SEC0_SrcAIncr_ADDR32 + ROWS_8, CFG(ADDR_MOD_AB_SEC0_SrcAIncr, 8));
    TTI_SETC16(ADDR_MOD_DST_SEC0_DestIncr_ADDR32 + ROWS_8, CFG(ADDR_MOD_DST_SEC0_DestIncr, 8));
    TTI_SETC16(ADDR_MOD_AB_SEC0_SrcAIncr_ADDR32 + NEXT, 0);
    TTI_SETC16(ADDR_MOD_DST_SEC0_DestIncr_ADDR32 + NEXT, CFG(ADDR_MOD_DST_SEC0_DestIncr, 2));
}

static void constant(uint32_t bits) {
    TTI_SFPENCC(3, 0, 0, 10);
    TT_SFPLOADI(LREG_P, 10, bits & 0xFFFF);
    TT_SFPLOADI(LREG_P, 8, bits >> 16);
}

static void record(void) {
    TTI_REPLAY(8, LENGTH, 0, 1);
    TTI_SFPLOAD(0, 0, STAY, 0);
    TTI_SFPMUL(0, 0, 9, 1, 0);      /* L1 = L0 * L0 */
    TTI_SFPNOP;
    TTI_SFPMAD(0, LREG_P, 1, 2, 0); /* L2 = L0 * p + L1 */
    TTI_SFPNOP;
    TTI_SFPSTORE(2, 0, NEXT, 0);
    TTI_SFPNOP;
}

static void move(uint32_t half) {
    TT_SETC16(DEST_TARGET_REG_CFG_MATH_Offset_ADDR32, half * DST_HALF_ROWS);
    TTI_SETRWC(0, 0, 0, 0, 0, 0xF);
    for (uint32_t i = 0; i < 8; i++) {
        TTI_MOVA2D(0, 0, ROWS_8, 2, 0);
    }
    TTI_SETRWC(1, 0, 0, 0, 0, 0xF);
}

static void compute(void) {
    TTI_STALLWAIT(STALL_SFPU, WAIT_MATH);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        TTI_REPLAY(8, LENGTH, 0, 0);
    }
}

int main(void) {
    modes();
    constant(runtime_args.p);
    record();
    for (uint32_t i = 0; i < runtime_args.count; i++) {
        TTI_SEMWAIT(STALL_SYNC | STALL_MATH | STALL_SFPU, SEM_SEL(SEM_ROOM), SEMWAIT_WHILE_ZERO);
        TTI_SEMGET(SEM_SEL(SEM_ROOM));
        move(i % 2);
        compute();
        TTI_STALLWAIT(STALL_SYNC | STALL_CFG, WAIT_SFPU | WAIT_MATH);
        TTI_SEMPOST(SEM_SEL(SEM_READY));
    }
    tensix_sync();
    done_words[2] = DONE_TRISC(1);
    return 0;
}
