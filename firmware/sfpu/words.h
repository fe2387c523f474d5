/* Short names for the words of a pass over a tile, 32 datums at a time. */
#pragma once

#include "lib/math_half.h"
#include "sfpu/args.h"

#define STAY 0u /* address modes: nothing moves; two Dst rows on, the next 32 datums */
#define NEXT 7u

#define AS_FP32 3u
#define AS_BITS 4u

#define ZERO 9u /* constant LRegs */
#define ONE 10u

#define LOAD(reg, slot) TT_OP_SFPLOAD(reg, AS_FP32, STAY, SLOT_ROWS * (slot))
#define LOAD_BITS(reg, slot) TT_OP_SFPLOAD(reg, AS_BITS, STAY, SLOT_ROWS * (slot))
#define SAVE(reg, slot) TT_OP_SFPSTORE(reg, AS_FP32, NEXT, SLOT_ROWS * (slot))
#define KEEP(reg, slot) TT_OP_SFPSTORE(reg, AS_FP32, STAY, SLOT_ROWS * (slot))
#define SAVE_BITS(reg, slot) TT_OP_SFPSTORE(reg, AS_BITS, NEXT, SLOT_ROWS * (slot))

#define MAD(d, a, b, c) TT_OP_SFPMAD(a, b, c, d, 0)
#define MAD_NEG(d, a, b, c) TT_OP_SFPMAD(a, b, c, d, 1) /* -a * b + c */
#define MAD_SUB(d, a, b, c) TT_OP_SFPMAD(a, b, c, d, 2) /* a * b - c */
#define ADD(d, b, c) TT_OP_SFPADD(ONE, b, c, d, 0)
#define SUB(d, b, c) TT_OP_SFPADD(ONE, b, c, d, 2)
#define MUL(d, a, b) TT_OP_SFPMUL(a, b, ZERO, d, 0)
#define ADD_BF16(d, bits) TT_OP_SFPADDI(bits, d, 0)
#define MUL_BF16(d, bits) TT_OP_SFPMULI(bits, d, 0)

#define BF16(d, bits) TT_OP_SFPLOADI(d, 0, bits)
#define UNSIGNED(d, value) TT_OP_SFPLOADI(d, 2, value)
#define CONST(d, bits) TT_OP_SFPLOADI(d, 10, (bits) & 0xFFFF), TT_OP_SFPLOADI(d, 8, (bits) >> 16)

/* SFPSWAP: d gets the smaller or the greater of both, c (a constant here) stays. */
#define MINIMUM(d, c) TT_OP_SFPSWAP(0, c, d, 1)
#define MAXIMUM(d, c) TT_OP_SFPSWAP(0, c, d, 9)

/* Lanes go on where the condition holds, until ALL_LANES. */
#define WHERE_LT0(c) TT_OP_SFPSETCC(0, c, 0, 0)
#define WHERE_NE0(c) TT_OP_SFPSETCC(0, c, 0, 2)
#define WHERE_GE0(c) TT_OP_SFPSETCC(0, c, 0, 4)
#define WHERE_EQ0(c) TT_OP_SFPSETCC(0, c, 0, 6)
#define ALL_LANES TT_OP_SFPENCC(0, 0, 0, 0)

#define COPY(d, c) TT_OP_SFPMOV(0, c, d, 0)
#define NEGATE(d, c) TT_OP_SFPMOV(0, c, d, 1)
#define INT_ADD(d, c) TT_OP_SFPIADD(0, c, d, 4)
#define INT_SUB_FROM(d, c) TT_OP_SFPIADD(0, c, d, 6) /* c - d */
#define INT_ADD_IMM(d, c, imm) TT_OP_SFPIADD((imm) & 0xFFF, c, d, 5)
#define SHIFT_IMM(d, c, imm) TT_OP_SFPSHFT((imm) & 0xFFF, c, d, 5)

/* The words of one pass; the replay buffer holds 32. */
struct pass {
    const uint32_t *words;
    uint32_t count;
};

#define PASS(words) {words, sizeof(words) / sizeof(words[0])}

/* A value for an LReg that the passes of an operation leave alone: 4 to 7, 11 to 14. */
struct constant {
    uint32_t reg, bits;
};

struct operation {
    struct pass passes[3];
    struct constant constants[8]; /* ends at reg 0 */
};
