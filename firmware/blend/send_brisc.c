/* BRISC of blend's first tile: its sums go to the slots of the second one. */
#include "blend/blend.h"
#include "lib/noc.h"

int main(void) {
    volatile struct blend_args *args = KERNEL_ARGS(blend_args);
    struct noc noc = noc_open(0);
    struct cb cb = cb_open(CB_SUMS);
    uint32_t other = noc_xy(args->other_x, args->other_y);
    uint32_t sums = args->sums, slots = args->slots;
    for (uint32_t i = 0; i < sums; i++) {
        cb_wait_pages(&cb, 1);
        semaphore_wait_min(kernel_semaphore(CREDITS), i + 1);
        noc_write(&noc, cb.pointer, other, slots + i % SLOTS * FP32_TILE_BYTES, FP32_TILE_BYTES);
        noc_write_barrier(&noc);
        cb_pop(&cb, 1);
        noc_increment(&noc, other, kernel_semaphore(SENT), 1);
    }
    noc_atomic_barrier(&noc);
    return 0;
}
