/* A tile of C: 16 MVMUL per pair of tiles and fidelity phase, recorded for a MOP. */
#ifndef MATMUL_TILE_H
#define MATMUL_TILE_H

#include "lib/math_half.h"

#define MVMULS 16u

/* MVMUL adds 8 rows of a face of A (SrcB) times a face of B (SrcA) to 8 rows of a face of C (Dst).
 * Faces lie 16 rows apart: 0 top left, 1 top right, 2 bottom left, 3 bottom right. */
#define LOWER_HALF 0u /* the lower 8 rows of the same faces */
#define NEXT_B 1u     /* the same face of A, the face of B to the right */
#define NEXT_A 2u     /* back to the left face of B, the face of A below */
#define NEXT_INNER 4u /* A1 with B2, C0 again: the second half of the inner dimension */
#define NEXT_PASS 5u  /* all back to the start, next fidelity phase */

static void matmul_address_modes(void) {
    ADDR_MODE(LOWER_HALF, AB_STEP(0, 8), DST_STEP(8));
    ADDR_MODE(NEXT_B, AB_STEP(16, 0) | AB_SRCB_CR, DST_STEP(8));
    ADDR_MODE(NEXT_A, AB_STEP(0, 32) | AB_SRCA_CR | AB_SRCB_CR, DST_STEP(8));
    /* SrcB stands at face 2: 48 rows on, modulo 64, is face 1. */
    ADDR_MODE(NEXT_INNER, AB_STEP(32, 48) | AB_SRCA_CR | AB_SRCB_CR, DST_CR);
    ADDR_MODE(NEXT_PASS, AB_CLEAR, DST_CLEAR | NEXT_PHASE);
    TTI_SETRWC(0, 0, 0, 0, 0, RWC_ALL);
}

/* The four faces of C, from one column of faces of A and one row of faces of B. */
#define RECORD_INNER(last) \
    do { \
        TTI_MVMUL(0, 0, LOWER_HALF, 0); \
        TTI_MVMUL(0, 0, NEXT_B, 0); \
        TTI_MVMUL(0, 0, LOWER_HALF, 0); \
        TTI_MVMUL(0, 0, NEXT_A, 0); \
        TTI_MVMUL(0, 0, LOWER_HALF, 0); \
        TTI_MVMUL(0, 0, NEXT_B, 0); \
        TTI_MVMUL(0, 0, LOWER_HALF, 0); \
        TTI_MVMUL(0, 0, last, 0); \
    } while (0)

/* Recorded once, without executing; the MOP plays it. */
static void record_tile(void) {
    TTI_REPLAY(0, MVMULS, 0, 1);
    RECORD_INNER(NEXT_INNER);
    RECORD_INNER(NEXT_PASS);
}

#endif
