/* flip: rows of 32 numbers to transposed tiles; unpack, math and pack hand on one tile at a time. */
#pragma once

#include "lib/done.h"
#include "lib/tensix.h"

struct flip_args {
    uint32_t tiles;
    uint32_t source, target;
};

extern volatile struct flip_args runtime_args;

#define TILE 2048u
#define FACE 512u
#define SEM_TILE 1u
