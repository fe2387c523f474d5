/* What PROGRAM.toml tells the kernels: `args` of each core, in this order. */
#pragma once

#include "lib/cb.h"
#include "lib/tile.h"

struct args {
    uint32_t first, step, end; /* the tiles of the tensor that this core works on */
    uint32_t address;          /* of the tensor in DRAM, for reader and writer alone */
};

/* Circular buffers, [[tile.buffer]] of PROGRAM.toml. */
#define IN 0u
#define OUT 16u

#define DRAM_BANKS 8u /* tile i lies in bank i % 8 */

/* for (EACH_TILE(args, tile)) { ... } */
#define EACH_TILE(args, tile) \
    uint32_t tile = (args)->first; tile < (args)->end; tile += (args)->step
