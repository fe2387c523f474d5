/* What the host tells the three kernels: one struct of words at 0x20000. */
#pragma once

#include "lib/types.h"

/* Operation of each kernel. */
enum {
    UNPACK_A,
    UNPACK_AB,
    UNPACK_A_TRANSPOSED,
    UNPACK_TILIZE,      /* a row-major tile of datums of 16 or 32 bits */
    UNPACK_REDUCE,
    UNPACK_A_EXCHANGED, /* faces 0 2 1 3, each as it is */
    UNPACK_A_THEN_B,    /* a tile of A, then one of B, both to SrcA */
    UNPACK_TO_DST,      /* 32-bit datums to Dst */
    UNPACK_UNTILIZE,    /* row by row: 16 rows of SrcA are 8 rows of the row-major tile */
    UNPACK_FACE_PAIRS,  /* face by face to SrcA and SrcB */
    UNPACK_B_FACES,     /* a whole tile to SrcA, `faces` faces to SrcB */
    UNPACK_A_ONLY,      /* face by face; SrcB is left alone */
    UNPACK_FAST_TILIZE, /* row by row of `width` tiles: 8 rows of SrcA each, a bank is 8 rows */
    UNPACK_TOPK,        /* values (a) and indices (b), transposed; see topk.h */
};
enum {
    MATH_COPY,
    MATH_ADD,
    MATH_SUB,
    MATH_MUL,
    MATH_MATMUL,
    MATH_TILIZE,
    MATH_REDUCE,
    MATH_TRANSPOSE,   /* copy, then each face of Dst by way of SrcB */
    MATH_COPY_TWO,    /* two tiles, one behind the other */
    MATH_NOTHING,
    MATH_COPY_BY_ADD, /* copy as a sum with zero: what 32-bit Dst and uint8 need */
    MATH_COPY_BLOCK,  /* `inner` tiles, one behind the other */
    MATH_ADD_FACES,   /* face by face; `faces` of them */
    MATH_SUB_FACES,
    MATH_MUL_FACES,
    MATH_FAST_TILIZE,
    MATH_FAST_UNTILIZE, /* upper faces of `inner` tiles, then the lower ones */
    MATH_TOPK,
    MATH_MOVE_B, /* faces of SrcB, with `broadcast` */
};
enum {
    PACK_TILE,
    PACK_UNTILIZE,
    PACK_BLOCK_UNTILIZE, /* `width` tiles side by side, row by row */
    PACK_BLOCK_DENSE,    /* the same of tiles of two faces, two tiles at a time */
    PACK_FAST_TILIZE,    /* `width` tiles, from rows that lie 16 apart */
    PACK_FAST_UNTILIZE,
    PACK_TOPK, /* a tile of values, then one of indices */
};

/* Bits of `flags`. */
#define UNSIGNED_IN 1u   /* 8-bit integers in L1 have no sign */
#define UNSIGNED_OUT 2u
#define E4M3_IN 4u       /* fp8 in L1 is e4m3, else e5m2 */
#define E4M3_OUT 8u
#define ROUND_10_BITS 16u /* the packer's early conversion to fp16 */
#define READ_INT8 32u     /* the packer keeps the cells' bits */
#define SMALLEST_FIRST 64u /* top-k */

/* Data formats are the hardware's numbers: 0 fp32, 1 fp16, 4 tf32, 5 bf16, 6 bfp8, 8 int32... */
struct params {
    uint32_t unpack, math, pack;
    uint32_t sfpu;              /* vector operation on every datum of Dst, see sfpu.h; 0 = none */
    uint32_t reduce;            /* 0 columns, 1 rows; + 4: maximum instead of sum. Into Dst row 0 */
    uint32_t phases;            /* fidelity phases of multiplications, 1 to 4 */
    uint32_t tiles;             /* output tiles */
    uint32_t inner;             /* tiles of each operand per output tile */
    uint32_t in, src, dst, out; /* formats in L1, in SrcA and SrcB, of the packer's input, in L1 */
    uint32_t dst32;             /* 32-bit Dst */
    uint32_t int8;              /* integer arithmetic in the matrix unit */
    uint32_t a, b, c;           /* byte addresses in L1, multiples of 16 */
    uint32_t in_bytes;          /* bytes of an input tile, headers included */
    uint32_t out_bytes;         /* bytes of an output tile */
    uint32_t accumulate;        /* sums add to Dst, over `inner` tiles */
    uint32_t relu;              /* the packer's relu mode, and its threshold above bit 16 */
    uint32_t l1_acc;            /* all output tiles are added to the one at c */
    uint32_t faces, face_rows;  /* of a tile: 1, 2 or 4 faces of 1 to 16 rows */
    uint32_t width;             /* tiles side by side in a row-major block */
    uint32_t b_bytes;           /* bytes of a tile of b */
    uint32_t flags;
    uint32_t broadcast; /* in SrcB: 1 column 0, 2 row 0 of eight rows (moves: of a face), 3 both */
};

/* The linker script fixes the address, 0x20000. */
extern const volatile struct params runtime_args;
