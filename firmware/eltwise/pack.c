/* TRISC2: packs each finished tile of C to L1, in the order in which math finishes them. */
#include "eltwise/args.h"
#include "lib/done.h"
#include "lib/pack_half.h"

uint32_t tiles_done; /* in local RAM, for a debugger */

int main(void) {
    configure_pack();
    for (uint32_t i = 0; i < runtime_args.n_tiles; i++) {
        pack_half(runtime_args.c + i * TILE_BYTES, i % 2);
        tiles_done = i + 1;
    }
    tensix_sync();
    done_words[3] = DONE_TRISC(2);
    return 0;
}
