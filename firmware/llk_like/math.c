/* TRISC1: the matrix unit's operation on each tile, then the vector unit's. */
#include "lib/math_half.h"
#include "lib/tile.h"
#include "llk_like/kernel.h"
#include "llk_like/sfpu.h"

#define STAY 0u
#define NEXT_ROWS 1u /* eight rows on in SrcA, SrcB and Dst */
#define NEXT_PASS 2u /* all back to the start, next fidelity phase */
#define LOWER_HALF 3u /* matmul: the lower 8 rows of the same faces */
#define NEXT_B 4u     /* matmul: the same face of A, the face of B to the right */
#define NEXT_A 5u     /* matmul: back to the left face of B, the face of A below */
#define NEXT_INNER 6u /* matmul: A1 with B2, C0 again */

#define MOVE_8_ROWS 2u
#define MOVE_4_ROWS_D2B 2u
#define MOVE_4_ROWS_B2D 4u

static void configure(void) {
    ADDR_MODE(STAY, 0, 0);
    ADDR_MODE(NEXT_ROWS, AB_STEP(8, 8), DST_STEP(8));
    ADDR_MODE(NEXT_PASS, AB_CLEAR, DST_CLEAR | NEXT_PHASE);
    ADDR_MODE(LOWER_HALF, AB_STEP(0, 8), DST_STEP(8));
    ADDR_MODE(NEXT_B, AB_STEP(16, 0) | AB_SRCB_CR, DST_STEP(8));
    ADDR_MODE(NEXT_A, AB_STEP(0, 32) | AB_SRCA_CR | AB_SRCB_CR, DST_STEP(8));
    ADDR_MODE(NEXT_INNER, AB_STEP(32, 48) | AB_SRCA_CR | AB_SRCB_CR, DST_CR);
    ADDR_MODE(SFPU_NEXT, 0, DST_STEP(2));
    /* Dst addresses as the packer's strided access wants them: from the start, for all accesses. */
    cfg_write(DEST_ACCESS_CFG_remap_addrs_ADDR32, runtime_args.pack == PACK_UNTILIZE
                                                      ? CFG(DEST_ACCESS_CFG_remap_addrs, 1) |
                                                            CFG(DEST_ACCESS_CFG_swizzle_32b, 1)
                                                      : 0);
    TTI_SETRWC(RWC_ALL, 0, 0, 0, 0, 0);
}

/* All counters to zero, both banks back to the unpackers. */
static void release_banks(void) {
    TTI_SETRWC(RWC_ALL, 0, 0, 0, 0, CLEAR_SRCA_SRCB);
}

static void copy_faces(uint32_t row) {
    for (uint32_t face = 0; face < FACES; face++) {
        TTP_MOVA2D(row + 16 * face, MOVE_8_ROWS, STAY, 0, 0);
        TTP_MOVA2D(row + 16 * face + 8, MOVE_8_ROWS, STAY, 8, 0);
        release_banks();
    }
}

/* Each face of Dst by way of SrcB's rows 16 to 31; moves from Dst do not wait for the bank. */
static void transpose_faces(void) {
    TTI_STALLWAIT(WAIT_SRCB_VALID, STALL_MATH);
    for (uint32_t face = 0; face < FACES; face++) {
        for (uint32_t row = 0; row < 16; row += 4) {
            TTP_MOVD2B(16 * face + row, MOVE_4_ROWS_D2B, STAY, 16 + row, 0);
        }
        TTI_TRNSPSRCB();
        for (uint32_t row = 0; row < 16; row += 4) {
            TTP_MOVB2D(16 * face + row, MOVE_4_ROWS_B2D, STAY, 16 + row, 0);
        }
    }
    release_banks();
}

/* The unpacker writes Dst itself, and tells when. */
static void await_unpacker(void) {
    TTI_SEMWAIT(SEMWAIT_WHILE_ZERO, SEM_SEL(SEMAPHORE_UNPACK_TO_DST), STALL_SYNC | STALL_MATH);
    TTI_SEMGET(SEM_SEL(SEMAPHORE_UNPACK_TO_DST));
}

