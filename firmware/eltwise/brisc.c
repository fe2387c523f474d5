/* BRISC: checks the arguments, prepares the coprocessor and runs the three TRISCs. */
#include "eltwise/args.h"
#include "lib/start.h"

static void check_args(void) {
    uint32_t n = runtime_args.n_tiles, op = runtime_args.op;
    assert_that(op == OP_ADD || op == OP_SUB || op == OP_MUL);
    assert_that(runtime_args.phases >= 1 && runtime_args.phases <= (op == OP_MUL ? 4u : 1u));
    assert_that(runtime_args.broadcast <= BROADCAST_SCALAR);
    check_buffer(runtime_args.a, n);
    check_buffer(runtime_args.b, n);
    check_buffer(runtime_args.c, n);
    check_apart(runtime_args.a, n, runtime_args.c, n);
    check_apart(runtime_args.b, n, runtime_args.c, n);
}

int main(void) {
    check_args();
    run_triscs();
    return 0;
}
