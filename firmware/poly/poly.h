/* poly: y = x * x + p * x, tile by tile on the vector unit. */
#pragma once

#include "lib/done.h"
#include "lib/tensix.h"

struct poly_args {
    uint32_t count; /* tiles */
    uint32_t from, to;
    uint32_t p; /* fp32 bits */
};

extern volatile struct poly_args runtime_args;

#define BYTES 2048u
#define SEM_ROOM 3u /* halves that are free; 2 at first */
#define SEM_READY 4u
#define ROUNDS 32u
