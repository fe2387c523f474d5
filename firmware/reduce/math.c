/* TRISC1: pools faces into a row of Dst, and turns the row into a column or into one number. */
#include "lib/math_half.h"
#include "reduce/args.h"

#define STAY 0u       /* next fidelity phase is 0 */
#define STAY_PHASE 1u /* next fidelity phase */

#define SCRATCH 16u /* rows 16-31 of SrcB, those that TRNSPSRCB transposes */
#define MOVE_4_ROWS 2u
#define MOVE_4_ROWS_B2D 4u

uint32_t outputs_done; /* in local RAM */

static void configure(void) {
    ADDR_MODE(STAY, 0, CFG(ADDR_MOD_DST_SEC0_FidelityClear, 1));
    ADDR_MODE(STAY_PHASE, 0, NEXT_PHASE);
    TTI_SETRWC(0, 0, 0, 0, 0, RWC_ALL);
}

/* The MOP pools one face: GMPOOL, or GAPOOL once per fidelity phase. */
static void program_pool(void) {
    uint32_t pool = runtime_args.op == OP_MAX ? TTO_GMPOOL : TTO_GAPOOL;
    uint32_t word = pool | TTF_GAPOOL_instr_mod19(1); /* both share the places of the fields */
    uint32_t next = word | TTF_GAPOOL_pool_addr_mode(STAY_PHASE);
    uint32_t last = word | TTF_GAPOOL_pool_addr_mode(STAY);
    mop_loop_program(1, runtime_args.phases, TT_OP_NOP, next, TT_OP_NOP, last, last);
}

/* Rows 0-15 of Dst, of which only row 0 is not 0, transposed to rows 16-31 of SrcB. */
static void transpose_row(void) {
    TTI_MOVD2B(0, SCRATCH, STAY, MOVE_4_ROWS, 0);
    TTI_MOVD2B(0, SCRATCH + 4, STAY, MOVE_4_ROWS, 4);
    TTI_MOVD2B(0, SCRATCH + 8, STAY, MOVE_4_ROWS, 8);
    TTI_MOVD2B(0, SCRATCH + 12, STAY, MOVE_4_ROWS, 12);
    TTI_GATESRCRST(1, 1);
    TTI_TRNSPSRCB;
    TTI_GATESRCRST(1, 1);
}

static void column_to_dst(void) {
    TTI_MOVB2D(0, SCRATCH, STAY, MOVE_4_ROWS_B2D, 0);
    TTI_MOVB2D(0, SCRATCH + 4, STAY, MOVE_4_ROWS_B2D, 4);
    TTI_MOVB2D(0, SCRATCH + 8, STAY, MOVE_4_ROWS_B2D, 8);
    TTI_MOVB2D(0, SCRATCH + 12, STAY, MOVE_4_ROWS_B2D, 12);
}

/* The column to SrcA, and its pool to row 0 of Dst, which is cleared first. */
static void pool_column(void) {
    TTI_MOVB2A(0, STAY, MOVE_4_ROWS, SCRATCH);
    TTI_MOVB2A(4, STAY, MOVE_4_ROWS, SCRATCH + 4);
    TTI_MOVB2A(8, STAY, MOVE_4_ROWS, SCRATCH + 8);
    TTI_MOVB2A(12, STAY, MOVE_4_ROWS, SCRATCH + 12);
    TTI_GATESRCRST(1, 1);
    TTI_ZEROACC(0, 0, 0, STAY, 0);
    TTI_SETRWC(0, 0, 0, ONES_ROW, 0, RWC_B);
    MOP_LOOP_RUN();
}

static void math_part(void) {
    uint32_t faces = inputs() * faces_of_part();
    for (uint32_t i = 1; i <= faces; i++) {
        MOP_LOOP_RUN();
        if (i == faces && runtime_args.dim != DIM_COLUMN) {
            transpose_row();
            if (runtime_args.dim == DIM_ROW) {
                column_to_dst();
            } else {
                pool_column();
            }
        }
        TTI_SETRWC(CLEAR_SRCA_SRCB, 0, 0, 0, 0, RWC_ALL);
    }
}

static void math_output(uint32_t half) {
    /* The lower part of the sums of rows is face 2, the right one of those of columns face 1. */
    uint32_t apart = runtime_args.dim == DIM_ROW ? 2 * FACE_ROWS : FACE_ROWS;
    acquire_half(half);
    for (uint32_t part = 0; part < parts(); part++) {
        set_dst_row(half, part * apart);
        math_part();
    }
    release_half();
}

int main(void) {
    configure();
    program_pool();
    for (uint32_t i = 0; i < outputs(); i++) {
        math_output(i % 2);
        outputs_done = i + 1;
    }
    tensix_sync();
    done_words[2] = DONE_TRISC(1);
    return 0;
}
