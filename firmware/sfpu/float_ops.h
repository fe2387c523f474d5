/* Transcendental operations: range reduction, polynomials, Newton steps. */
#pragma once

#include "sfpu/words.h"

/* exp: k = round(x / ln 2) from the low bits of a sum with 1.5 * 2**23, r = x - k * ln 2 in two
 * steps, exp(r) = 1 + r + r**2 * (1/2 + ...), and k into the exponent. LReg 0 to 3 are used. */
#define EXP_CONSTANTS                                                                     \
    {4, 0x3FB8AA3B}, {5, 0x4B400000},  /* 1 / ln 2, 1.5 * 2**23 */                        \
    {6, 0x3F317200}, {7, 0x35BFBE8E},  /* ln 2 in two parts */                            \
    {12, 0x42B170A4}, {13, 0xC2AE999A}, /* 88.72 and -87.3 bound x */                     \
    {14, 0x3C091805}, {11, 0x3D2AAB45} /* r**5, r**4 */

#define EXP_OF_LREG_0                                                                     \
    MINIMUM(0, 12), MAXIMUM(0, 13), MAD(1, 0, 4, 5), SUB(2, 1, 5), MAD_NEG(0, 2, 6, 0),   \
    MAD_NEG(0, 2, 7, 0), CONST(3, 0x3AB5B6F7u), MAD(3, 3, 0, 14), MAD(3, 3, 0, 11),       \
    CONST(2, 0x3E2AAA51u), MAD(3, 3, 0, 2), BF16(2, 0x3F00), MAD(3, 3, 0, 2),             \
    MAD(3, 3, 0, ONE), MAD(3, 3, 0, ONE), SHIFT_IMM(1, 1, 23), INT_ADD(3, 1) /* result */

static const uint32_t exp_words[] = {LOAD(0, 0), EXP_OF_LREG_0, SAVE(3, 0)};

/* Reciprocal of LReg 0 in LReg 1: the approximation and two Newton steps. */
#define RECIPROCAL_OF_LREG_0                                                              \
    TT_OP_SFPARECIP(0, 0, 1, 0), MAD_NEG(2, 0, 1, ONE), MAD(1, 1, 2, 1),                  \
    MAD_NEG(2, 0, 1, ONE), MAD(1, 1, 2, 1)

static const uint32_t reciprocal_words[] = {LOAD(0, 0), RECIPROCAL_OF_LREG_0, SAVE(1, 0)};

/* log: x = 2**e * m with m near 1, log x = e * ln 2 + t - t**2 / 2 + t**3 * P(t), t = m - 1. */
static const uint32_t log_words[] = {
    LOAD(0, 0),
    TT_OP_SFPEXEXP(0, 0, 1, 0),
    TT_OP_SFPSETEXP(127, 0, 0, 1),
    BF16(2, 0xBFB5), /* -1.4140625 */
    ADD(2, 0, 2),
    WHERE_GE0(2),
    TT_OP_SFPSETEXP(126, 0, 0, 1),
    INT_ADD_IMM(1, 1, 1),
    ALL_LANES,
    TT_OP_SFPCAST(1, 1, 3), /* to sign and magnitude, to fp32 */
    TT_OP_SFPCAST(1, 1, 0),
    ADD(0, 0, 11), /* t */
    MAD(3, 4, 0, 5),
    MAD(3, 3, 0, 6),
    MAD(3, 3, 0, 7),
    MAD(3, 3, 0, 12),
    MAD(3, 3, 0, 13),
    MAD(3, 3, 0, 14),
    CONST(2, 0x3EAAAAAAu),
    MAD(3, 3, 0, 2),
    MUL(2, 0, 0),
    MUL(3, 3, 0),
    ADD_BF16(3, 0xBF00),
    MAD(0, 3, 2, 0),
    CONST(2, 0x35BFBE8Eu), /* ln 2, lower part, upper part */
    MAD(0, 1, 2, 0),
    CONST(2, 0x3F317200u),
    MAD(0, 1, 2, 0),
    SAVE(0, 0),
};

#define LOG_CONSTANTS                                                                     \
    {4, 0xBD9C5A66}, {5, 0x3E02ADA3}, {6, 0xBE06C2A9}, {7, 0x3E116D11},                   \
    {12, 0xBE2A3922}, {13, 0x3E4CD004}, {14, 0xBE800114}, {11, 0xBF800000}

/* sqrt: y near x**-1/2 from the bits, three Newton steps, s = x * y, s += (x - s * s) * y / 2. */
#define RSQRT_STEP MUL(3, 2, 1), MAD_NEG(3, 3, 1, 13), MUL(1, 1, 3) /* (x / 2 * y) * y */

