/* What the host and the four cores of matmul agree on in L1: C = A @ B. */
#pragma once

#include "lib/types.h"

/* Matrices are 32x32 bf16 tiles in row-major order: A has m x k, B has k x n, C has m x n. */
struct matmul_args {
    uint32_t m, k, n; /* tiles; k at least 1 */
    uint32_t phases;  /* fidelity: 1 LoFi, 2 HiFi2, 3 HiFi3, 4 HiFi4 */
    uint32_t a, b, c; /* byte addresses in L1, multiples of 16; C apart from A and B */
};

/* The linker script fixes the address. */
extern volatile struct matmul_args runtime_args;
