/* TRISC0: it lets the unpacker bring tiles from circular buffer IN to register file SrcA.
 *
 * The three TRISCs issue Tensix instructions (TTI_...), each to a thread of its own. */
#include "args.h"
#include "lib/unpack_pair.h"

int main(void) {
    volatile struct args *args = KERNEL_ARGS(args);
    struct cb in = cb_open_consumer(IN);
    uint32_t context = 0; /* two sets of addresses: one is written while the other is in use */
    configure_unpack();
    for (EACH_TILE(args, tile)) {
        cb_wait_pages(&in, 1);
        unpack_srca(in.pointer, context);
        cb_pop(&in, 1);
        context ^= 1;
    }
    tensix_sync(); /* until all instructions of this thread have been executed */
    return 0;
}
