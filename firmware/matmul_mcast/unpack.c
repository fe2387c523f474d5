/* TRISC0: at each step of K every tile of A with every tile of B: B to SrcA, A to SrcB. */
#include "lib/unpack_pair.h"
#include "matmul_mcast/args.h"

static void unpack_step(const struct cb *a, const struct cb *b, uint32_t m, uint32_t n,
                        uint32_t turns) {
    for (uint32_t i = 0; i < m; i++) {
        for (uint32_t j = 0; j < n; j++) {
            unpack_pair(cb_page(b, j), cb_page(a, i), turns++ % UNPACK_CONTEXTS);
        }
    }
}

int main(void) {
    volatile struct matmul_args *args = KERNEL_ARGS(matmul_args);
    struct cb a = cb_open(CB_A), b = cb_open(CB_B);
    uint32_t m = args->m, n = args->n;
    configure_unpack();
    for (uint32_t step = 0; step < args->k; step++) {
        cb_wait_pages(&a, m);
        cb_wait_pages(&b, n);
        unpack_step(&a, &b, m, n, step * m * n);
        cb_pop(&a, m);
        cb_pop(&b, n);
    }
    tensix_sync();
    return 0;
}
