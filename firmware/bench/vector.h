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
    TTI_SFPENCC(3, 0, 0, 10);      /* all lanes on */
    TTI_SFPLOADI(6, 0, 0x3F00);    /* bf16 */
    TTI_SFPLOADI(7, 0, 0x3E80);
}

/* Four accumulators and the factor: 160 datums of the tile. */
static inline void load_operands(void) {
    TTI_SFPLOAD(0, 0, VECTOR_STAY, OPERAND_ROWS);
    TTI_SFPLOAD(1, 0, VECTOR_STAY, OPERAND_ROWS + 4);
    TTI_SFPLOAD(2, 0, VECTOR_STAY, OPERAND_ROWS + 8);
    TTI_SFPLOAD(3, 0, VECTOR_STAY, OPERAND_ROWS + 12);
    TTI_SFPLOAD(4, 0, VECTOR_STAY, OPERAND_ROWS + 16);
}

static inline void store_results(void) {
    TTI_SFPSTORE(0, 0, VECTOR_STAY, 0);
    TTI_SFPSTORE(1, 0, VECTOR_STAY, 4);
    TTI_SFPSTORE(2, 0, VECTOR_STAY, 8);
    TTI_SFPSTORE(3, 0, VECTOR_STAY, 12);
}

/* LReg k = LReg k * 0.5 + LReg4, in turns, so that none needs the result of the one before. */
static inline void record_mads(void) {
    TTI_REPLAY(0, 32, 0, 1);
    for (uint32_t i = 0; i < 32; i++) {
        TT_PUSH(TTO_SFPMAD | TTF_SFPMAD_lreg_dest(i % 4) | TTF_SFPMAD_lreg_src_a(i % 4) |
                TTF_SFPMAD_lreg_src_b(6) | TTF_SFPMAD_lreg_src_c(4));
    }
}

/* A polynomial, its parts put together again, a branch on the sign of the input, a clamp. */
static inline void record_chain(void) {
    TTI_REPLAY(0, CHAIN, 0, 1);
    TTI_SFPLOAD(0, 0, VECTOR_STAY, OPERAND_ROWS);
    TTI_SFPABS(0, 0, 1, 1);
    TTI_SFPMAD(1, 6, 7, 2, 0);
    TTI_SFPMAD(2, 1, 6, 2, 0);
    TTI_SFPMAD(2, 1, ONE_LREG, 2, 0);
    TTI_SFPMUL(2, 2, ZERO_LREG, 3, 0);
    TTI_SFPADD(ONE_LREG, 3, 1, 3, 0);
    TTI_SFPEXEXP(0, 3, 4, 0);
    TTI_SFPIADD(1, 4, 4, 5);
    TTI_SFPEXMAN(0, 3, 5, 0);
    TTI_SFPSHFT(3, 0, 4, 1);
    TTI_SFPOR(0, 4, 5, 0);
    TTI_SFPSETEXP(126, 3, 5, 1);
    TTI_SFPMOV(0, 3, 4, 0);
    TTI_SFPAND(0, 2, 4, 0);
    TTI_SFPMUL(3, 5, ZERO_LREG, 5, 0);
    TTI_SFPADDI(0x3F80, 5, 0);
    TTI_SFPMULI(0x3F00, 5, 0);
    TTI_SFPSETCC(0, 0, 0, 0);
    TTI_SFPMAD(5, 6, 0, 5, 0);
    TTI_SFPCOMPC(0, 0, 0, 0);
    TTI_SFPMAD(5, 7, 1, 5, 0);
    TTI_SFPENCC(3, 0, 0, 10);
    TTI_SFPSETSGN(0, 5, 4, 0);
    TTI_SFPSWAP(0, 5, 3, 1);
    TTI_SFPMAD(6, 5, 6, 2, 0);
    TTI_SFPDIVP2(1, 2, 2, 1);
    TTI_SFPMUL(7, 2, ZERO_LREG, 2, 0);
    TTI_SFPADD(ONE_LREG, 2, 0, 2, 0);
    TTI_SFPSTORE(2, 0, VECTOR_NEXT, 0);
}
