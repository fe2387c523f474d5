/* TRISC0: a pair of tiles per round, or per repetition where unpacking is what is measured. */
#include "bench/args.h"
#include "lib/done.h"
#include "lib/unpack_pair.h"

uint32_t pairs_done; /* in local RAM, for a debugger */

int main(void) {
    configure_unpack();
    uint32_t pairs = runtime_args.rounds;
    if (runtime_args.what == BENCH_UNPACK) {
        pairs *= runtime_args.repeat;
    }
    uint32_t a = runtime_args.a, b = runtime_args.b;
    for (uint32_t i = 0; i < pairs; i++) {
        uint32_t offset = i % BUFFER_TILES * TILE_BYTES;
        unpack_pair(a + offset, b + offset, i % UNPACK_CONTEXTS);
        pairs_done = i + 1;
    }
    tensix_sync();
    done_words[1] = DONE_TRISC(0);
    return 0;
}
