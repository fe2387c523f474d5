/* The same results through SFPLOADMACRO: several instructions in the cycle of one word. */
#pragma once

#include "sfpu/words.h"

#define MACRO(index, reg, slot, step, mode) \
    TT_OP_SFPLOADMACRO((index) << 2 | ((reg) & 3), mode, step, SLOT_ROWS * (slot) | (reg) >> 2)

/* Bytes of a sequence register: what, after how many words, and through LReg 16 or not. */
#define STORE 3u
#define TEMPLATE(i) (4u + (i))
#define AFTER(words) ((words) << 3)
#define LREG_16 0x40u
#define LOADED_IS_VB 0x80u
#define SEQUENCE(simple, mad, round, store) \
    ((simple) | (mad) << 8 | (round) << 16 | (uint32_t)(store) << 24)
/* All delays count words; the store's mode is `mode`. */
#define COUNT_WORDS(mode) (0xF00u | (mode))

/* Writing LReg 12 + i stores the word as template i instead of executing it. */
#define AS_TEMPLATE(i) (12u + (i))

struct macros {
    struct pass pass;       /* one or more rows per round */
    uint32_t rounds;
    uint32_t templates[4];  /* words that store themselves, 0 = none */
    uint32_t sequences[4];
    uint32_t misc;
};

/* where: condition and flags one word apart; the store meets the next round's first word. */
static const uint32_t where_macro_words[] = {
    MACRO(0, 0, 0, STAY, AS_BITS),
    MACRO(1, 0, 1, STAY, AS_BITS),
    TT_OP_SFPLOAD(0, AS_BITS, NEXT, SLOT_ROWS * 2),
};
static const struct macros where_macros = {
    PASS(where_macro_words),
    32,
    {TT_OP_SFPSETCC(0, 0, AS_TEMPLATE(0), 6), TT_OP_SFPENCC(0, 0, AS_TEMPLATE(1), 0)},
    {SEQUENCE(TEMPLATE(0), 0, 0, STORE | AFTER(2)), SEQUENCE(TEMPLATE(1), 0, 0, 0)},
    COUNT_WORDS(AS_BITS),
};

/* One word per row; result and store pass through LReg 16. */
static const uint32_t approx_reciprocal_macro_words[] = {MACRO(0, 0, 0, NEXT, AS_FP32)};
static const struct macros approx_reciprocal_macros = {
    PASS(approx_reciprocal_macro_words),
    32,
    {TT_OP_SFPARECIP(0, 0, AS_TEMPLATE(0), 0)},
    {SEQUENCE(TEMPLATE(0) | LREG_16, 0, 0, STORE | LREG_16 | AFTER(1))},
    COUNT_WORDS(AS_FP32),
};

/* SFPSWAP takes two cycles and wants the sub-units idle in the second. */
static const uint32_t fp32_to_uint16_macro_words[] = {
    MACRO(0, 0, 0, NEXT, AS_FP32),
    TT_OP_SFPNOP,
    MACRO(0, 1, 0, NEXT, AS_FP32),
    TT_OP_SFPNOP,
};
static const struct macros fp32_to_uint16_macros = {
    PASS(fp32_to_uint16_macro_words),
    16,
    {TT_OP_SFPSWAP(0, ZERO, AS_TEMPLATE(0), 9), TT_OP_SFP_STOCH_RND(0, 0, 0, 0, AS_TEMPLATE(1), 6)},
    {SEQUENCE(TEMPLATE(0) | LOADED_IS_VB, 0, TEMPLATE(1) | LREG_16 | AFTER(2),
              STORE | LREG_16 | AFTER(3))},
    COUNT_WORDS(AS_BITS),
};
