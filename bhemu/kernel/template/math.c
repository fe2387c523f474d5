/* TRISC1: it computes. A tile comes in SrcA, goes to a half of register file Dst, and from there 32
 * datums at a time through the vector unit, which is programmed in `operation`.
 *
 * What an instruction does and what its operands mean: bhemu explain SFPSETCC. */
#include "args.h"
#include "lib/math_half.h"

/* Registers of the vector unit: LREG 0 to 7 hold 32 fp32 values each; some others are constants. */
#define X 0u
#define ZERO 9u
#define ONE 10u

/* Address modes: how far the row counters go on after an instruction, see `configure`. */
#define STAY 0u
#define NEXT_ROWS 2u
#define NEXT 7u

/* y = max(x, 0), for 32 datums: write your own operation here. */
static inline void operation(void) {
    TTI_SFPLOAD(X, 0, STAY, 0);   /* X = 32 datums of Dst */
    TTI_SFPSETCC(0, X, 0, 0);     /* from here on only the lanes in which X is negative */
    TTI_SFPLOADI(X, 0, 0x0000);   /* X = 0.0; the immediate is the upper half of an fp32 value */
    TTI_SFPENCC(0, 0, 0, 0);      /* all lanes again */
    TTI_SFPSTORE(X, 0, NEXT, 0);  /* the datums = X, cut to bf16, and on to the next 32 */
}

static void configure(void) {
    TTI_SEMINIT(2, 0, SEM_SEL(SEMAPHORE_MATH_PACK)); /* counts full halves of Dst: 2 at most, 0 now */
    ADDR_MODE(STAY, 0, 0);
    ADDR_MODE(NEXT_ROWS, AB_STEP(8, 0), DST_STEP(8));
    ADDR_MODE(NEXT, 0, DST_STEP(2));
    TTI_SFPENCC(3, 0, 0, 10); /* all lanes on, and SFPSETCC may turn them off */
    TTI_SETRWC(0, 0, 0, 0, 0, RWC_ALL); /* row counters = 0 */
}

static void math_tile(uint32_t half) {
    acquire_half(half); /* waits until pack has released it */
    for (uint32_t row = 0; row < TILE_ROWS; row += 8) {
        TTI_MOVA2D(0, 0, NEXT_ROWS, 2, 0); /* eight rows of SrcA to Dst */
    }
    TTI_SETRWC(CLEAR_SRCA, 0, 0, 0, 0, RWC_ALL); /* SrcA goes back to the unpacker */
    TTI_STALLWAIT(STALL_SFPU, WAIT_MATH);        /* the vector unit waits for the moves */
    for (uint32_t datum = 0; datum < TILE_DATUMS; datum += 32) {
        operation();
    }
    TTI_SETRWC(0, 0, 0, 0, 0, RWC_ALL);
    TTI_STALLWAIT(STALL_SYNC, WAIT_SFPU); /* the half is handed over when the last store is done */
    release_half();
}

int main(void) {
    volatile struct args *args = KERNEL_ARGS(args);
    uint32_t half = 0; /* pack empties one half of Dst while the other is computed */
    configure();
    for (EACH_TILE(args, tile)) {
        math_tile(half);
        half ^= 1;
    }
    tensix_sync();
    return 0;
}
