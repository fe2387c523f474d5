/* BRISC: B, which the first row of the grid reads and sends along the column, on NoC 0; then C, which
 * every core writes to DRAM. */
#include "matmul_mcast/send.h"

static struct operand operand_b(volatile struct matmul_args *args) {
    struct noc noc = noc_open(0);
    uint32_t x = noc.own & 63;
    return (struct operand){
        .noc = noc,
        .cb = cb_open(CB_B),
        .is_sender = args->row == 0,
        .receivers = args->rows - 1,
        .rectangle = noc_rectangle(&noc, x, args->top + 1, x, args->bottom),
        .sender_xy = noc_xy(x, args->top),
        .ready = kernel_semaphore(B_READY),
        .valid = kernel_semaphore(B_VALID),
        .tiles = args->n,
    };
}

static void write_c(volatile struct matmul_args *args, struct noc *noc) {
    struct dram_tensor tensor = matmul_tensor(args, args->c);
    struct cb cb = cb_open(CB_C);
    uint32_t width = args->columns * args->n;
    cb_wait_pages(&cb, args->m * args->n);
    for (uint32_t i = 0; i < args->m; i++) {
        for (uint32_t j = 0; j < args->n; j++) {
            uint32_t page = (args->row * args->m + i) * width + args->column * args->n + j;
            dram_write_page(noc, &tensor, page, cb_page(&cb, i * args->n + j));
        }
    }
    noc_write_barrier(noc);
    cb_pop(&cb, args->m * args->n);
}

int main(void) {
    volatile struct matmul_args *args = KERNEL_ARGS(matmul_args);
    struct operand b = operand_b(args);
    struct dram_tensor tensor = matmul_tensor(args, args->b);
    uint32_t width = args->columns * args->n;
    assert_that(args->m * args->n <= MOST_TILES);
    for (uint32_t step = 0; step < args->k; step++) {
        OPERAND_STEP(&b, &tensor, step * width + args->column * args->n + i);
    }
    operand_end(&b);
    write_c(args, &b.noc);
    return 0;
}
