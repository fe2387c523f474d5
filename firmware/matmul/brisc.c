/* BRISC: checks the arguments, prepares the coprocessor and runs the three TRISCs. */
#include "lib/start.h"
#include "matmul/args.h"

static void check_args(void) {
    uint32_t m = runtime_args.m, k = runtime_args.k, n = runtime_args.n;
    assert_that(m <= L1_TILES && n <= L1_TILES && k >= 1 && k <= L1_TILES);
    assert_that(runtime_args.phases >= 1 && runtime_args.phases <= 4);
    check_buffer(runtime_args.a, m * k);
    check_buffer(runtime_args.b, k * n);
    check_buffer(runtime_args.c, m * n);
    check_apart(runtime_args.a, m * k, runtime_args.c, m * n);
    check_apart(runtime_args.b, k * n, runtime_args.c, m * n);
}

int main(void) {
    check_args();
    run_triscs();
    return 0;
}
