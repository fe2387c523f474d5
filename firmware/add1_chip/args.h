/* What the compute cores of add1_chip are told. */
#pragma once

#include "lib/cb.h"
#include "lib/tile.h"

struct add1_args {
    uint32_t first, step, end; /* the tiles of this core: first, first + step, ... below end */
    uint32_t scalar;           /* fp32 bits */
    uint32_t in, out;          /* circular buffers */
};
