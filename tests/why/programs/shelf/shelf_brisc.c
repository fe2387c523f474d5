/* BRISC: the first tile of the row copies a page for each tile to another place in DRAM, then counts
 * that tile's word up; each tile waits for its page and copies it on. */
#include "kernel/kernel.h"
#include "lib/noc.h"

struct shelf_args {
    uint32_t index, tiles;             /* this tile in the row */
    uint32_t x, y;                     /* the first tile */
    uint32_t in, out, page, banks;     /* in DRAM */
    uint32_t shelf, at;                /* in DRAM; in L1 */
};

#define PLACED 0u /* semaphore: pages that are on the shelf */

static void place_all(volatile struct shelf_args *args, struct noc *noc) {
    struct dram_tensor in = {args->in, args->page, args->banks};
    struct dram_tensor shelf = {args->shelf, args->page, args->banks};
    for (uint32_t i = 0; i < args->tiles; i++) {
        dram_read_page(noc, &in, i, args->at);
        noc_read_barrier(noc);
        dram_write_page(noc, &shelf, i, args->at);
        noc_write_barrier(noc);
        noc_increment(noc, noc_xy(args->x + i, args->y), kernel_semaphore(PLACED), 1);
    }
    noc_atomic_barrier(noc);
}

int main(void) {
    volatile struct shelf_args *args = KERNEL_ARGS(shelf_args);
    struct noc noc = noc_open(0);
    struct dram_tensor out = {args->out, args->page, args->banks};
    struct dram_tensor shelf = {args->shelf, args->page, args->banks};
    if (args->index == 0) {
        place_all(args, &noc);
    }
    semaphore_wait_min(kernel_semaphore(PLACED), 1);
    dram_read_page(&noc, &shelf, args->index, args->at);
    noc_read_barrier(&noc);
    dram_write_page(&noc, &out, args->index, args->at);
    noc_write_barrier(&noc);
    return 0;
}
