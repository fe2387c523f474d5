/* TRISC0 of blend: each page of x to SrcA, with the weights in SrcB. */
#include "blend/blend.h"
#include "lib/unpack_pair.h"

int main(void) {
    volatile struct blend_args *args = KERNEL_ARGS(blend_args);
    struct cb in = cb_open(CB_X), w = cb_open(CB_WEIGHTS);
    uint32_t sums = args->sums;
    configure_unpack_as(FORMAT_FLOAT16_B, 1);
    cb_wait_pages(&w, 1);
    for (uint32_t i = 0; i < sums; i++) {
        cb_wait_pages(&in, PAIR);
        for (uint32_t j = 0; j < PAIR; j++) {
            unpack_pair(cb_page(&in, j), w.pointer, j);
        }
        cb_pop(&in, PAIR);
    }
    cb_pop(&w, 1);
    tensix_sync();
    return 0;
}
