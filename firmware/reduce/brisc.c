/* BRISC: checks the arguments, writes the scaler's face, prepares and runs the three TRISCs. */
#include "lib/start.h"
#include "reduce/args.h"

#define ONE 0x3F800000u

static void check_args(void) {
    uint32_t m = runtime_args.m, n = runtime_args.n, op = runtime_args.op;
    assert_that(m >= 1 && m <= L1_TILES && n >= 1 && n <= L1_TILES);
    assert_that(op <= OP_MAX && runtime_args.dim <= DIM_SCALAR);
    assert_that((runtime_args.scale & 0xFFFF) == 0);
    assert_that(op == OP_SUM || runtime_args.scale == ONE);
    assert_that(runtime_args.phases >= 1 && runtime_args.phases <= (op == OP_SUM ? 4u : 1u));
    check_buffer(runtime_args.src, m * n);
    check_buffer(runtime_args.dst, outputs());
    check_area(runtime_args.scaler, 1, FACE_BYTES);
    check_apart(runtime_args.src, m * n, runtime_args.dst, outputs());
    check_areas_apart(runtime_args.scaler, FACE_BYTES, runtime_args.src, m * n * TILE_BYTES);
    check_areas_apart(runtime_args.scaler, FACE_BYTES, runtime_args.dst, outputs() * TILE_BYTES);
}

/* Row 0 holds the scale, ONES_ROW 1, all others 0: they are what four rows of Dst are made from. */
static void write_scaler(void) {
    for (uint32_t row = 0; row < FACE_ROWS; row++) {
        uint32_t high = row == 0 ? runtime_args.scale : row == ONES_ROW ? ONE : 0;
        for (uint32_t i = 0; i < BF16_ROW_BYTES; i += 4) {
            store(runtime_args.scaler + row * BF16_ROW_BYTES + i, high | high >> 16);
        }
    }
    fence();
}

int main(void) {
    check_args();
    write_scaler();
    run_triscs();
    return 0;
}
