/* BRISC: ring all-gather. Every tile reads its block from DRAM; in each step it sends the block that it
 * got last to the next tile, so that after tiles - 1 steps each has all blocks; then it writes them. */
#include "kernel/kernel.h"
#include "lib/noc.h"

struct gather_args {
    uint32_t index, tiles;       /* this tile in the ring */
    uint32_t next_x, next_y;     /* the tile behind it */
    uint32_t in, out;            /* tensors in DRAM: a block is a page */
    uint32_t block, banks;       /* bytes */
    uint32_t blocks;             /* L1 address of all blocks, the same on every tile */
};

#define ARRIVED 0u /* semaphore: blocks that the tile before has sent */

int main(void) {
    volatile struct gather_args *args = KERNEL_ARGS(gather_args);
    struct noc noc = noc_open(args->index % 2); /* neighbours use different NoCs */
    uint32_t index = args->index, tiles = args->tiles, block = args->block;
    uint32_t next = noc_xy(args->next_x, args->next_y);
    struct dram_tensor in = {args->in, block, args->banks};
    struct dram_tensor out = {args->out, block, args->banks};

    dram_read_page(&noc, &in, index, args->blocks + index * block);
    noc_read_barrier(&noc);
    for (uint32_t step = 0; step + 1 < tiles; step++) {
        uint32_t at = args->blocks + (index + tiles - step) % tiles * block;
        semaphore_wait_min(kernel_semaphore(ARRIVED), step);
        noc_write(&noc, at, next, at, block);
        noc_write_barrier(&noc); /* an increment may overtake data */
        noc_increment(&noc, next, kernel_semaphore(ARRIVED), 1);
    }
    semaphore_wait_min(kernel_semaphore(ARRIVED), tiles - 1);
    for (uint32_t i = 0; i < tiles; i++) {
        dram_write_page(&noc, &out, index * tiles + i, args->blocks + i * block);
    }
    noc_write_barrier(&noc);
    noc_atomic_barrier(&noc);
    return 0;
}
