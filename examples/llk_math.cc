/* math.c of `bhemu new relu --kernel`, written with tt-llk's headers: see docs/kernels.md. */
#include "lib/llk.h" /* before all else */

#include "args.h"
#include "lib/math_half.h"
#include "lib/llk_names.h" /* after all else */

using namespace ckernel;

/* Address modes of math_half.h. */
constexpr unsigned STAY = 0, NEXT_ROWS = 2, NEXT = 7;

static inline void operation() {
    TTI_SFPLOAD(p_sfpu::LREG0, 0, STAY, 0);
    TTI_SFPSETCC(0, p_sfpu::LREG0, 0, 0);
    TTI_SFPLOADI(p_sfpu::LREG0, 0, 0x0000);
    TTI_SFPENCC(0, 0, 0, 0);
    TTI_SFPSTORE(p_sfpu::LREG0, 0, NEXT, 0);
}

static void configure() {
    TTI_SEMINIT(2, 0, SEM_SEL(SEMAPHORE_MATH_PACK));
    ADDR_MODE(STAY, 0, 0);
    ADDR_MODE(NEXT_ROWS, AB_STEP(8, 0), DST_STEP(8));
    ADDR_MODE(NEXT, 0, DST_STEP(2));
    TTI_SFPENCC(3, 0, 0, 10);
    TTI_SETRWC(p_setrwc::CLR_NONE, 0, 0, 0, 0, p_setrwc::SET_ABD_F);
}

static void math_tile(uint32_t half) {
    acquire_half(half);
    for (uint32_t row = 0; row < TILE_ROWS; row += 8) {
        TTI_MOVA2D(0, 0, NEXT_ROWS, 2, 0);
    }
    TTI_SETRWC(p_setrwc::CLR_A, 0, 0, 0, 0, p_setrwc::SET_ABD_F);
    TTI_STALLWAIT(p_stall::STALL_SFPU, p_stall::MATH);
    for (uint32_t datum = 0; datum < TILE_DATUMS; datum += 32) {
        operation();
    }
    TTI_SETRWC(p_setrwc::CLR_NONE, 0, 0, 0, 0, p_setrwc::SET_ABD_F);
    TTI_STALLWAIT(p_stall::STALL_SYNC, p_stall::WAIT_SFPU);
    release_half();
}

int main() {
    volatile args *own = KERNEL_ARGS(args);
    uint32_t half = 0;
    configure();
    for (EACH_TILE(own, tile)) {
        math_tile(half);
        half ^= 1;
    }
    tensix_sync();
    return 0;
}
