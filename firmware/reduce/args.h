/* What the host and the four cores of reduce agree on in L1. */
#pragma once

#include "lib/done.h"
#include "lib/tensix.h"
#include "lib/tile.h"
#include "lib/types.h"

#define OP_SUM 0u /* times `scale`: 1 for sums, 1 / count for means */
#define OP_MAX 1u /* `scale` is 1 */

#define DIM_ROW 0u    /* every row to one number: column 0 of m tiles */
#define DIM_COLUMN 1u /* every column to one number: row 0 of n tiles */
#define DIM_SCALAR 2u /* everything to one number: element 0 of one tile */

/* The input has m x n bf16 tiles in row-major order. Output tiles are 0 outside the results. */
struct reduce_args {
    uint32_t m, n; /* tiles, at least 1 */
    uint32_t op, dim;
    uint32_t scale;  /* a float whose low 16 bits are 0, that is, a bf16 */
    uint32_t phases; /* fidelity of a sum, 1 LoFi to 4 HiFi4; 1 for a maximum */
    uint32_t src, dst, scaler; /* addresses in L1, multiples of 16; 512 bytes of scratch at scaler */
};

/* The linker script fixes the address. */
extern volatile struct reduce_args runtime_args;

#define FACE_BYTES (FACE_DATUMS * 2u)

/* Row of the scaler's face that holds 1 in every datum: the second step of a scalar takes it. */
#define ONES_ROW 8u

static inline uint32_t outputs(void) {
    uint32_t dim = runtime_args.dim;
    return dim == DIM_ROW ? runtime_args.m : dim == DIM_COLUMN ? runtime_args.n : 1;
}

/* Tiles that an output tile is made from. */
static inline uint32_t inputs(void) {
    uint32_t m = runtime_args.m, n = runtime_args.n, dim = runtime_args.dim;
    return dim == DIM_ROW ? n : dim == DIM_COLUMN ? m : m * n;
}

/* An output tile has two independent parts, upper and lower or left and right, or one. The faces of
 * a part are pooled into one row of Dst. */
static inline uint32_t parts(void) { return runtime_args.dim == DIM_SCALAR ? 1 : 2; }

static inline uint32_t faces_of_part(void) { return FACES / parts(); }
