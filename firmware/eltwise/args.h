/* What the host and the four cores of eltwise agree on in L1: C = A op B, element by element. */
#pragma once

#include "lib/types.h"

#define OP_ADD 0u
#define OP_SUB 1u
#define OP_MUL 2u

/* How a tile of B meets a tile of A: as it is, or its first column in every column, its first row
 * in every row, its first element everywhere; the bits of ELWADD's instr_mod19. */
#define BROADCAST_NONE 0u
#define BROADCAST_COLUMN 1u
#define BROADCAST_ROW 2u
#define BROADCAST_SCALAR 3u

struct eltwise_args {
    uint32_t n_tiles; /* 32x32 bf16 tiles, 0 or more */
    uint32_t op;
    uint32_t phases;  /* fidelity of a product, 1 LoFi to 4 HiFi4; 1 for sums, which have none */
    uint32_t a, b, c; /* byte addresses in L1, multiples of 16; C apart from A and B */
    uint32_t broadcast;
};

/* The linker script fixes the address. */
extern volatile struct eltwise_args runtime_args;
