/* What the host and the four cores of bench agree on in L1: how often which instructions run. */
#pragma once

#include "lib/types.h"

#define BENCH_MVMUL 0u  /* 16 MVMUL per repetition */
#define BENCH_ELWADD 1u /* 8 ELWADD per repetition */
#define BENCH_SFPMAD 2u /* 32 SFPMAD per repetition */
#define BENCH_CHAIN 3u  /* a tile through 30 vector instructions per repetition: 32 * 30 */
#define BENCH_UNPACK 4u /* a tile to SrcA and one to SrcB per repetition */
#define BENCH_PACK 5u   /* a tile to L1 per repetition */

/* One pair of tiles from `a` and `b`, the work `repeat` times, one tile to `c`; `rounds` times. */
struct bench_args {
    uint32_t what;
    uint32_t rounds;
    uint32_t repeat;  /* at least 1 */
    uint32_t a, b, c; /* byte addresses in L1, multiples of 16: BUFFER_TILES tiles each */
};

#define BUFFER_TILES 8u

/* The linker script fixes the address. */
extern volatile struct bench_args runtime_args;
