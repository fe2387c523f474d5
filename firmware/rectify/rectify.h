/* rectify: sum of max(a - b, 0) over pairs of tiles, where the difference is above a threshold; then
 * the rows of the sum, those with most datums above 0 first. */
#pragma once

#include "lib/done.h"
#include "lib/tensix.h"

struct rectify_args {
    uint32_t pairs;
    uint32_t threshold; /* fp32 bits */
    uint32_t a, b;
    uint32_t sum;
    uint32_t ranks; /* 32 words */
};

extern volatile struct rectify_args runtime_args;

/* What T0 and T2 do in one turn; BRISC writes all of them first. */
struct turn {
    uint32_t a, b, out, add;
};

#define TURNS ((volatile struct turn *)0x20000)
#define MOST_TURNS 16u

#define TILE 2048u
#define ROWS 32u
#define SEM_FULL 1u   /* halves that math has filled */
#define SEM_UNPACK 7u /* contexts of the unpackers in use */