/* SrcA holds 32 rows of 32 datums, two of its rows each; Dst shall hold four faces. */
static void copy_row_major(void) {
    for (uint32_t row = 0; row < 64; row++) {
        uint32_t line = row / 2, face = 2 * (line / 16) + row % 2;
        TTP_MOVA2D(16 * face + line % 16, 0, STAY, row, 0);
    }
    release_banks();
}

/* ELWADD and ELWSUB replace Dst unless told to add to it, ELWMUL always adds; the three share
 * addr_mode's place. */
static void eltwise(uint32_t word) {
    for (uint32_t phase = 0; phase < runtime_args.phases; phase++) {
        for (uint32_t i = 0; i < 7; i++) {
            TT_PUSH(word | TTF_ELWADD_addr_mode(NEXT_ROWS));
        }
        TT_PUSH(word | TTF_ELWADD_addr_mode(NEXT_PASS));
    }
    release_banks();
}

static void matmul_inner(uint32_t last) {
    static const uint8_t step[7] = {LOWER_HALF, NEXT_B, LOWER_HALF, NEXT_A,
                                    LOWER_HALF, NEXT_B, LOWER_HALF};
    for (uint32_t i = 0; i < 7; i++) {
        TTP_MVMUL(0, step[i], 0, 0);
    }
    TTP_MVMUL(0, last, 0, 0);
}

static void matmul(void) {
    for (uint32_t phase = 0; phase < runtime_args.phases; phase++) {
        matmul_inner(NEXT_INNER);
        matmul_inner(NEXT_PASS);
    }
    release_banks();
}

/* One pooling instruction per face: sixteen rows become one, added to or compared with Dst. */
static void pool(uint32_t dst) {
    if (runtime_args.reduce & 4) {
        TTP_GMPOOL(dst, 0, STAY, 1, 0);
    } else {
        TTP_GAPOOL(dst, 0, STAY, 1, 0);
    }
    release_banks();
}

/* Faces arrive in the order in which they fall into the same result. */
static void reduce(void) {
    for (uint32_t i = 0; i < FACES; i++) {
        pool(16 * (i / 2));
    }
}

static void combine(uint32_t operation) {
    if (operation == MATH_COPY) {
        copy_faces(0);
    } else if (operation == MATH_COPY_TWO) {
        copy_faces(0);
        copy_faces(TILE_ROWS);
    } else if (operation == MATH_TRANSPOSE) {
        copy_faces(0);
        transpose_faces();
    } else if (operation == MATH_NOTHING) {
        await_unpacker();
    } else if (operation == MATH_TILIZE) {
        copy_row_major();
    } else if (operation == MATH_ADD) {
        eltwise(TTO_ELWADD | TTF_ELWADD_dest_accum_en(runtime_args.accumulate));
    } else if (operation == MATH_SUB) {
        eltwise(TTO_ELWSUB | TTF_ELWSUB_dest_accum_en(runtime_args.accumulate));
    } else if (operation == MATH_MUL) {
        eltwise(TTO_ELWMUL);
    } else if (operation == MATH_MATMUL) {
        matmul();
    } else {
        reduce();
    }
}

static void math_tile(uint32_t half) {
    acquire_half(half);
    for (uint32_t i = 0; i < runtime_args.inner; i++) {
        combine(runtime_args.math);
    }
    sfpu_tile(runtime_args.sfpu);
    TTI_STALLWAIT(WAIT_MATH | WAIT_SFPU, STALL_SYNC | STALL_CFG);
    TTI_SEMPOST(SEM_SEL(SEMAPHORE_MATH_PACK));
}

int main(void) {
    configure();
    TTI_SFPENCC(10, 0, 3); /* all lanes on */
    for (uint32_t i = 0; i < runtime_args.tiles; i++) {
        math_tile(i % 2);
    }
    complete(1);
    return 0;
}