static const uint32_t sqrt_words[] = {
    LOAD(0, 0),
    SHIFT_IMM(1, 0, -1),
    INT_SUB_FROM(1, 12),
    COPY(2, 0),
    MUL_BF16(2, 0x3F00), /* x / 2 */
    RSQRT_STEP,
    RSQRT_STEP,
    RSQRT_STEP,
    MUL(3, 0, 1),
    MAD_NEG(0, 3, 3, 0),
    MUL_BF16(1, 0x3F00),
    MAD(3, 0, 1, 3),
    SAVE(3, 0),
};

/* sigmoid x = 1 / (1 + exp(-x)); the sum waits in slot 1. */
static const uint32_t sigmoid_sum_words[] = {
    LOAD(0, 0), NEGATE(0, 0), EXP_OF_LREG_0, TT_OP_SFPNOP, ADD(3, 3, ONE), SAVE(3, 1),
};
static const uint32_t sigmoid_words[] = {LOAD(0, 1), RECIPROCAL_OF_LREG_0, SAVE(1, 0)};

/* tanh x = 1 - 2 / (1 + exp(2 * x)), but x + x**3 * Q(x**2) below 0.55. */
static const uint32_t tanh_sum_words[] = {
    LOAD(0, 0), ADD(0, 0, 0), EXP_OF_LREG_0, TT_OP_SFPNOP, ADD(3, 3, ONE), SAVE(3, 1),
};
static const uint32_t tanh_large_words[] = {
    LOAD(0, 1), RECIPROCAL_OF_LREG_0, ADD(1, 1, 1), SUB(1, ONE, 1), SAVE(1, 1),
};
static const uint32_t tanh_words[] = {
    LOAD(0, 0),
    MUL(1, 0, 0),
    CONST(3, 0xBBCDDD27u),
    CONST(2, 0x3CACAB41u),
    MAD(3, 3, 1, 2),
    CONST(2, 0xBD5C95DDu),
    MAD(3, 3, 1, 2),
    CONST(2, 0x3E08869Eu),
    MAD(3, 3, 1, 2),
    CONST(2, 0xBEAAAAA6u),
    MAD(3, 3, 1, 2),
    MUL(3, 3, 1),
    MAD(3, 3, 0, 0),
    LOAD(2, 1),
    TT_OP_SFPABS(0, 0, 1, 1),
    ADD_BF16(1, 0xBF0D), /* -0.55078125 */
    WHERE_GE0(1),
    COPY(3, 2),
    ALL_LANES,
    SAVE(3, 0),
};

/* gelu x = x / (1 + exp(x * (A + B * x**2))), A = -2 * sqrt(2 / pi), B = 0.044715 * A. The
 * argument grows to 88, where half a unit of its last place is 32 of the result: it is z + e, z
 * rounded and e what was lost, left in slots 1 and 2, and exp(z + e) = exp(z) + exp(z) * e. */
#define GELU_CONSTANTS                                                                    \
    {4, 0x3FB8AA3B}, {5, 0x4B400000}, {6, 0x3F317200}, {7, 0x35BFBE8E},                   \
    {12, 0x42B16666}, /* 88.7: e is added after exp and must not overflow it */           \
    {13, 0xC2AE999A}, {14, 0x3C091805}, {11, 0x3D2AAB45}

#define GELU_X(reg) LOAD(reg, 0), MINIMUM(reg, 12), MAXIMUM(reg, 13) /* no infinity in z */

static const uint32_t gelu_argument_words[] = {
    GELU_X(0),
    MUL(1, 0, 0), /* t, x**2 rounded */
    CONST(2, 0xBD922279u),
    CONST(3, 0xBFCC422Au),
    MAD(3, 1, 2, 3), /* u, A + B * t rounded */
    BF16(0, 0xBFCC), /* upper part of A: its difference from u is exact */
    SUB(0, 0, 3),
    MAD(0, 1, 2, 0),
    BF16(2, 0xB125), /* lower part of B */
    MAD(0, 1, 2, 0),
    KEEP(3, 1),
    GELU_X(3),
    MAD_NEG(1, 3, 3, 1), /* t - x**2 */
    CONST(2, 0xBD922279u),
    MAD_NEG(0, 1, 2, 0),
    CONST(2, 0xBB04533Du),
    ADD(0, 0, 2), /* lower part of A: now what u lost */
    LOAD(1, 1),
    MUL(2, 3, 1), /* z */
    KEEP(2, 1),
    MAD_SUB(1, 3, 1, 2),
    MAD(1, 3, 0, 1), /* e */
    SAVE(1, 2),
};
static const uint32_t gelu_sum_words[] = {
    LOAD(0, 1), EXP_OF_LREG_0, LOAD(2, 2), MAD(3, 3, 2, 3), ADD(3, 3, ONE), SAVE(3, 1),
};
static const uint32_t gelu_words[] = {
    LOAD(0, 1), RECIPROCAL_OF_LREG_0, LOAD(2, 0), MUL(1, 1, 2), SAVE(1, 0),
};
