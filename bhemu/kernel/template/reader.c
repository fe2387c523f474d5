/* NCRISC, the first of five cores: it reads tiles from DRAM to circular buffer IN.
 *
 * A circular buffer connects two cores: one waits for room, fills a page and pushes it; the other
 * waits for a page, uses it and pops it. So all five cores work at the same time on different tiles. */
#include "args.h"
#include "lib/noc.h"

int main(void) {
    volatile struct args *args = KERNEL_ARGS(args);
    struct dram_tensor tensor = {args->address, TILE_BYTES, DRAM_BANKS};
    struct noc noc = noc_open(1); /* the reader has NoC 1, the writer NoC 0 */
    struct cb in = cb_open_producer(IN);
    for (EACH_TILE(args, tile)) {
        cb_wait_room(&in, 1);
        dram_read_page(&noc, &tensor, tile, in.pointer);
        noc_read_barrier(&noc); /* until the tile has arrived */
        cb_push(&in, 1);
    }
    return 0;
}
