/* Address modes of the matrix unit that the operations share, and the way back for both banks. */
#pragma once

#include "lib/math_half.h"

#define STAY 0u
#define NEXT_ROWS 1u /* eight rows on in SrcA, SrcB and Dst */
#define NEXT_PASS 2u /* all back to the start, next fidelity phase */
#define LOWER_HALF 3u /* matmul: the lower 8 rows of the same faces */
#define NEXT_B 4u     /* matmul: the same face of A, the face of B to the right */
#define NEXT_A 5u     /* matmul: back to the left face of B, the face of A below */
#define NEXT_INNER 6u /* matmul: A1 with B2, C0 again */
/* 7 is the vector unit's, see sfpu.h. */

/* Kernels that do not multiply matrices use the last two otherwise. */
#define NEXT_ROWS_WIDE 5u /* eight rows on in SrcA, sixteen in Dst */
#define NEXT_SOURCE 6u    /* eight rows on in SrcA and SrcB */

#define MOVE_8_ROWS 2u
#define MOVE_4_ROWS_D2B 2u
#define MOVE_4_ROWS_B2D 4u

/* All counters to zero, both banks back to the unpackers. */
static inline void release_banks(void) {
    TTI_SETRWC(CLEAR_SRCA_SRCB, 0, 0, 0, 0, RWC_ALL);
}
