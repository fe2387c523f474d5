/* What the host and the four cores of matmul agree on in L1: C = A @ B. */
#pragma once

#include "lib/done.h"
#include "lib/tensix.h"
#include "lib/tile.h"
#include "lib/types.h"

#define INPUT_BF16 0u
#define INPUT_BFP8 1u

/* How the sums over blocks of K meet: partial sums of all blocks but the last go to L1. */
#define PARTIALS_RELOAD 0u /* each block starts from those of the block before */
#define PARTIALS_L1 1u     /* the packer adds a block's to those in L1; the last starts from them */

/* Matrices are 32x32 tiles in row-major order: A has m x k, B has k x n, C (bf16) has m x n. In
 * the arguments from `input` on 0 is the plain case: bf16, 16-bit Dst, all of K at once, one tile
 * of C in a Dst half. */
struct matmul_args {
    uint32_t m, k, n; /* tiles; k at least 1 */
    uint32_t phases;  /* fidelity: 1 LoFi, 2 HiFi2, 3 HiFi3, 4 HiFi4 */
    uint32_t a, b, c; /* byte addresses in L1, multiples of 16; C apart from A and B */
    uint32_t input;   /* format of A and B */
    uint32_t fp32;    /* 1: 32-bit Dst, partial sums in fp32; 0: both bf16 */
    uint32_t block_k; /* tiles of K in a block, divides k; 0: all */
    uint32_t rows, columns; /* a subblock of C, in a Dst half at once; they divide m and n; 0: 1 */
    uint32_t mode;     /* PARTIALS_... */
    uint32_t partials; /* address of m x n tiles for partial sums, if there is more than a block */
};

/* The linker script fixes the address. */
extern volatile struct matmul_args runtime_args;

/* Subblocks of partial sums that pack has written, over all blocks: unpack waits for them. */
#define PACKED_SUBBLOCKS done_words[4]

/* The same with 0 replaced: read once by each core. */
struct matmul_shape {
    uint32_t m, k, n, blocks, block_k, rows, columns, tiles, input_bytes, partial_bytes;
};

static inline struct matmul_shape matmul_shape(void) {
    struct matmul_shape s;
    s.m = runtime_args.m;
    s.k = runtime_args.k;
    s.n = runtime_args.n;
    s.block_k = runtime_args.block_k ? runtime_args.block_k : s.k;
    s.rows = runtime_args.rows ? runtime_args.rows : 1;
    s.columns = runtime_args.columns ? runtime_args.columns : 1;
    s.blocks = s.block_k ? s.k / s.block_k : 0;
    s.tiles = s.rows * s.columns;
    s.input_bytes = runtime_args.input == INPUT_BFP8 ? BFP8_TILE_BYTES : TILE_BYTES;
    s.partial_bytes = runtime_args.fp32 ? FP32_TILE_BYTES : TILE_BYTES;
    return s;
}

/* Whether a block starts from partial sums in L1. */
static inline uint32_t starts_from_partials(const struct matmul_shape *s, uint32_t block) {
    return block > 0 && (runtime_args.mode == PARTIALS_RELOAD || block == s->blocks - 1);
}

/* All three TRISCs go through blocks and subblocks in the same order: for each block of K, for
 * each row of subblocks, for each of its columns. */
#define FOR_SUBBLOCKS(s, row, column) \
    for (uint32_t row = 0; row < (s)->m; row += (s)->rows) \
        for (uint32_t column = 0; column < (s)->n; column += (s)->columns)
