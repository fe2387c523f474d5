/* BRISC: checks the arguments, prepares the coprocessor and runs the three TRISCs. */
#include "bench/args.h"
#include "lib/start.h"

static void check_args(void) {
    assert_that(runtime_args.what <= BENCH_PACK && runtime_args.repeat >= 1);
    check_buffer(runtime_args.a, BUFFER_TILES);
    check_buffer(runtime_args.b, BUFFER_TILES);
    check_buffer(runtime_args.c, BUFFER_TILES);
    check_apart(runtime_args.a, BUFFER_TILES, runtime_args.c, BUFFER_TILES);
    check_apart(runtime_args.b, BUFFER_TILES, runtime_args.c, BUFFER_TILES);
}

int main(void) {
    check_args();
    run_triscs();
    return 0;
}
