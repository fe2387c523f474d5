/* TRISC2: it lets the packer bring each finished half of Dst to circular buffer OUT. */
#include "args.h"
#include "lib/pack_half.h"

int main(void) {
    volatile struct args *args = KERNEL_ARGS(args);
    struct cb out = cb_open_producer(OUT);
    uint32_t half = 0;
    configure_pack();
    for (EACH_TILE(args, tile)) {
        cb_wait_room(&out, 1);
        pack_half(out.pointer, half); /* waits for math, and gives the half back to it */
        cb_push(&out, 1);
        half ^= 1;
    }
    tensix_sync();
    return 0;
}
