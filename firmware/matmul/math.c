/* TRISC1: multiplies and accumulates in Dst, 16 MVMUL per pair of tiles and fidelity phase. */
#include "lib/matmul_tile.h"
#include "matmul/args.h"

#define NEXT_ROWS 3u /* of a tile that is copied */

uint32_t subblocks_done; /* in local RAM */

static void configure(void) {
    matmul_address_modes();
    ADDR_MODE(NEXT_ROWS, AB_STEP(8, 0), DST_STEP(8));
}

/* Partial sums from SrcA to a tile of the half. */
static void copy_tile(uint32_t half, uint32_t tile) {
    set_dst_row(half, tile * TILE_ROWS);
    for (uint32_t i = 0; i < TILE_ROWS / 8; i++) {
        TTI_MOVA2D(0, 0, NEXT_ROWS, 2, 0);
    }
    TTI_SETRWC(CLEAR_SRCA, 0, 0, 0, 0, RWC_ALL);
}

static void math_subblock(const struct matmul_shape *s, uint32_t block, uint32_t half) {
    acquire_half(half);
    if (starts_from_partials(s, block)) {
        for (uint32_t tile = 0; tile < s->tiles; tile++) {
            copy_tile(half, tile);
        }
    }
    for (uint32_t inner = 0; inner < s->block_k; inner++) {
        for (uint32_t tile = 0; tile < s->tiles; tile++) {
            set_dst_row(half, tile * TILE_ROWS);
            MOP_LOOP_RUN();
        }
    }
    release_half();
}

int main(void) {
    struct matmul_shape s = matmul_shape();
    configure();
    record_tile();
    program_phases(runtime_args.phases, MVMULS);
    for (uint32_t block = 0; block < s.blocks; block++) {
        FOR_SUBBLOCKS(&s, row, column) {
            math_subblock(&s, block, subblocks_done % 2);
            subblocks_done++;
        }
    }
    tensix_sync();
    done_words[2] = DONE_TRISC(1);
    return 0;
}
