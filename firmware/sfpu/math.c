/* TRISC1: passes over the tile in a Dst half, each a recorded sequence that a MOP plays 32 times. */
#include "lib/done.h"
#include "sfpu/args.h"
#include "sfpu/exact_ops.h"
#include "sfpu/float_ops.h"
#include "sfpu/macro_ops.h"

#define ROUNDS 32u /* of 32 datums */
#define DRAIN 4u   /* words until what a macro scheduled is complete */

uint32_t tiles_done; /* in local RAM, for a debugger */

static const struct operation operations[OPS] = {
    [OP_EXP] = {{PASS(exp_words)}, {EXP_CONSTANTS}},
    [OP_LOG] = {{PASS(log_words)}, {LOG_CONSTANTS}},
    [OP_RECIPROCAL] = {{PASS(reciprocal_words)}, {{0, 0}}},
    [OP_SQRT] = {{PASS(sqrt_words)}, {{12, 0x5F3759DF}, {13, 0x3FC00000}}},
    [OP_SIGMOID] = {{PASS(sigmoid_sum_words), PASS(sigmoid_words)}, {EXP_CONSTANTS}},
    [OP_TANH] = {{PASS(tanh_sum_words), PASS(tanh_large_words), PASS(tanh_words)},
                 {EXP_CONSTANTS}},
    [OP_GELU] = {{PASS(gelu_argument_words), PASS(gelu_sum_words), PASS(gelu_words)},
                 {GELU_CONSTANTS}},
    [OP_RELU] = {{PASS(relu_words)}, {{0, 0}}},
    [OP_CLAMP] = {{PASS(clamp_words)}, {{0, 0}}}, /* p0 and p1 are in LReg 12 and 13 */
    [OP_LEAKY] = {{PASS(leaky_words)}, {{0, 0}}},
    [OP_EQ] = {{PASS(eq_words)}, {{0, 0}}},
    [OP_NE] = {{PASS(ne_words)}, {{0, 0}}},
    [OP_LT] = {{PASS(lt_words)}, {{0, 0}}},
    [OP_GT] = {{PASS(gt_words)}, {{0, 0}}},
    [OP_LE] = {{PASS(le_words)}, {{0, 0}}},
    [OP_GE] = {{PASS(ge_words)}, {{0, 0}}},
    [OP_WHERE] = {{PASS(where_words)}, {{0, 0}}},
    [OP_MAX] = {{PASS(max_words)}, {{0, 0}}},
    [OP_MIN] = {{PASS(min_words)}, {{0, 0}}},
    [OP_ADD_INT32] = {{PASS(add_int32_words)}, {{0, 0}}},
    [OP_SHIFT] = {{PASS(shift_words)}, {{0, 0}}},
    [OP_FP32_TO_INT32] = {{PASS(fp32_to_int32_words)}, {{0, 0}}},
    [OP_INT32_TO_FP32] = {{PASS(int32_to_fp32_words)}, {{0, 0}}},
    [OP_FP32_TO_BF16] = {{PASS(fp32_to_bf16_words)}, {{0, 0}}},
    [OP_FP32_TO_BF16_RNE] = {{PASS(fp32_to_bf16_rne_words)},
                             {{12, 1}, {13, 0x7FFF}, {14, 0xFFFF0000}}},
    [OP_FP32_TO_UINT16] = {{PASS(fp32_to_uint16_words)}, {{0, 0}}},
    [OP_APPROX_RECIPROCAL] = {{PASS(approx_reciprocal_words)}, {{0, 0}}},
};

static void load_bits(uint32_t reg, uint32_t bits) {
    SFPLOAD_HALF(bits & 0xFFFF, 10, reg); /* low half, high half */
    SFPLOAD_HALF(bits >> 16, 8, reg);
}

/* LReg 11 to 14 are set through LReg 0. */
static void set_constant(uint32_t reg, uint32_t bits) {
    if (reg < 8) {
        load_bits(reg, bits);
    } else {
        load_bits(0, bits);
        TT_SFPCONFIG(0, reg, 0);
    }
}

static void configure(const struct operation *operation) {
    ADDR_MODE(STAY, 0, 0);
    ADDR_MODE(NEXT, 0, DST_STEP(2));
    TTI_SFPENCC(3, 0, 0, 10); /* all lanes on */
    set_constant(12, runtime_args.p0);
    set_constant(13, runtime_args.p1);
    for (uint32_t i = 0; i < 8 && operation->constants[i].reg; i++) {
        set_constant(operation->constants[i].reg, operation->constants[i].bits);
    }
}

static void configure_macros(const struct macros *macros) {
    for (uint32_t i = 0; i < 4; i++) {
        if (macros->templates[i]) {
            TT_PUSH(macros->templates[i]);
        }
        load_bits(0, macros->sequences[i]);
        TT_SFPCONFIG(0, 4 + i, 0);
    }
    TT_SFPCONFIG(/*imm*/macros->misc, 8, 1);
}

/* Recorded without executing; a single pass is recorded once for all tiles. */
static void record(const struct pass *pass) {
    TT_REPLAY(0x000, pass->count, 0, 1);
    for (uint32_t i = 0; i < pass->count; i++) {
        TT_PUSH(pass->words[i]);
    }
}

static void program(uint32_t rounds, uint32_t length) {
    uint32_t play = TTO_REPLAY | TTF_REPLAY_len(length);
    mop_loop_program(1, rounds, TT_OP_NOP, play, TT_OP_NOP, play, play);
}

static void run_passes(const struct operation *operation) {
    for (uint32_t i = 0; i < 3 && operation->passes[i].count; i++) {
        record(&operation->passes[i]);
        program(ROUNDS, operation->passes[i].count);
        TTI_SETRWC(0, 0, 0, 0, 0, RWC_D);
        MOP_LOOP_RUN();
    }
}

static void run_macros(const struct macros *macros) {
    record(&macros->pass);
    program(macros->rounds, macros->pass.count);
    TTI_SETRWC(0, 0, 0, 0, 0, RWC_D);
    MOP_LOOP_RUN();
    for (uint32_t i = 0; i < DRAIN; i++) {
        TTI_SFPNOP;
    }
}

static const struct macros *chosen_macros(uint32_t op) {
    switch (op) {
    case OP_WHERE:
        return &where_macros;
    case OP_FP32_TO_UINT16:
        return &fp32_to_uint16_macros;
    default:
        assert_that(op == OP_APPROX_RECIPROCAL);
        return &approx_reciprocal_macros;
    }
}

int main(void) {
    const struct operation *operation = &operations[runtime_args.op];
    const struct macros *macros = runtime_args.macro ? chosen_macros(runtime_args.op) : 0;
    configure(operation);
    if (macros) {
        configure_macros(macros);
    }
    for (uint32_t i = 0; i < runtime_args.n_tiles; i++) {
        TTI_SEMWAIT(STALL_SYNC | STALL_SFPU, SEM_SEL(SEMAPHORE_DST_FILLED), SEMWAIT_WHILE_ZERO);
        THREAD_CFG((i % 2) * DST_HALF_ROWS, DEST_TARGET_REG_CFG_MATH_Offset_ADDR32);
        if (macros) {
            run_macros(macros);
        } else {
            run_passes(operation);
        }
        TTI_STALLWAIT(STALL_SYNC | STALL_CFG, WAIT_SFPU);
        TTI_SEMGET(SEM_SEL(SEMAPHORE_DST_FILLED));
        TTI_SEMPOST(SEM_SEL(SEMAPHORE_MATH_PACK));
        tiles_done = i + 1;
    }
    tensix_sync();
    done_words[2] = DONE_TRISC(1);
    return 0;
}
