/* What the host and the four cores of sfpu agree on in L1: D = op(A, B, C), element by element. */
#pragma once

#include "lib/types.h"

enum {
    OP_EXP,
    OP_LOG,
    OP_RECIPROCAL,
    OP_SQRT,
    OP_SIGMOID,
    OP_TANH,
    OP_GELU, /* x * sigmoid(2 * sqrt(2 / pi) * (x + 0.044715 * x**3)) */
    OP_RELU,
    OP_CLAMP, /* between p0 and p1 */
    OP_LEAKY, /* p0 * x below zero */
    OP_EQ,    /* the six comparisons with zero give 1.0 or 0.0; denormals count as zero */
    OP_NE,
    OP_LT,
    OP_GT,
    OP_LE,
    OP_GE,
    OP_WHERE, /* B where A is not 0, else C */
    OP_MAX,
    OP_MIN,
    OP_ADD_INT32,
    OP_SHIFT,            /* A by B: left when B >= 0, else right by -B, filling with the sign */
    OP_FP32_TO_INT32,    /* towards zero; INT_MIN beyond the range */
    OP_INT32_TO_FP32,    /* nearest even */
    OP_FP32_TO_BF16,     /* nearest, halves away from zero; the upper half of the result */
    OP_FP32_TO_BF16_RNE, /* nearest even */
    OP_FP32_TO_UINT16,   /* nearest, halves away from zero, saturated */
    OP_APPROX_RECIPROCAL, /* 7 bits */
    OPS
};

struct sfpu_args {
    uint32_t n_tiles;   /* 32x32 tiles of 32-bit datums, 0 or more */
    uint32_t op;
    uint32_t macro;     /* 1: with SFPLOADMACRO, where the operation has such a form */
    uint32_t inputs;    /* 1 to 3 */
    uint32_t in[3];     /* byte addresses in L1, multiples of 16 */
    uint32_t out;       /* apart from the inputs */
    uint32_t p0, p1;    /* fp32 patterns */
};

/* The linker script fixes the address. */
extern volatile struct sfpu_args runtime_args;

#define SFPU_TILE_BYTES 4096u

/* Tiles go round through two Dst halves: free, filled by the unpacker, then SEMAPHORE_MATH_PACK. */
#define SEMAPHORE_DST_FREE 3u
#define SEMAPHORE_DST_FILLED 2u

/* A tile of 32-bit datums takes 64 rows of a half. */
#define SLOT_ROWS 64u
