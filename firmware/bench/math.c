/* TRISC1: per round, what is measured `repeat` times from the replay buffer, into a Dst half. */
#include "bench/args.h"
#include "bench/vector.h"
#include "lib/done.h"
#include "lib/math_half.h"

#define ROWS 8u

#define WAIT_SRCA_VALID 0x080u
#define WAIT_SRCB_VALID 0x100u

#define NEXT_ROWS 0u
#define NEXT_FACE 1u
#define NEXT_PASS 2u /* all back to the start */
#define NEXT_HALF 4u /* the same face of SrcA */

uint32_t rounds_done; /* in local RAM, for a debugger */

static void configure(void) {
    ADDR_MODE(NEXT_ROWS, AB_STEP(ROWS, ROWS), DST_STEP(ROWS));
    ADDR_MODE(NEXT_FACE, AB_STEP(16, ROWS), DST_STEP(ROWS));
    ADDR_MODE(NEXT_PASS, AB_CLEAR, DST_CLEAR);
    ADDR_MODE(NEXT_HALF, AB_STEP(0, ROWS), DST_STEP(ROWS));
    ADDR_MODE(VECTOR_STAY, 0, 0);
    ADDR_MODE(VECTOR_NEXT, 0, DST_STEP(2));
    TTI_SETRWC(0, 0, 0, 0, 0, RWC_ALL);
}

/* 8 rows of SrcB times a face of SrcA into 8 rows of Dst, sixteen times. */
static void record_mvmul(void) {
    TTI_REPLAY(0, 16, 0, 1);
    for (uint32_t i = 1; i < 16; i++) {
        TT_PUSH(TTO_MVMUL | TTF_MVMUL_addr_mode(i % 2 ? NEXT_HALF : NEXT_FACE));
    }
    TT_PUSH(TTO_MVMUL | TTF_MVMUL_addr_mode(NEXT_PASS));
}

static void record_elwadd(void) {
    TTI_REPLAY(0, 8, 0, 1);
    for (uint32_t i = 1; i < 8; i++) {
        TT_PUSH(TTO_ELWADD | TTF_ELWADD_addr_mode(NEXT_ROWS));
    }
    TT_PUSH(TTO_ELWADD | TTF_ELWADD_addr_mode(NEXT_PASS));
}

/* What one repetition runs: `times` the first `length` words of the replay buffer. */
static void program(uint32_t length, uint32_t times) {
    uint32_t play = TTO_REPLAY | TTF_REPLAY_len(length);
    mop_loop_program(1, times, TT_OP_NOP, play, TT_OP_NOP, play, play);
}

static void record(uint32_t what) {
    if (what == BENCH_MVMUL) {
        record_mvmul();
        program(16, 1);
    } else if (what == BENCH_SFPMAD) {
        record_mads();
        program(32, 1);
    } else if (what == BENCH_CHAIN) {
        record_chain();
        program(CHAIN, 8);
    } else {
        record_elwadd();
        program(8, 1);
    }
}

/* Unlike the instructions that read a bank, SETRWC does not wait until there is one. */
static void release_banks(void) {
    TTI_STALLWAIT(STALL_MATH, WAIT_MATH | WAIT_SRCA_VALID | WAIT_SRCB_VALID);
    TTI_SETRWC(CLEAR_SRCA_SRCB, 0, 0, 0, 0, RWC_ALL);
}

/* The vector unit works on what the matrix unit has put into Dst. */
static void copy_tile(void) {
    TTI_MOVA2D(0, 0, NEXT_ROWS, 2, OPERAND_ROWS);
    TTI_MOVA2D(0, 0, NEXT_ROWS, 2, OPERAND_ROWS);
    TTI_MOVA2D(0, 0, NEXT_ROWS, 2, OPERAND_ROWS);
    TTI_MOVA2D(0, 0, NEXT_ROWS, 2, OPERAND_ROWS);
    TTI_MOVA2D(0, 0, NEXT_ROWS, 2, OPERAND_ROWS);
    TTI_MOVA2D(0, 0, NEXT_ROWS, 2, OPERAND_ROWS);
    TTI_MOVA2D(0, 0, NEXT_ROWS, 2, OPERAND_ROWS);
    TTI_MOVA2D(0, 0, NEXT_PASS, 2, OPERAND_ROWS);
    TTI_STALLWAIT(STALL_SFPU, WAIT_MATH);
}

static void work(uint32_t what, uint32_t repeat) {
    uint32_t vector = what == BENCH_SFPMAD || what == BENCH_CHAIN;
    if (vector) {
        copy_tile();
    }
    if (what == BENCH_SFPMAD) {
        load_operands();
    }
    for (uint32_t i = 0; i < repeat; i++) {
        MOP_LOOP_RUN();
        if (what == BENCH_CHAIN) { /* four faces; as one MOP it would overfill a queue of words */
            MOP_LOOP_RUN();
            MOP_LOOP_RUN();
            MOP_LOOP_RUN();
            TTI_SETRWC(0, 0, 0, 0, 0, RWC_D);
        }
    }
    if (what == BENCH_SFPMAD) {
        store_results();
    }
    if (vector) {
        TTI_STALLWAIT(STALL_MATH, WAIT_SFPU);
    }
}

static void round(uint32_t what, uint32_t repeat, uint32_t half) {
    acquire_half(half);
    for (uint32_t i = 1; what == BENCH_UNPACK && i < repeat; i++) {
        release_banks();
    }
    work(what, what == BENCH_UNPACK || what == BENCH_PACK ? 1 : repeat);
    release_banks();
    release_half();
}

int main(void) {
    uint32_t what = runtime_args.what;
    configure();
    load_constants();
    record(what);
    for (uint32_t i = 0; i < runtime_args.rounds; i++) {
        round(what, runtime_args.repeat, i % 2);
        rounds_done = i + 1;
    }
    tensix_sync();
    done_words[2] = DONE_TRISC(1);
    return 0;
}
