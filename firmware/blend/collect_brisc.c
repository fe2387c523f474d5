/* BRISC of blend's second tile: the sums of both tiles go to DRAM in turns. */
#include "blend/blend.h"
#include "lib/noc.h"

int main(void) {
    volatile struct blend_args *args = KERNEL_ARGS(blend_args);
    struct noc noc = noc_open(0);
    struct cb cb = cb_open(CB_SUMS);
    struct dram_tensor y = {args->y, FP32_TILE_BYTES, args->banks};
    uint32_t other = noc_xy(args->other_x, args->other_y);
    uint32_t sums = args->sums, slots = args->slots;
    for (uint32_t i = 0; i < sums; i++) {
        semaphore_wait_min(kernel_semaphore(SENT), i + 1);
        dram_write_page(&noc, &y, 2 * i, slots + i % SLOTS * FP32_TILE_BYTES);
        cb_wait_pages(&cb, 1);
        dram_write_page(&noc, &y, 2 * i + 1, cb.pointer);
        noc_writes_sent(&noc); /* slot and page may be filled again */
        noc_increment(&noc, other, kernel_semaphore(CREDITS), 1);
        cb_pop(&cb, 1);
    }
    noc_write_barrier(&noc);
    noc_atomic_barrier(&noc);
    return 0;
}
