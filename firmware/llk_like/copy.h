/* TRISC1's copies: faces of SrcA to where in Dst the packer or the vector unit wants them. */
#pragma once

#include "lib/tile.h"
#include "llk_like/kernel.h"
#include "llk_like/modes.h"

/* One face; `clear` tells which banks go back to the unpackers. */
static inline void copy_face(uint32_t row, uint32_t clear) {
    TT_MOVA2D(0, 0, STAY, MOVE_8_ROWS, row);
    TT_MOVA2D(0, 8, STAY, MOVE_8_ROWS, row + 8);
    TT_SETRWC(clear, 0, 0, 0, 0, RWC_ALL);
}

/* The same as a sum with SrcB, which holds zeros. */
static inline void add_face(uint32_t row) {
    TT_ELWADD(0, 0, 0, NEXT_SOURCE, row);
    TT_ELWADD(0, 0, 0, NEXT_SOURCE, row + 8);
    release_banks();
}

static inline void copy_faces(uint32_t row) {
    for (uint32_t face = 0; face < runtime_args.faces; face++) {
        copy_face(row + FACE_ROWS * face, CLEAR_SRCA_SRCB);
    }
}

static inline void copy_faces_by_add(void) {
    for (uint32_t face = 0; face < runtime_args.faces; face++) {
        add_face(FACE_ROWS * face);
    }
}
#define MOVE_B_ROW(dst, mode, addr_mode, src, low) TT_MOVB2D(low, src, addr_mode, mode, dst)
/* Faces of SrcB, rows as they are or its first one in all places. */
static inline void move_b_faces(void) {
    uint32_t broadcast = runtime_args.broadcast;
    uint32_t mode = broadcast & 2 ? broadcast : MOVE_4_ROWS_B2D | broadcast;
    for (uint32_t face = 0; face < runtime_args.faces; face++) {
        for (uint32_t row = 0; row < FACE_ROWS; row += broadcast & 2 ? 8 : 4) {
            MOVE_B_ROW(FACE_ROWS * face + row, mode, STAY, broadcast & 2 ? 0 : row, 0);
        }
        release_banks();
    }
}

/* Each face of Dst by way of SrcB's rows 16 to 31; moves from Dst do not wait for the bank. */
static inline void transpose_faces(void) {
    TTI_STALLWAIT(STALL_MATH, WAIT_SRCB_VALID);
    for (uint32_t face = 0; face < FACES; face++) {
        for (uint32_t row = 0; row < 16; row += 4) {
            TT_MOVD2B(0, 16 + row, STAY, MOVE_4_ROWS_D2B, 16 * face + row);
        }
        TTI_TRNSPSRCB;
        for (uint32_t row = 0; row < 16; row += 4) {
            TT_MOVB2D(0, 16 + row, STAY, MOVE_4_ROWS_B2D, 16 * face + row);
        }
    }
    release_banks();
}

/* SrcA holds 32 rows of 32 datums, two of its rows each; Dst shall hold four faces. */
static inline void copy_row_major(void) {
    for (uint32_t row = 0; row < 64; row++) {
        uint32_t line = row / 2, face = 2 * (line / 16) + row % 2;
        TT_MOVA2D(0, row, STAY, 0, 16 * face + line % 16);
    }
    release_banks();
}

/* Four banks of eight rows of up to four tiles each: row k of the block goes to Dst row 16 k, eight
 * rows for its datums and eight that stay empty. */
static inline void copy_fast_tilize(void) {
    for (uint32_t bank = 0; bank < 4; bank++) {
        for (uint32_t i = 0; i < 8; i++) {
            TTI_MOVA2D(0, 0, NEXT_ROWS_WIDE, MOVE_8_ROWS, 0);
        }
        TTI_SETRWC(CLEAR_SRCA, 0, 0, 0, 0, RWC_A);
    }
    TTI_SETRWC(0, 0, 0, 0, 0, RWC_ALL);
}

/* Tile `i` of a block: its upper faces to rows 32 i, its lower ones 128 rows further on. */
static inline void copy_fast_untilize(uint32_t i) {
    for (uint32_t face = 0; face < FACES; face++) {
        uint32_t row = 32 * i + 16 * (face & 1) + 128 * (face >> 1);
        if (runtime_args.dst32) {
            add_face(row);
        } else {
            copy_face(row, CLEAR_SRCA);
        }
    }
}
