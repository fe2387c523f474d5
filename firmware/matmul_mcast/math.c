/* TRISC1: multiplies and accumulates all of this core's tiles of C in one Dst half. */
#include "lib/matmul_tile.h"
#include "matmul_mcast/args.h"

static void configure(void) {
    TTI_ZEROACC(3, 0, 0, 0, 0); /* all of Dst */
    TTI_SEMINIT(2, 0, SEM_SEL(SEMAPHORE_MATH_PACK));
    matmul_address_modes();
}

int main(void) {
    volatile struct matmul_args *args = KERNEL_ARGS(matmul_args);
    uint32_t tiles = args->m * args->n;
    configure();
    record_tile();
    program_phases(args->phases, MVMULS);
    acquire_half(0);
    for (uint32_t step = 0; step < args->k; step++) {
        for (uint32_t tile = 0; tile < tiles; tile++) {
            set_dst_row(0, tile * TILE_ROWS);
            MOP_LOOP_RUN();
        }
    }
    release_half();
    tensix_sync();
    return 0;
}
