/* NCRISC of refeed: the sum of the datums' bits of each tile, once it is in L1. */
#include "refeed/refeed.h"

static uint32_t sum(uint32_t address) {
    uint32_t total = 0;
    for (uint32_t at = 0; at < TILE; at += 4) {
        uint32_t pair = load(address + at);
        total += (pair & 0xFFFF) + (pair >> 16);
    }
    return total;
}

int main(void) {
    for (uint32_t i = 0; i < runtime_args.tiles; i++) {
        while (PACKED <= i) {
            fence();
        }
        store(runtime_args.sums + 4 * i, sum(runtime_args.out + i * TILE));
    }
    done_words[5] = DONE_NCRISC;
    return 0;
}
