/* TRISC0: for every output tile, the k pairs of tiles it is the sum of, B to SrcA and A to SrcB. */
#include "lib/done.h"
#include "lib/unpack_pair.h"
#include "matmul/args.h"

uint32_t pairs_done; /* in local RAM, for a debugger */

/* Output tile (row, column) needs row `row` of A and column `column` of B, in the order of k. */
static void unpack_output_tile(uint32_t row, uint32_t column) {
    uint32_t k = runtime_args.k, n = runtime_args.n;
    uint32_t a = runtime_args.a + row * k * TILE_BYTES;
    uint32_t b = runtime_args.b + column * TILE_BYTES;
    for (uint32_t i = 0; i < k; i++) {
        unpack_pair(b, a, pairs_done % UNPACK_CONTEXTS);
        a += TILE_BYTES;
        b += n * TILE_BYTES;
        pairs_done++;
    }
}

int main(void) {
    configure_unpack();
    for (uint32_t row = 0; row < runtime_args.m; row++) {
        for (uint32_t column = 0; column < runtime_args.n; column++) {
            unpack_output_tile(row, column);
        }
    }
    tensix_sync();
    done_words[1] = DONE_TRISC(0);
    return 0;
}
