/* TRISC2: the half that math filled to L1, once per round or as often as packing is measured. */
#include "bench/args.h"
#include "lib/done.h"
#include "lib/pack_half.h"

uint32_t tiles_done; /* in local RAM, for a debugger */

/* All but the last repetition: the half stays with pack. */
static void pack_again(uint32_t address, uint32_t half, uint32_t times) {
    TTI_SEMWAIT(STALL_TDMA, SEM_SEL(SEMAPHORE_MATH_PACK), SEMWAIT_WHILE_ZERO);
    for (uint32_t i = 0; i < times; i++) {
        set_pack_output(address, half);
        MOP_LOOP_RUN();
    }
}

int main(void) {
    configure_pack();
    uint32_t again = runtime_args.what == BENCH_PACK ? runtime_args.repeat - 1 : 0;
    for (uint32_t i = 0; i < runtime_args.rounds; i++) {
        uint32_t address = runtime_args.c + i % BUFFER_TILES * TILE_BYTES;
        pack_again(address, i % 2, again);
        pack_half(address, i % 2);
        tiles_done = i + 1;
    }
    tensix_sync();
    done_words[3] = DONE_TRISC(2);
    return 0;
}
