/* TRISC2: packs each filled Dst half to a circular buffer. */
#include "add1_chip/args.h"
#include "lib/pack_half.h"

int main(void) {
    volatile struct add1_args *args = KERNEL_ARGS(add1_args);
    struct cb out = cb_open(args->out);
    uint32_t half = 0;
    configure_pack();
    for (uint32_t tile = args->first; tile < args->end; tile += args->step) {
        cb_wait_room(&out, 1);
        pack_half(out.pointer, half);
        cb_push(&out, 1);
        half ^= 1;
    }
    tensix_sync();
    return 0;
}
