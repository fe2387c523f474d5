/* NCRISC: reads pages of a tensor in DRAM into a circular buffer, on NoC 1. */
#include "dataflow/pages.h"

int main(void) {
    volatile struct pages_args *args = KERNEL_ARGS(pages_args);
    struct dram_tensor tensor = pages_tensor(args);
    struct noc noc = noc_open(1);
    struct cb cb = cb_open(args->buffer);
    for (uint32_t page = args->first; page < args->end; page += args->step) {
        cb_wait_room(&cb, 1);
        dram_read_page(&noc, &tensor, page, cb.pointer);
        noc_read_barrier(&noc);
        cb_push(&cb, 1);
    }
    return 0;
}
