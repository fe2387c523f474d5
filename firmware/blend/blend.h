/* blend: sum i of tile t is weights[t] * (x[8 t + 2 i] + x[8 t + 2 i + 1]), page 2 i + t of y. */
#pragma once

#include "lib/cb.h"
#include "lib/tile.h"

struct blend_args {
    uint32_t index, sums;      /* of this tile: its place, how many it makes */
    uint32_t x, weights, y;    /* tensors in DRAM */
    uint32_t banks;
    uint32_t other_x, other_y; /* the other tile */
    uint32_t slots;            /* L1 of the second tile: SLOTS pages of the first */
};

#define CB_X 0u
#define CB_WEIGHTS 1u
#define CB_SUMS 16u
#define PAIR 2u

#define SLOTS 2u
#define CREDITS 0u /* semaphore of the first tile: free slots so far */
#define SENT 1u    /* semaphore of the second tile: slots that were filled */
