/* BRISC of the second tile: writes each slot that was filled to DRAM and gives a credit back; the sum
 * of all words goes to L1. */
#include "credits/args.h"

int main(void) {
    volatile struct credits_args *args = KERNEL_ARGS(credits_args);
    struct noc noc = noc_open(1);
    struct dram_tensor tensor = {args->tensor, args->page, args->banks};
    uint32_t other = noc_xy(args->other_x, args->other_y);
    uint32_t sum = 0;
    for (uint32_t page = 0; page < args->pages; page++) {
        uint32_t slot = args->slots + page % SLOTS * args->page;
        semaphore_wait_min(kernel_semaphore(FILLED), page + 1);
        sum += load(slot);
        dram_write_page(&noc, &tensor, page, slot);
        noc_writes_sent(&noc); /* the slot may be filled again */
        noc_increment(&noc, other, kernel_semaphore(CREDITS), 1);
    }
    store(args->slots + SLOTS * args->page, sum);
    noc_write_barrier(&noc);
    noc_atomic_barrier(&noc);
    return 0;
}
