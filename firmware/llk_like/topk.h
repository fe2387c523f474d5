/* The greatest (or least) 32 of many values with their indices, for each column of Dst by itself.
 *
 * Dst holds two tiles of values (rows 0 and 64) and two of indices (rows 128 and 192). A column
 * of a tile is a sequence of 32, in two groups of 16: four LRegs of four rows. Groups are sorted by
 * a bitonic network: registers meet each other, and SFPTRANSP makes rows into registers. With
 * LaneConfig bit 2 SFPSWAP moves the indices in LReg 4 to 7 as it moves LReg 0 to 3. */
#pragma once

#include "lib/math_half.h"
#include "lib/tile.h"
#include "llk_like/copy.h"
#include "llk_like/sfpu.h"

#define INDEX_ROWS (2 * TILE_ROWS)
#define LANE_CONFIG 15u
#define INDICES_FOLLOW 0x004u
#define SWAP_INVERTED 0x100u

/* The greater value goes to the first register: in all rows, in rows 0 and 1 (in the others the
 * lesser), or in rows 0 and 2. */
enum { ALL_ROWS = 1, ROWS_0_1 = 2, ROWS_0_2 = 3 };

static inline void configure_topk(void) {
    uint32_t inverted = runtime_args.flags & SMALLEST_FIRST ? SWAP_INVERTED : 0;
    TT_SFPCONFIG(INDICES_FOLLOW | inverted, LANE_CONFIG, 1);
}

/* Eight rows of values and of indices at p to LReg 0, 1, 4, 5, those at q to LReg 2, 3, 6, 7. */
static __attribute__((noinline)) void load_sixteen(uint32_t p, uint32_t q) {
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t row = (i < 2 ? p : q) + 4 * (i & 1);
        TT_SFPLOAD(i, LOAD_DEFAULT, STAY, row);
        TT_SFPLOAD(4 + i, LOAD_UINT16, STAY, INDEX_ROWS + row);
    }
}

static __attribute__((noinline)) void store_sixteen(uint32_t p, uint32_t q) {
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t row = (i < 2 ? p : q) + 4 * (i & 1);
        TT_SFPSTORE(i, LOAD_DEFAULT, STAY, row);
        TT_SFPSTORE(4 + i, LOAD_UINT16, STAY, INDEX_ROWS + row);
    }
}

static __attribute__((noinline)) void compare(uint32_t rows, uint32_t first, uint32_t second) {
    TT_SFPSWAP(0, first, second, rows);
}

/* Registers two apart, then neighbours. */
static __attribute__((noinline)) void compare_by_two_and_one(uint32_t rows) {
    compare(rows, 0, 2);
    compare(rows, 1, 3);
    compare(rows, 0, 1);
    compare(rows, 2, 3);
}

/* A bitonic sequence of 16 in LReg 0 to 3, sorted: distances 8, 4, 2, 1. */
static __attribute__((noinline)) void merge_sixteen(uint32_t falling) {
    for (uint32_t i = 0; i < 2; i++) {
        if (falling) {
            compare_by_two_and_one(ALL_ROWS);
        } else {
            compare(ALL_ROWS, 2, 0);
            compare(ALL_ROWS, 3, 1);
            compare(ALL_ROWS, 1, 0);
            compare(ALL_ROWS, 3, 2);
        }
        TTI_SFPTRANSP(0, 0, 0, 0);
    }
}

/* Sequences of 2, 4, 8 and 16, falling and rising in turn. */
static __attribute__((noinline)) void sort_sixteen(uint32_t falling) {
    TTI_SFPTRANSP(0, 0, 0, 0);
    compare(ALL_ROWS, 0, 1);
    compare(ALL_ROWS, 3, 2);
    compare_by_two_and_one(ROWS_0_2);
    TTI_SFPTRANSP(0, 0, 0, 0);
    compare(ALL_ROWS, 0, 1);
    compare(ALL_ROWS, 3, 2);
    TTI_SFPTRANSP(0, 0, 0, 0);
    compare_by_two_and_one(ROWS_0_1);
    TTI_SFPTRANSP(0, 0, 0, 0);
    merge_sixteen(falling);
}

/* Two sequences of 16 whose rows begin at p and q: each pair's greater (or lesser) value to p. */
static __attribute__((noinline)) void compare_groups(uint32_t p, uint32_t q, uint32_t falling) {
    for (uint32_t row = 0; row < 16; row += 8) {
        load_sixteen(p + row, q + row);
        compare(ALL_ROWS, falling ? 0 : 2, falling ? 2 : 0);
        compare(ALL_ROWS, falling ? 1 : 3, falling ? 3 : 1);
        store_sixteen(p + row, q + row);
    }
}

static __attribute__((noinline)) void merge_group(uint32_t p, uint32_t falling) {
    load_sixteen(p, p + 8);
    merge_sixteen(falling);
    store_sixteen(p, p + 8);
}

/* A bitonic sequence of 32, sorted; its groups are 32 rows apart. */
static __attribute__((noinline)) void merge_tile(uint32_t p, uint32_t falling) {
    compare_groups(p, p + 32, falling);
    merge_group(p, falling);
    merge_group(p + 32, falling);
}

static __attribute__((noinline)) void sort_tile(uint32_t p, uint32_t falling) {
    for (uint32_t group = 0; group < 2; group++) {
        uint32_t at = p + 32 * group;
        load_sixteen(at, at + 8);
        sort_sixteen(group == 0);
        store_sixteen(at, at + 8);
    }
    merge_tile(p, falling);
}

/* The first tile falls. Each further one is sorted the other way, so that the two are a bitonic
 * sequence of 64, whose greater half stays in the first. */
static void topk_next(uint32_t i) {
    uint32_t row = i ? TILE_ROWS : 0;
    TTI_STALLWAIT(STALL_MATH, WAIT_SFPU);
    copy_faces(row);
    copy_faces(INDEX_ROWS + row);
    TTI_STALLWAIT(STALL_SFPU, WAIT_MATH);
    static const uint8_t columns[4] = {0, 2, 16, 18}; /* even and odd ones of two faces */
    for (uint32_t k = 0; k < 4; k++) {
        uint32_t column = columns[k];
        sort_tile(row + column, i == 0);
        if (i) {
            compare_groups(column, row + column, 1);
            compare_groups(column + 32, row + column + 32, 1);
            merge_tile(column, 1);
        }
    }
}
