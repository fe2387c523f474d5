/* BRISC: the first tile of the row reads a page for each tile and writes it there, then counts that
 * tile's word up; each tile waits for its page and writes it to DRAM. */
#include "kernel/kernel.h"
#include "lib/noc.h"

struct scatter_args {
    uint32_t index, tiles;             /* this tile in the row */
    uint32_t x, y;                     /* the first tile */
    uint32_t in, out, page, banks;     /* in DRAM */
    uint32_t pages, own;               /* L1: all pages, on the first tile; the page of each tile */
};

#define ARRIVED 0u /* semaphore: pages that have arrived */

static void send_all(volatile struct scatter_args *args, struct noc *noc) {
    struct dram_tensor in = {args->in, args->page, args->banks};
    for (uint32_t i = 0; i < args->tiles; i++) {
        dram_read_page(noc, &in, i, args->pages + i * args->page);
    }
    noc_read_barrier(noc);
    for (uint32_t i = 0; i < args->tiles; i++) {
        uint32_t target = noc_xy(args->x + i, args->y);
        noc_write(noc, args->pages + i * args->page, target, args->own, args->page);
        noc_write_barrier(noc); /* an increment may overtake data */
        noc_increment(noc, target, kernel_semaphore(ARRIVED), 1);
    }
    noc_atomic_barrier(noc);
}

int main(void) {
    volatile struct scatter_args *args = KERNEL_ARGS(scatter_args);
    struct noc noc = noc_open(0);
    struct dram_tensor out = {args->out, args->page, args->banks};
    if (args->index == 0) {
        send_all(args, &noc);
    }
    semaphore_wait_min(kernel_semaphore(ARRIVED), 1);
    dram_write_page(&noc, &out, args->index, args->own);
    noc_write_barrier(&noc);
    return 0;
}
