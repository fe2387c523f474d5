/* BRISC: writes pages from a circular buffer to a tensor in DRAM, on NoC 0. */
#include "dataflow/pages.h"

int main(void) {
    volatile struct pages_args *args = KERNEL_ARGS(pages_args);
    struct dram_tensor tensor = pages_tensor(args);
    struct noc noc = noc_open(0);
    struct cb cb = cb_open(args->buffer);
    for (uint32_t page = args->first; page < args->end; page += args->step) {
        cb_wait_pages(&cb, 1);
        dram_write_page(&noc, &tensor, page, cb.pointer);
        noc_writes_sent(&noc); /* the page may be filled again */
        cb_pop(&cb, 1);
    }
    noc_write_barrier(&noc);
    return 0;
}
