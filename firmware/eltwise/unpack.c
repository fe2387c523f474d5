/* TRISC0: unpacks the tiles of A to SrcA and those of B to SrcB, pair after pair. */
#include "eltwise/args.h"
#include "lib/done.h"
#include "lib/unpack_pair.h"

uint32_t pairs_done; /* in local RAM, for a debugger */

int main(void) {
    configure_unpack();
    for (uint32_t i = 0; i < runtime_args.n_tiles; i++) {
        uint32_t offset = i * TILE_BYTES;
        unpack_pair(runtime_args.a + offset, runtime_args.b + offset, i % UNPACK_CONTEXTS);
        pairs_done = i + 1;
    }
    tensix_sync();
    done_words[1] = DONE_TRISC(0);
    return 0;
}
