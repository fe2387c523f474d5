/* Operations of the vector unit on every datum of a tile in Dst, 32 datums at a time. */
#pragma once

#include "lib/math_half.h"
#include "lib/tile.h"

#define SFPU_NEXT 7u /* address mode of SFPSTORE: two Dst rows on */

enum {
    SFPU_NONE,
    SFPU_ABS,
    SFPU_NEGATE,
    SFPU_SQUARE,
    SFPU_UINT16_TO_BF16,
    SFPU_ADD_TWO, /* from here: of the datum and that of the next tile in Dst */
    SFPU_MUL_TWO,
    SFPU_MAX_TWO,
    SFPU_WHERE_TWO, /* the datum where it is not negative, else the other */
};

#define LOAD_DEFAULT 0u /* by the format of Dst */
#define LOAD_BF16 2u
#define LOAD_UINT16 6u
#define LREG_ZERO 9u
#define LREG_ONE 10u

static inline void sfpu_word(uint32_t operation) {
    switch (operation) {
    case SFPU_ABS:
        TTI_SFPABS(0, 0, 0, 1); /* as a float */
        break;
    case SFPU_NEGATE:
        TTI_SFPMOV(0, 0, 0, 1); /* with the sign inverted */
        break;
    case SFPU_SQUARE:
        TTI_SFPMUL(0, 0, LREG_ZERO, 0, 0);
        TTI_SFPNOP; /* SFPMUL takes two cycles */
        break;
    case SFPU_ADD_TWO:
        TTI_SFPADD(LREG_ONE, 1, 0, 0, 0);
        TTI_SFPNOP;
        break;
    case SFPU_MUL_TWO:
        TTI_SFPMUL(1, 0, LREG_ZERO, 0, 0);
        TTI_SFPNOP;
        break;
    case SFPU_MAX_TWO:
        TTI_SFPSWAP(0, 0, 1, 1); /* the greater to LReg 0 */
        TTI_SFPNOP;
        break;
    case SFPU_WHERE_TWO:
        TTI_SFPSETCC(0, 0, 0, 0); /* LReg 0 < 0 */
        TTI_SFPMOV(0, 1, 0, 0);
        TTI_SFPENCC(3, 0, 0, 10);
        break;
    default:
        TTI_SFPCAST(0, 0, 0); /* sign and magnitude to fp32, nearest even */
        break;
    }
}

static inline void sfpu_tile(uint32_t operation) {
    if (operation == SFPU_NONE) {
        return;
    }
    uint32_t from = operation == SFPU_UINT16_TO_BF16 ? LOAD_UINT16 : LOAD_DEFAULT;
    uint32_t to = operation == SFPU_UINT16_TO_BF16 ? LOAD_BF16 : LOAD_DEFAULT;
    TTI_STALLWAIT(STALL_SFPU, WAIT_MATH);
    TTI_SETRWC(0, 0, 0, 0, 0, RWC_D);
    for (uint32_t i = 0; i < 32; i++) {
        TT_SFPLOAD(0, from, 0, 0);
        if (operation >= SFPU_ADD_TWO) {
            TT_SFPLOAD(1, from, 0, TILE_ROWS);
        }
        sfpu_word(operation);
        TT_SFPSTORE(0, to, SFPU_NEXT, 0);
    }
    TTI_SETRWC(0, 0, 0, 0, 0, RWC_D);
}
