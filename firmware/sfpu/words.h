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

#define LOAD(reg, slot) TT_SFPLOAD(SLOT_ROWS * (slot), STAY, AS_FP32, reg)
#define LOAD_BITS(reg, slot) TT_SFPLOAD(SLOT_ROWS * (slot), STAY, AS_BITS, reg)
#define SAVE(reg, slot) TT_SFPSTORE(SLOT_ROWS * (slot), NEXT, AS_FP32, reg)
#define KEEP(reg, slot) TT_SFPSTORE(SLOT_ROWS * (slot), STAY, AS_FP32, reg)
#define SAVE_BITS(reg, slot) TT_SFPSTORE(SLOT_ROWS * (slot), NEXT, AS_BITS, reg)

#define MAD(d, a, b, c) TT_SFPMAD(0, d, c, b, a)
#define MAD_NEG(d, a, b, c) TT_SFPMAD(1, d, c, b, a) /* -a * b + c */
#define MAD_SUB(d, a, b, c) TT_SFPMAD(2, d, c, b, a) /* a * b - c */
#define ADD(d, b, c) TT_SFPADD(0, d, c, b, ONE)
#define SUB(d, b, c) TT_SFPADD(2, d, c, b, ONE)
#define MUL(d, a, b) TT_SFPMUL(0, d, ZERO, b, a)
#define ADD_BF16(d, bits) TT_SFPADDI(0, d, bits)
#define MUL_BF16(d, bits) TT_SFPMULI(0, d, bits)

#define BF16(d, bits) TT_SFPLOADI(bits, 0, d)
#define UNSIGNED(d, value) TT_SFPLOADI(value, 2, d)
#define CONST(d, bits) TT_SFPLOADI((bits) & 0xFFFF, 10, d), TT_SFPLOADI((bits) >> 16, 8, d)

/* SFPSWAP: d gets the smaller or the greater of both, c (a constant here) stays. */
#define MINIMUM(d, c) TT_SFPSWAP(1, d, c)
#define MAXIMUM(d, c) TT_SFPSWAP(9, d, c)

/* Lanes go on where the condition holds, until ALL_LANES. */
#define WHERE_LT0(c) TT_SFPSETCC(0, 0, c, 0)
#define WHERE_NE0(c) TT_SFPSETCC(2, 0, c, 0)
#define WHERE_GE0(c) TT_SFPSETCC(4, 0, c, 0)
#define WHERE_EQ0(c) TT_SFPSETCC(6, 0, c, 0)
#define ALL_LANES TT_SFPENCC(0, 0, 0)

#define COPY(d, c) TT_SFPMOV(0, d, c)
#define NEGATE(d, c) TT_SFPMOV(1, d, c)
#define INT_ADD(d, c) TT_SFPIADD(4, d, c, 0)
#define INT_SUB_FROM(d, c) TT_SFPIADD(6, d, c, 0) /* c - d */
#define INT_ADD_IMM(d, c, imm) TT_SFPIADD(5, d, c, (imm) & 0xFFF)
#define SHIFT_IMM(d, c, imm) TT_SFPSHFT(5, d, c, (imm) & 0xFFF)

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
