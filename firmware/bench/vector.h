/* The two bodies of the vector unit that bench measures. */
#pragma once

#include "lib/tensix.h"

#define VECTOR_STAY 3u
#define VECTOR_NEXT 7u /* the next 32 datums */

#define OPERAND_ROWS 64u /* of Dst: apart from the results, so that each repetition reads the same */

#define CHAIN 30u /* words of the body, recorded in the replay buffer */

#define ZERO_LREG 9u
#define ONE_LREG 10u

/* LReg6 = 0.5, LReg7 = 0.25: every product and sum stays finite. */
static inline void load_constants(void) {
    TTI_SFPENCC(10, 0, 3);         /* all lanes on */
    TTI_SFPLOADI(0x3F00, 0, 6);    /* bf16 */
    TTI_SFPLOADI(0x3E80, 0, 7);
}

/* Four accumulators and the factor: 160 datums of the tile. */
static inline void load_operands(void) {
    TTI_SFPLOAD(OPERAND_ROWS, VECTOR_STAY, 0, 0);
    TTI_SFPLOAD(OPERAND_ROWS + 4, VECTOR_STAY, 0, 1);
    TTI_SFPLOAD(OPERAND_ROWS + 8, VECTOR_STAY, 0, 2);
    TTI_SFPLOAD(OPERAND_ROWS + 12, VECTOR_STAY, 0, 3);
    TTI_SFPLOAD(OPERAND_ROWS + 16, VECTOR_STAY, 0, 4);
}

static inline void store_results(void) {
    TTI_SFPSTORE(0, VECTOR_STAY, 0, 0);
    TTI_SFPSTORE(4, VECTOR_STAY, 0, 1);
    TTI_SFPSTORE(8, VECTOR_STAY, 0, 2);
    TTI_SFPSTORE(12, VECTOR_STAY, 0, 3);
}

/* LReg k = LReg k * 0.5 + LReg4, in turns, so that none needs the result of the one before. */
static inline void record_mads(void) {
    TTI_REPLAY(1, 0, 32, 0);
    for (uint32_t i = 0; i < 32; i++) {
        TT_PUSH(TTO_SFPMAD | TTF_SFPMAD_lreg_dest(i % 4) | TTF_SFPMAD_lreg_src_a(i % 4) |
                TTF_SFPMAD_lreg_src_b(6) | TTF_SFPMAD_lreg_src_c(4));
    }
}

/* A polynomial, its parts put together again, a branch on the sign of the input, a clamp. */
static inline void record_chain(void) {
    TTI_REPLAY(1, 0, CHAIN, 0);
    TTI_SFPLOAD(OPERAND_ROWS, VECTOR_STAY, 0, 0);
    TTI_SFPABS(1, 1, 0);
    TTI_SFPMAD(0, 2, 7, 6, 1);
    TTI_SFPMAD(0, 2, 6, 1, 2);
    TTI_SFPMAD(0, 2, ONE_LREG, 1, 2);
    TTI_SFPMUL(0, 3, ZERO_LREG, 2, 2);
    TTI_SFPADD(0, 3, 1, 3, ONE_LREG);
    TTI_SFPEXEXP(0, 4, 3);
    TTI_SFPIADD(5, 4, 4, 1);
    TTI_SFPEXMAN(0, 5, 3);
    TTI_SFPSHFT(1, 4, 0, 3);
    TTI_SFPOR(0, 5, 4, 0);
    TTI_SFPSETEXP(1, 5, 3, 126);
    TTI_SFPMOV(0, 4, 3);
    TTI_SFPAND(0, 4, 2, 0);
    TTI_SFPMUL(0, 5, ZERO_LREG, 5, 3);
    TTI_SFPADDI(0, 5, 0x3F80);
    TTI_SFPMULI(0, 5, 0x3F00);
    TTI_SFPSETCC(0, 0, 0, 0);
    TTI_SFPMAD(0, 5, 0, 6, 5);
    TTI_SFPCOMPC(0);
    TTI_SFPMAD(0, 5, 1, 7, 5);
    TTI_SFPENCC(10, 0, 3);
    TTI_SFPSETSGN(0, 4, 5, 0);
    TTI_SFPSWAP(1, 3, 5);
    TTI_SFPMAD(0, 2, 6, 5, 6);
    TTI_SFPDIVP2(1, 2, 2, 1);
    TTI_SFPMUL(0, 2, ZERO_LREG, 2, 7);
    TTI_SFPADD(0, 2, 0, 2, ONE_LREG);
    TTI_SFPSTORE(0, VECTOR_NEXT, 0, 2);
}
