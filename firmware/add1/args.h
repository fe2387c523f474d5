/* What the host and the four cores of add1 agree on in L1. */
#pragma once

#include "lib/types.h"

struct add1_args {
    uint32_t n_tiles; /* 32x32 bf16 tiles, 0 or more */
    uint32_t scalar;  /* fp32 bits */
    uint32_t src;     /* byte addresses in L1, multiples of 16 */
    uint32_t dst;
};

#define TILE_BYTES 2048u
#define FACES 4u
#define FACE_DATUMS 256u

/* Both symbols are addresses that the linker script fixes. */
extern volatile struct add1_args runtime_args;
extern volatile uint32_t done_words[4]; /* BRISC, TRISC0, TRISC1, TRISC2 */

#define DONE_BRISC 0xD0E0u
#define DONE_TRISC(n) (0xD0E1u + (n))
