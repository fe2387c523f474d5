/* TRISC2 of blend: each half as a page of fp32. */
#include "blend/blend.h"
#include "lib/pack_half.h"

/* The format once math has begun: T0, which sets the same word, has configured by then. */
static void configure(void) {
    configure_pack_from(1);
    acquire_packed_half();
    set_pack_format(FORMAT_FLOAT32, 0);
}

int main(void) {
    volatile struct blend_args *args = KERNEL_ARGS(blend_args);
    struct cb out = cb_open(CB_SUMS);
    uint32_t sums = args->sums;
    configure();
    for (uint32_t i = 0; i < sums; i++) {
        cb_wait_room(&out, 1);
        pack_half(out.pointer, i % 2);
        cb_push(&out, 1);
    }
    tensix_sync();
    return 0;
}
