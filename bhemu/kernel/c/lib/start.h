/* BRISC's part of a kernel of the matrix unit: prepare, release the TRISCs, wait for them. */
#pragma once

#include "lib/done.h"
#include "lib/tensix.h"
#include "lib/tile.h"

#define L1_SIZE 0x180000u
#define L1_TILES (L1_SIZE / TILE_BYTES)

/* The TRISCs' text bases, see lib/trisc*.ld; data may follow. */
#define TRISC_TEXT(n) (0x10000u + 0x4000u * (n))
#define TRISC_TEXT_END TRISC_TEXT(3)

/* An area lies in free L1 and begins where unpacker and packer can address it. */
static inline void check_area(uint32_t address, uint32_t tiles, uint32_t tile_bytes) {
    assert_that(tiles <= L1_SIZE / tile_bytes && address % 16 == 0 && address >= TRISC_TEXT_END);
    assert_that(address <= L1_SIZE - tiles * tile_bytes);
}

/* An output must not overwrite an input that may still be read. */
static inline void check_areas_apart(uint32_t a, uint32_t a_bytes, uint32_t b, uint32_t b_bytes) {
    assert_that(a + a_bytes <= b || b + b_bytes <= a);
}

/* The same for bf16 tiles. */
static inline void check_buffer(uint32_t address, uint32_t tiles) {
    check_area(address, tiles, TILE_BYTES);
}

static inline void check_apart(uint32_t a, uint32_t a_tiles, uint32_t b, uint32_t b_tiles) {
    check_areas_apart(a, a_tiles * TILE_BYTES, b, b_tiles * TILE_BYTES);
}

/* These words enter thread 0's queue. T0's own words follow them, and T1 and T2 depend on T0's data
 * or on the semaphore's maximum (0 until SEMINIT), so none can overtake them. */
static inline void prepare_tensix(void) {
    TT_ZEROACC(3, 0, 0, 0, 0); /* all of Dst */
    TT_SEMINIT(2, 0, SEM_SEL(SEMAPHORE_MATH_PACK));
}

static inline void release_triscs(void) {
    for (uint32_t n = 0; n < 3; n++) {
        store(RISCV_DEBUG_REG_TRISC0_RESET_PC + 4 * n, TRISC_TEXT(n));
    }
    store(RISCV_DEBUG_REG_TRISC_RESET_PC_OVERRIDE, 7);
    cfg_write(RISCV_IC_INVALIDATE_InvalidateAll_ADDR32,
              CFG(RISCV_IC_INVALIDATE_InvalidateAll, 0x1F));
    fence();
    store(RISCV_DEBUG_REG_SOFT_RESET_0, load(RISCV_DEBUG_REG_SOFT_RESET_0) & ~SOFT_RESET_TRISCS);
}

/* Runs the three TRISCs once and sets BRISC's own done word last. */
static inline void run_triscs(void) {
    for (uint32_t n = 0; n < 4; n++) {
        done_words[n] = 0;
    }
    prepare_tensix();
    release_triscs();
    for (uint32_t n = 0; n < 3; n++) {
        while (done_words[1 + n] != DONE_TRISC(n)) {
            fence();
        }
    }
    done_words[0] = DONE_BRISC;
}
