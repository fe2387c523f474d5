/* TRISC1: combines SrcA and SrcB into a Dst half, 8 rows per ELWADD, ELWSUB or ELWMUL. */
#include "eltwise/args.h"
#include "lib/done.h"
#include "lib/math_half.h"

#define ROWS 8u
#define PASS 8u /* instructions for the 64 rows of a tile */

#define NEXT_ROWS 0u
#define NEXT_PASS 1u /* all back to the start, next fidelity phase */

uint32_t tiles_done; /* in local RAM, for a debugger */

static void configure(void) {
    ADDR_MODE(NEXT_ROWS, AB_STEP(ROWS, ROWS), DST_STEP(ROWS));
    ADDR_MODE(NEXT_PASS, AB_CLEAR, DST_CLEAR | NEXT_PHASE);
    TTI_SETRWC(RWC_ALL, 0, 0, 0, 0, 0);
}

/* ELWADD and ELWSUB replace Dst; ELWMUL adds to it, over the phases, from the zeros pack left. */
static uint32_t instruction(uint32_t op) {
    return op == OP_ADD ? TTO_ELWADD : op == OP_SUB ? TTO_ELWSUB : TTO_ELWMUL;
}

/* Recorded once, without executing; the MOP plays it. The three classes share addr_mode's place. */
static void record_tile(uint32_t op) {
    uint32_t word = instruction(op);
    TTI_REPLAY(1, 0, PASS, 0);
    for (uint32_t i = 1; i < PASS; i++) {
        TT_PUSH(word | TTF_ELWADD_addr_mode(NEXT_ROWS));
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
    record_tile(runtime_args.op);
    program_phases(runtime_args.phases, PASS);
    for (uint32_t i = 0; i < runtime_args.n_tiles; i++) {
        math_tile(i % 2);
        tiles_done = i + 1;
    }
    tensix_sync();
    done_words[2] = DONE_TRISC(1);
    return 0;
}
