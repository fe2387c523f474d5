/* TRISC1: multiplies and accumulates all of this core's tiles of C in one Dst half. */
#include "lib/math_half.h"
#include "matmul_mcast/args.h"

#define MVMULS 16u

/* MVMUL adds 8 rows of a face of A (SrcB) times a face of B (SrcA) to 8 rows of a face of C (Dst).
 * Faces lie 16 rows apart: 0 top left, 1 top right, 2 bottom left, 3 bottom right. */
#define LOWER_HALF 0u /* the lower 8 rows of the same faces */
#define NEXT_B 1u     /* the same face of A, the face of B to the right */
#define NEXT_A 2u     /* back to the left face of B, the face of A below */
#define NEXT_INNER 4u /* A1 with B2, C0 again: the second half of the inner dimension */
#define NEXT_PASS 5u  /* all back to the start, next fidelity phase */

static void configure(void) {
    TTI_ZEROACC(0, 0, 0, 0, 3); /* all of Dst */
    TTI_SEMINIT(SEM_SEL(SEMAPHORE_MATH_PACK), 0, 2);
    ADDR_MODE(LOWER_HALF, AB_STEP(0, 8), DST_STEP(8));
    ADDR_MODE(NEXT_B, AB_STEP(16, 0) | AB_SRCB_CR, DST_STEP(8));
    ADDR_MODE(NEXT_A, AB_STEP(0, 32) | AB_SRCA_CR | AB_SRCB_CR, DST_STEP(8));
    ADDR_MODE(NEXT_INNER, AB_STEP(32, 48) | AB_SRCA_CR | AB_SRCB_CR, DST_CR);
    ADDR_MODE(NEXT_PASS, AB_CLEAR, DST_CLEAR | NEXT_PHASE);
    TTI_SETRWC(RWC_ALL, 0, 0, 0, 0, 0);
}

/* The four faces of C, from one column of faces of A and one row of faces of B. */
#define RECORD_INNER(last) \
    do { \
        TTI_MVMUL(0, LOWER_HALF, 0, 0); \
        TTI_MVMUL(0, NEXT_B, 0, 0); \
        TTI_MVMUL(0, LOWER_HALF, 0, 0); \
        TTI_MVMUL(0, NEXT_A, 0, 0); \
        TTI_MVMUL(0, LOWER_HALF, 0, 0); \
        TTI_MVMUL(0, NEXT_B, 0, 0); \
        TTI_MVMUL(0, LOWER_HALF, 0, 0); \
        TTI_MVMUL(0, last, 0, 0); \
    } while (0)

static void record_tile(void) {
    TTI_REPLAY(1, 0, MVMULS, 0);
    RECORD_INNER(NEXT_INNER);
    RECORD_INNER(NEXT_PASS);
}

int main(void) {
    volatile struct matmul_args *args = KERNEL_ARGS(matmul_args);
    uint32_t tiles = args->m * args->n;
    configure();
    record_tile();
    program_phases(args->phases, MVMULS);
    acquire_half(0);
    for (uint32_t step = 0; step < args->k; step++) {
        for (uint32_t tile = 0; tile < tiles; tile++) {
            set_dst_row(0, tile * TILE_ROWS);
            MOP_LOOP_RUN();
        }
    }
    release_half();
    tensix_sync();
    return 0;
}
