/* TRISC1's copies: faces of SrcA to where in Dst the packer or the vector unit wants them. */
#pragma once

#include "lib/tile.h"
#include "llk_like/kernel.h"
#include "llk_like/modes.h"

/* One face; `clear` tells which banks go back to the unpackers. */
static inline void copy_face(uint32_t row, uint32_t clear) {
    TTP_MOVA2D(row, MOVE_8_ROWS, STAY, 0, 0);
    TTP_MOVA2D(row + 8, MOVE_8_ROWS, STAY, 8, 0);
    TTP_SETRWC(RWC_ALL, 0, 0, 0, 0, clear);
}

/* The same as a sum with SrcB, which holds zeros. */
static inline void add_face(uint32_t row) {
    TTP_ELWADD(row, NEXT_SOURCE, 0, 0, 0);
    TTP_ELWADD(row + 8, NEXT_SOURCE, 0, 0, 0);
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

/* Faces of SrcB, rows as they are or its first one in all places. */
static inline void move_b_faces(void) {
    uint32_t broadcast = runtime_args.broadcast;
    uint32_t mode = broadcast & 2 ? broadcast : MOVE_4_ROWS_B2D | broadcast;
    for (uint32_t face = 0; face < runtime_args.faces; face++) {
        for (uint32_t row = 0; row < FACE_ROWS; row += broadcast & 2 ? 8 : 4) {
            TTP_MOVB2D(FACE_ROWS * face + row, mode, STAY, broadcast & 2 ? 0 : row, 0);
        }
        release_banks();
    }
}

/* Each face of Dst by way of SrcB's rows 16 to 31; moves from Dst do not wait for the bank. */
static inline void transpose_faces(void) {
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

/* SrcA holds 32 rows of 32 datums, two of its rows each; Dst shall hold four faces. */
static inline void copy_row_major(void) {
    for (uint32_t row = 0; row < 64; row++) {
        uint32_t line = row / 2, face = 2 * (line / 16) + row % 2;
        TTP_MOVA2D(16 * face + line % 16, 0, STAY, row, 0);
    }
    release_banks();
}

/* Four banks of eight rows of up to four tiles each: row k of the block goes to Dst row 16 k, eight
 * rows for its datums and eight that stay empty. */
static inline void copy_fast_tilize(void) {
    for (uint32_t bank = 0; bank < 4; bank++) {
        for (uint32_t i = 0; i < 8; i++) {
            TTI_MOVA2D(0, MOVE_8_ROWS, NEXT_ROWS_WIDE, 0, 0);
        }
        TTI_SETRWC(RWC_A, 0, 0, 0, 0, CLEAR_SRCA);
    }
    TTI_SETRWC(RWC_ALL, 0, 0, 0, 0, 0);
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
