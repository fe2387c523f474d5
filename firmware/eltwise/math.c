/* TRISC1: combines SrcA and SrcB into a Dst half, 8 rows per ELWADD, ELWSUB or ELWMUL. */
#include "eltwise/args.h"
#include "lib/done.h"
#include "lib/math_half.h"

#define ROWS 8u
#define PASS 8u /* instructions for the 64 rows of a tile */

#define STEP_0 0u
#define NEXT_PASS 1u /* all back to the start, next fidelity phase */
#define STEP_1 2u
#define STEP_2 3u

/* How SrcB goes on after instruction `i` of a pass: within a face, to the next one in the row of
 * faces, to the next row of faces. */
static uint32_t step(uint32_t i) { return i == 3 ? STEP_2 : i % 4 == 1 ? STEP_1 : STEP_0; }

uint32_t tiles_done; /* in local RAM, for a debugger */

/* Faces lie 16 rows apart, and 48 rows on, modulo 64, is 16 back. */
static void configure_steps(uint32_t broadcast) {
    if (broadcast == BROADCAST_ROW) { /* row 0 of faces 0, 1, 0, 1, for both halves of each */
        ADDR_MODE(STEP_0, AB_STEP(ROWS, 0), DST_STEP(ROWS));
        ADDR_MODE(STEP_1, AB_STEP(ROWS, 16), DST_STEP(ROWS));
        ADDR_MODE(STEP_2, AB_STEP(ROWS, 48), DST_STEP(ROWS));
    } else if (broadcast == BROADCAST_COLUMN) { /* column 0 of faces 0, 0, 2, 2 */
        ADDR_MODE(STEP_0, AB_STEP(ROWS, ROWS), DST_STEP(ROWS));
        ADDR_MODE(STEP_1, AB_STEP(ROWS, 64 - ROWS), DST_STEP(ROWS));
        ADDR_MODE(STEP_2, AB_STEP(ROWS, 32 - ROWS), DST_STEP(ROWS));
    } else if (broadcast == BROADCAST_SCALAR) {
        ADDR_MODE(STEP_0, AB_STEP(ROWS, 0), DST_STEP(ROWS));
        ADDR_MODE(STEP_1, AB_STEP(ROWS, 0), DST_STEP(ROWS));
        ADDR_MODE(STEP_2, AB_STEP(ROWS, 0), DST_STEP(ROWS));
    } else {
        ADDR_MODE(STEP_0, AB_STEP(ROWS, ROWS), DST_STEP(ROWS));
        ADDR_MODE(STEP_1, AB_STEP(ROWS, ROWS), DST_STEP(ROWS));
        ADDR_MODE(STEP_2, AB_STEP(ROWS, ROWS), DST_STEP(ROWS));
    }
}

static void configure(void) {
    configure_steps(runtime_args.broadcast);
    ADDR_MODE(NEXT_PASS, AB_CLEAR, DST_CLEAR | NEXT_PHASE);
    TTI_SETRWC(0, 0, 0, 0, 0, RWC_ALL);
}

/* ELWADD and ELWSUB replace Dst; ELWMUL adds to it, over the phases, from the zeros pack left. */
static uint32_t instruction(uint32_t op) {
    return op == OP_ADD ? TTO_ELWADD : op == OP_SUB ? TTO_ELWSUB : TTO_ELWMUL;
}

/* Recorded once, without executing; the MOP plays it. The three classes share the places
 * of addr_mode and instr_mod19. */
static void record_tile(uint32_t op, uint32_t broadcast) {
    uint32_t word = instruction(op) | TTF_ELWADD_instr_mod19(broadcast);
    TTI_REPLAY(0, PASS, 0, 1);
    for (uint32_t i = 0; i < PASS - 1; i++) {
        TT_PUSH(word | TTF_ELWADD_addr_mode(step(i)));
    }
    TT_PUSH(word | TTF_ELWADD_addr_mode(NEXT_PASS));
}

static void math_tile(uint32_t half) {
    acquire_half(half);
    MOP_LOOP_RUN();
    release_half();
}

int main(void) {
    configure();
    record_tile(runtime_args.op, runtime_args.broadcast);
    program_phases(runtime_args.phases, PASS);
    for (uint32_t i = 0; i < runtime_args.n_tiles; i++) {
        math_tile(i % 2);
        tiles_done = i + 1;
    }
    tensix_sync();
    done_words[2] = DONE_TRISC(1);
    return 0;
}
