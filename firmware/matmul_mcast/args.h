/* C = A @ B on a grid of tiles: tile (row, column) has `m` x `n` tiles of C, all of K.
 *
 * The first column reads A from DRAM and sends it along its row, the first row reads B and sends it
 * along its column, one step of K at a time. A sender waits until every receiver has room, sends
 * the tiles and, linked behind them, the word that says so. */
#pragma once

#include "lib/cb.h"
#include "lib/noc.h"
#include "lib/tile.h"

struct matmul_args {
    uint32_t m, k, n;              /* tiles of C per core: rows, columns; steps of K */
    uint32_t row, column;          /* of this core in the grid */
    uint32_t rows, columns;        /* of the grid */
    uint32_t left, top;            /* NoC coordinates of the grid's corners */
    uint32_t right, bottom;
    uint32_t a, b, c, banks;       /* tensors in DRAM, bf16, a page is a tile */
    uint32_t phases;               /* of fidelity: 4 is HiFi4 */
};

#define CB_A 0u
#define CB_B 1u
#define CB_C 16u

/* Semaphores. READY counts, at the sender, receivers that have room; VALID becomes 1 at them. */
#define A_READY 0u
#define A_VALID 1u
#define B_READY 2u
#define B_VALID 3u

#define MOST_TILES 8u /* of C: they share a Dst half */

static inline struct dram_tensor matmul_tensor(volatile struct matmul_args *args,
                                               uint32_t address) {
    return (struct dram_tensor){address, TILE_BYTES, args->banks};
}
