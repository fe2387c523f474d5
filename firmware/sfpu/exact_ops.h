/* Operations whose results are exact or rounded once: selection, comparison, integers, casts. */
#pragma once

#include "sfpu/words.h"

static const uint32_t relu_words[] = {
    LOAD(0, 0), WHERE_LT0(0), BF16(0, 0), ALL_LANES, SAVE(0, 0),
};
static const uint32_t clamp_words[] = {LOAD(0, 0), MINIMUM(0, 13), MAXIMUM(0, 12), SAVE(0, 0)};
static const uint32_t leaky_words[] = {
    LOAD(0, 0), WHERE_LT0(0), MUL(0, 0, 12), ALL_LANES, SAVE(0, 0),
};

/* x + 0 makes zeros of denormals and of -0 first; the answer is in LReg 1. */
#define COMPARE(otherwise, ...)                                                           \
    {LOAD(0, 0), ADD(0, 0, ZERO), BF16(1, (otherwise) ? 0x3F80 : 0), __VA_ARGS__,         \
     BF16(1, (otherwise) ? 0 : 0x3F80), ALL_LANES, SAVE(1, 0)}

static const uint32_t eq_words[] = COMPARE(0, WHERE_EQ0(0));
static const uint32_t ne_words[] = COMPARE(0, WHERE_NE0(0));
static const uint32_t lt_words[] = COMPARE(0, WHERE_LT0(0));
static const uint32_t ge_words[] = COMPARE(0, WHERE_GE0(0));
static const uint32_t gt_words[] = COMPARE(0, WHERE_GE0(0), WHERE_NE0(0));
static const uint32_t le_words[] = COMPARE(1, WHERE_GE0(0), WHERE_NE0(0));

static const uint32_t where_words[] = {
    LOAD_BITS(0, 0), LOAD_BITS(1, 1), WHERE_EQ0(0), LOAD_BITS(1, 2), ALL_LANES, SAVE_BITS(1, 0),
};
static const uint32_t max_words[] = {
    LOAD_BITS(0, 0), LOAD_BITS(1, 1), MAXIMUM(0, 1), SAVE_BITS(0, 0),
};
static const uint32_t min_words[] = {
    LOAD_BITS(0, 0), LOAD_BITS(1, 1), MINIMUM(0, 1), SAVE_BITS(0, 0),
};
static const uint32_t add_int32_words[] = {
    LOAD_BITS(0, 0), LOAD_BITS(1, 1), INT_ADD(0, 1), SAVE_BITS(0, 0),
};
static const uint32_t shift_words[] = {
    LOAD_BITS(0, 0), LOAD_BITS(1, 1), TT_OP_SFPSHFT(0, 1, 0, 2), SAVE_BITS(0, 0),
};

/* Where 1 <= |x| < 2**31 the mantissa, shifted by the exponent; INT_MIN above; then the sign. */
static const uint32_t fp32_to_int32_words[] = {
    LOAD_BITS(0, 0),
    UNSIGNED(1, 0),
    TT_OP_SFPEXEXP(0, 0, 2, 10), /* lanes with exponent >= 0 */
    BF16(1, 0x8000),
    TT_OP_SFPIADD(-31 & 0xFFF, 2, 2, 1), /* of these, lanes with exponent < 31 */
    INT_ADD_IMM(2, 2, 8),
    TT_OP_SFPEXMAN(0, 0, 1, 0),
    TT_OP_SFPSHFT(0, 2, 1, 0),
    ALL_LANES,
    WHERE_LT0(0),
    INT_SUB_FROM(1, ZERO),
    ALL_LANES,
    SAVE_BITS(1, 0),
};

/* The magnitude converts, the sign is put back; the magnitude of INT_MIN looks negative. */
static const uint32_t int32_to_fp32_words[] = {
    LOAD_BITS(0, 0),
    TT_OP_SFPABS(0, 0, 1, 0),
    TT_OP_SFPCAST(1, 2, 0),
    TT_OP_SFPSETSGN(0, 2, 0, 0),
    WHERE_LT0(1),
    ADD_BF16(0, 0xCF00), /* -2**31 */
    ALL_LANES,
    SAVE_BITS(0, 0),
};

static const uint32_t fp32_to_bf16_words[] = {
    LOAD(0, 0), TT_OP_SFP_STOCH_RND(0, 0, 0, 0, 0, 1), SAVE(0, 0),
};
/* LReg 12 = 1, 13 = 0x7FFF, 14 = 0xFFFF0000: add half less one, and one when the result is odd. */
static const uint32_t fp32_to_bf16_rne_words[] = {
    LOAD_BITS(0, 0), SHIFT_IMM(1, 0, -16), TT_OP_SFPAND(0, 12, 1, 0), INT_ADD(0, 13),
    INT_ADD(0, 1),   TT_OP_SFPAND(0, 14, 0, 0), SAVE_BITS(0, 0),
};
static const uint32_t fp32_to_uint16_words[] = {
    LOAD(0, 0), MAXIMUM(0, ZERO), TT_OP_SFP_STOCH_RND(0, 0, 0, 0, 0, 6), SAVE_BITS(0, 0),
};
static const uint32_t approx_reciprocal_words[] = {
    LOAD(0, 0), TT_OP_SFPARECIP(0, 0, 0, 0), SAVE(0, 0),
};
