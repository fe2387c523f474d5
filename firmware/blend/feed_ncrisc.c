/* NCRISC of blend: the weights once, then x in pairs of pages. */
#include "blend/blend.h"
#include "lib/noc.h"

int main(void) {
    volatile struct blend_args *args = KERNEL_ARGS(blend_args);
    struct noc noc = noc_open(1);
    struct dram_tensor x = {args->x, TILE_BYTES, args->banks};
    struct dram_tensor weights = {args->weights, TILE_BYTES, args->banks};
    struct cb in = cb_open(CB_X), w = cb_open(CB_WEIGHTS);
    uint32_t sums = args->sums, page = args->index * sums * PAIR;

    cb_wait_room(&w, 1);
    dram_read_page(&noc, &weights, args->index, w.pointer);
    noc_read_barrier(&noc);
    cb_push(&w, 1);
    for (uint32_t i = 0; i < sums; i++) {
        cb_wait_room(&in, PAIR);
        for (uint32_t j = 0; j < PAIR; j++) {
            dram_read_page(&noc, &x, page++, cb_page(&in, j));
        }
        noc_read_barrier(&noc);
        cb_push(&in, PAIR);
    }
    return 0;
}
