/* TRISC2: packs each finished subblock to L1, to C or as partial sums, in the order of math. */
#include "lib/pack_half.h"
#include "matmul/args.h"

uint32_t subblocks_done; /* in local RAM */

/* Once the packer has nothing left to do, and math has begun: T0 has configured by then. */
static void change_pack_format(const struct matmul_shape *s, uint32_t block) {
    uint32_t last = block == s->blocks - 1;
    uint32_t add = !last && block > 0 && runtime_args.mode == PARTIALS_L1;
    tensix_sync();
    set_pack_format(runtime_args.fp32 && !last ? FORMAT_FLOAT32 : FORMAT_FLOAT16_B, add);
}

static void pack_subblock(const struct matmul_shape *s, uint32_t block, uint32_t row,
                          uint32_t column) {
    uint32_t last = block == s->blocks - 1, half = subblocks_done % 2;
    uint32_t to = last ? runtime_args.c : runtime_args.partials;
    uint32_t bytes = last ? TILE_BYTES : s->partial_bytes;
    acquire_packed_half();
    if (s->blocks > 1 && row == 0 && column == 0) {
        change_pack_format(s, block);
    }
    for (uint32_t i = 0; i < s->rows; i++) {
        for (uint32_t j = 0; j < s->columns; j++) {
            uint32_t tile = (row + i) * s->n + column + j;
            pack_tile_of_half(to + tile * bytes, half, i * s->columns + j);
        }
    }
    release_packed_half(half);
    subblocks_done++;
    if (!last) {
        tensix_sync();
        PACKED_SUBBLOCKS = subblocks_done;
    }
}

int main(void) {
    struct matmul_shape s = matmul_shape();
    configure_pack_from(runtime_args.fp32);
    for (uint32_t block = 0; block < s.blocks; block++) {
        FOR_SUBBLOCKS(&s, row, column) {
            pack_subblock(&s, block, row, column);
        }
    }
    tensix_sync();
    done_words[3] = DONE_TRISC(2);
    return 0;
}
