/* TRISC2: packs this core's tiles of C once they are complete. */
#include "lib/pack_half.h"
#include "matmul_mcast/args.h"

int main(void) {
    volatile struct matmul_args *args = KERNEL_ARGS(matmul_args);
    struct cb c = cb_open(CB_C);
    uint32_t tiles = args->m * args->n;
    configure_pack();
    cb_wait_room(&c, tiles);
    acquire_packed_half();
    for (uint32_t tile = 0; tile < tiles; tile++) {
        pack_tile_of_half(cb_page(&c, tile), 0, tile);
    }
    release_packed_half(0);
    cb_push(&c, tiles);
    tensix_sync();
    return 0;
}
