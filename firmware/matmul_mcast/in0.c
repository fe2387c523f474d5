/* NCRISC: A. The first column of the grid reads it and sends it along the row, on NoC 1. */
#include "matmul_mcast/send.h"

static struct operand operand_a(volatile struct matmul_args *args) {
    struct noc noc = noc_open(1);
    uint32_t y = noc.own >> 6;
    uint32_t second = noc_next_column(args->left);
    return (struct operand){
        .noc = noc,
        .cb = cb_open(CB_A),
        .is_sender = args->column == 0,
        .receivers = args->columns - 1,
        .rectangle = noc_rectangle(&noc, second, y, args->right, y),
        .sender_xy = noc_xy(args->left, y),
        .ready = kernel_semaphore(A_READY),
        .valid = kernel_semaphore(A_VALID),
        .tiles = args->m,
    };
}

int main(void) {
    volatile struct matmul_args *args = KERNEL_ARGS(matmul_args);
    struct operand a = operand_a(args);
    struct dram_tensor tensor = matmul_tensor(args, args->a);
    for (uint32_t step = 0; step < args->k; step++) {
        OPERAND_STEP(&a, &tensor, (args->row * args->m + i) * args->k + step);
    }
    operand_end(&a);
    return 0;
}
