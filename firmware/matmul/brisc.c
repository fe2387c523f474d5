/* BRISC: checks the arguments, prepares the coprocessor and runs the three TRISCs. */
#include "lib/start.h"
#include "matmul/args.h"

static void check_sizes(const struct matmul_shape *s) {
    assert_that(s->m <= L1_TILES && s->n <= L1_TILES && s->k <= L1_TILES);
    assert_that(s->blocks >= 1);
    assert_that(runtime_args.phases >= 1 && runtime_args.phases <= 4);
    assert_that(runtime_args.input <= INPUT_BFP8 && runtime_args.fp32 <= 1);
    assert_that(runtime_args.mode <= PARTIALS_L1);
    assert_that(s->block_k <= s->k && s->k % s->block_k == 0);
    assert_that(s->rows <= L1_TILES && s->m % s->rows == 0);
    assert_that(s->columns <= L1_TILES && s->n % s->columns == 0);
    assert_that(s->tiles <= (runtime_args.fp32 ? 4u : 8u));
}

static void check_buffers(const struct matmul_shape *s) {
    uint32_t a = s->m * s->k, b = s->k * s->n, c = s->m * s->n;
    check_area(runtime_args.a, a, s->input_bytes);
    check_area(runtime_args.b, b, s->input_bytes);
    check_area(runtime_args.c, c, TILE_BYTES);
    check_areas_apart(runtime_args.a, a * s->input_bytes, runtime_args.c, c * TILE_BYTES);
    check_areas_apart(runtime_args.b, b * s->input_bytes, runtime_args.c, c * TILE_BYTES);
    if (s->blocks > 1) {
        uint32_t partials = runtime_args.partials, bytes = c * s->partial_bytes;
        check_area(partials, c, s->partial_bytes);
        check_areas_apart(runtime_args.a, a * s->input_bytes, partials, bytes);
        check_areas_apart(runtime_args.b, b * s->input_bytes, partials, bytes);
        check_areas_apart(runtime_args.c, c * TILE_BYTES, partials, bytes);
    }
}

int main(void) {
    struct matmul_shape s = matmul_shape();
    check_sizes(&s);
    check_buffers(&s);
    PACKED_SUBBLOCKS = 0;
    run_triscs();
    return 0;
}
