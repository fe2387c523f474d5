#include "tilz.h"

static inline void cfg(uint n, uint v) { poke(p_cfg + 4 * n, v); }

static inline void llk_pack_untilize_init(void) {
    cfg(2, 0);
    cfg(12, 0x00200000); /* y: a row */
    cfg(13, 0x08000200); /* w: a tile, z: a face */
    cfg(18, 0);
    cfg(20, 0);
    cfg(24, 0xFFFF);
    cfg(28, 0x1000);
    cfg(68, 0);
    cfg(69, OUT_AT / 16 - 1);
    cfg(70, 0x111);
    cfg(71, 0);
    cfg(180, 0);
    TTI_SETADCXY(4, 0, 0, 0, 0, 0xF);
    TTI_SETADCZW(4, 0, 0, 0, 0, 0xF);
    TTI_SETADCXX(4, 15, 0);
    TTI_SETC16(37, 2 | 0x10); /* the next two, from now on */
    TTI_SETC16(38, 1);        /* the second of them */
    TTI_SETC16(39, 0x0020);   /* back to row 0 */
    TTI_SETC16(40, 0x0010);   /* back to the first */
}

/* A row of 32 numbers is two rows of Dst; after those of tile 0 come those of tile 1. */
static inline void rows(void) {
    for (uint row = 0; row < 32; row++) {
        poke(0xFFE40000u, TT_OP_SETADCZW(4u, 0, 0, 0, 0, 2));
        TTI_PACR(1, 0, 1, 0);
        TTI_PACR(3, 0, 1, 0);
        poke(0xFFE40000u, TT_OP_SETADCZW(4u, 0, 0, 1, 0, 2));
        TTI_PACR(1, 0, 1, 0);
        if (row < 31)
            TTI_PACR(0, 0, 1, 0);
        else
            TTI_PACR(2, 0, 1, 1);
    }
}

void run_kernel(void) {
    llk_pack_untilize_init();
    TTI_STALLWAIT(0x81, 0x400);
    TTI_SEMWAIT(0x81, t6_sem(MATH_PACK), 1);
    rows();
    TTI_STALLWAIT(2, 8);
    TTI_SEMGET(t6_sem(MATH_PACK));
    tensix_sync();
}

int main(void) {
    run_kernel();
    finish(2);
    return 0;
}
