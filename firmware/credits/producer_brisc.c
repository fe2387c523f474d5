/* BRISC of the first tile: reads pages from DRAM and sends them to the slots of the next tile, as many
 * ahead as it has credits for. */
#include "credits/args.h"

int main(void) {
    volatile struct credits_args *args = KERNEL_ARGS(credits_args);
    struct noc noc = noc_open(0);
    struct dram_tensor tensor = {args->tensor, args->page, args->banks};
    uint32_t other = noc_xy(args->other_x, args->other_y);
    for (uint32_t page = 0; page < args->pages; page++) {
        uint32_t slot = args->slots + page % SLOTS * args->page;
        dram_read_page(&noc, &tensor, page, slot);
        noc_read_barrier(&noc);
        semaphore_wait_min(kernel_semaphore(CREDITS), page + 1);
        noc_write(&noc, slot, other, slot, args->page);
        noc_write_barrier(&noc); /* an increment may overtake data */
        noc_increment(&noc, other, kernel_semaphore(FILLED), 1);
    }
    noc_atomic_barrier(&noc);
    return 0;
}
