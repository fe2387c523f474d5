/* TRISC2: packs each finished tile of C to L1, in the order in which math finishes them. */
#include "lib/done.h"
#include "lib/pack_half.h"
#include "matmul/args.h"

uint32_t tiles_done; /* in local RAM, for a debugger */

int main(void) {
    configure_pack();
    uint32_t tiles = runtime_args.m * runtime_args.n;
    for (uint32_t i = 0; i < tiles; i++) {
        pack_half(runtime_args.c + i * TILE_BYTES, i % 2);
        tiles_done = i + 1;
    }
    tensix_sync();
    done_words[3] = DONE_TRISC(2);
    return 0;
}
