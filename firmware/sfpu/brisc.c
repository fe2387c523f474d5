/* BRISC: checks the arguments, prepares the coprocessor and runs the three TRISCs. */
#include "sfpu/args.h"
#include "lib/start.h"

/* check_buffer counts in bf16 tiles, two of which make one of 32-bit datums. */
static void check_args(void) {
    uint32_t n = 2 * runtime_args.n_tiles;
    assert_that(runtime_args.op < OPS && runtime_args.macro <= 1);
    assert_that(runtime_args.inputs >= 1 && runtime_args.inputs <= 3);
    check_buffer(runtime_args.out, n);
    for (uint32_t i = 0; i < runtime_args.inputs; i++) {
        check_buffer(runtime_args.in[i], n);
        check_apart(runtime_args.in[i], n, runtime_args.out, n);
    }
}

int main(void) {
    check_args();
    TT_SEMINIT(2, 2, SEM_SEL(SEMAPHORE_DST_FREE));
    TT_SEMINIT(2, 0, SEM_SEL(SEMAPHORE_DST_FILLED));
    run_triscs();
    return 0;
}
