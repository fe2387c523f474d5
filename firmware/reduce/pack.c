/* TRISC2: packs each finished output tile to L1. */
#include "lib/pack_half.h"
#include "reduce/args.h"

uint32_t tiles_done; /* in local RAM, for a debugger */

int main(void) {
    configure_pack();
    for (uint32_t i = 0; i < outputs(); i++) {
        pack_half(runtime_args.dst + i * TILE_BYTES, i % 2);
        tiles_done = i + 1;
    }
    tensix_sync();
    done_words[3] = DONE_TRISC(2);
    return 0;
}
