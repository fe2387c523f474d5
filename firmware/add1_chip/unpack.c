/* TRISC0: unpacks tiles of a circular buffer to SrcA. */
#include "add1_chip/args.h"
#include "lib/unpack_pair.h"

int main(void) {
    volatile struct add1_args *args = KERNEL_ARGS(add1_args);
    struct cb in = cb_open(args->in);
    uint32_t context = 0;
    configure_unpack();
    for (uint32_t tile = args->first; tile < args->end; tile += args->step) {
        cb_wait_pages(&in, 1);
        unpack_srca(in.pointer, context);
        cb_pop(&in, 1);
        context ^= 1;
    }
    tensix_sync();
    return 0;
}
