/* BRISC, the last of five cores: it writes tiles from circular buffer OUT to DRAM. */
#include "args.h"
#include "lib/noc.h"

int main(void) {
    volatile struct args *args = KERNEL_ARGS(args);
    struct dram_tensor tensor = {args->address, TILE_BYTES, DRAM_BANKS};
    struct noc noc = noc_open(0);
    struct cb out = cb_open_consumer(OUT);
    for (EACH_TILE(args, tile)) {
        cb_wait_pages(&out, 1);
        dram_write_page(&noc, &tensor, tile, out.pointer);
        noc_writes_sent(&noc); /* it has left L1: the page may be filled again */
        cb_pop(&out, 1);
    }
    noc_write_barrier(&noc); /* until all has arrived in DRAM */
    return 0;
}
