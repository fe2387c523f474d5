/* TRISC0: the partial sums a subblock of C starts from, to SrcA, and then the pairs of tiles that are
 * multiplied: B to SrcA and A to SrcB. */
#include "lib/unpack_pair.h"
#include "matmul/args.h"

uint32_t turns;             /* in local RAM: contexts used so far */
uint32_t awaited_subblocks; /* of partial sums */

static uint32_t next_context(void) { return turns++ % UNPACK_CONTEXTS; }

static uint32_t input_format(void) {
    return runtime_args.input == INPUT_BFP8 ? FORMAT_BFP8_B : FORMAT_FLOAT16_B;
}

/* The formats may change once the unpackers have nothing left to do. */
static void change_srca_format(uint32_t in, uint32_t out) {
    tensix_sync();
    set_srca_format(in, out);
}

static void unpack_partials(const struct matmul_shape *s, uint32_t row, uint32_t column) {
    while (PACKED_SUBBLOCKS < awaited_subblocks) {
        fence();
    }
    if (runtime_args.fp32) {
        change_srca_format(FORMAT_FLOAT32, FORMAT_TF32);
    } else {
        change_srca_format(FORMAT_FLOAT16_B, FORMAT_FLOAT16_B);
    }
    for (uint32_t i = 0; i < s->rows; i++) {
        for (uint32_t j = 0; j < s->columns; j++) {
            uint32_t tile = (row + i) * s->n + column + j;
            unpack_srca(runtime_args.partials + tile * s->partial_bytes, next_context());
        }
    }
    change_srca_format(input_format(), input_format());
}

/* Step `inner` of K: each tile of A's column with each tile of B's row. */
static void unpack_step(const struct matmul_shape *s, uint32_t row, uint32_t column,
                        uint32_t inner) {
    for (uint32_t i = 0; i < s->rows; i++) {
        uint32_t a = runtime_args.a + ((row + i) * s->k + inner) * s->input_bytes;
        for (uint32_t j = 0; j < s->columns; j++) {
            uint32_t b = runtime_args.b + (inner * s->n + column + j) * s->input_bytes;
            unpack_pair(b, a, next_context());
        }
    }
}

static void unpack_block(const struct matmul_shape *s, uint32_t block) {
    uint32_t first = block * s->block_k;
    FOR_SUBBLOCKS(s, row, column) {
        if (block > 0) { /* one more subblock of the block before must be there */
            awaited_subblocks++;
        }
        if (starts_from_partials(s, block)) {
            unpack_partials(s, row, column);
        }
        for (uint32_t inner = first; inner < first + s->block_k; inner++) {
            unpack_step(s, row, column, inner);
        }
    }
}

int main(void) {
    struct matmul_shape s = matmul_shape();
    configure_unpack_as(input_format(), runtime_args.fp32);
    for (uint32_t block = 0; block < s.blocks; block++) {
        unpack_block(&s, block);
    }
    tensix_sync();
    done_words[1] = DONE_TRISC(0);
    return 0;
}
