/* TRISC1's part of a kernel of the matrix unit: the Dst halves and the address modes. */
#pragma once

#include "lib/tensix.h"

/* Bits of SETRWC's bit_mask and clear_ab_vld. */
#define RWC_A 1u
#define RWC_B 2u
#define RWC_D 4u
#define RWC_FIDELITY 8u
#define RWC_ALL (RWC_A | RWC_B | RWC_D | RWC_FIDELITY)
#define CLEAR_SRCA 1u
#define CLEAR_SRCA_SRCB 3u

/* Address mode k from the names of its fields; those of SEC0 serve for all, only the word moves. */
#define AB_STEP(a, b) (CFG(ADDR_MOD_AB_SEC0_SrcAIncr, a) | CFG(ADDR_MOD_AB_SEC0_SrcBIncr, b))
#define AB_SRCA_CR CFG(ADDR_MOD_AB_SEC0_SrcACR, 1)
#define AB_SRCB_CR CFG(ADDR_MOD_AB_SEC0_SrcBCR, 1)
#define AB_CLEAR (CFG(ADDR_MOD_AB_SEC0_SrcAClear, 1) | CFG(ADDR_MOD_AB_SEC0_SrcBClear, 1))
#define DST_STEP(rows) CFG(ADDR_MOD_DST_SEC0_DestIncr, rows)
#define DST_CR CFG(ADDR_MOD_DST_SEC0_DestCR, 1)
#define DST_CLEAR CFG(ADDR_MOD_DST_SEC0_DestClear, 1)
#define NEXT_PHASE CFG(ADDR_MOD_DST_SEC0_FidelityIncr, 1)

#define ADDR_MODE(k, ab, dst) \
    do { \
        TTI_SETC16(ADDR_MOD_AB_SEC0_SrcAIncr_ADDR32 + (k), ab); \
        TTI_SETC16(ADDR_MOD_DST_SEC0_DestIncr_ADDR32 + (k), dst); \
    } while (0)

/* A MOP that plays the first `length` words of the replay buffer once per fidelity phase, sets all
 * counters to zero and gives both banks back to the unpackers. */
static inline void program_phases(uint32_t phases, uint32_t length) {
    uint32_t play = TTO_REPLAY | TTF_REPLAY_len(length);
    uint32_t end = TTO_SETRWC | TTF_SETRWC_bit_mask(RWC_ALL) |
                   TTF_SETRWC_clear_ab_vld(CLEAR_SRCA_SRCB);
    mop_loop_program(1, phases, TT_OP_NOP, play, end, play, play);
}

/* Lets Dst row 0 mean `row` of the half. */
static inline void set_dst_row(uint32_t half, uint32_t row) {
    THREAD_CFG(half * DST_HALF_ROWS + row, DEST_TARGET_REG_CFG_MATH_Offset_ADDR32);
}

/* Waits until pack has released the half, then lets Dst row 0 mean its first row. */
static inline void acquire_half(uint32_t half) {
    TTI_SEMWAIT(STALL_SYNC | STALL_MATH, SEM_SEL(SEMAPHORE_MATH_PACK), SEMWAIT_WHILE_MAX);
    set_dst_row(half, 0);
}

/* Hands the half to pack once its last row is written. */
static inline void release_half(void) {
    TTI_STALLWAIT(STALL_SYNC | STALL_CFG, WAIT_MATH);
    TTI_SEMPOST(SEM_SEL(SEMAPHORE_MATH_PACK));
}
