#include "ops.h"

#define GMPOOL(dst, mode) _OP(0x33, (mode) << 15 | 1 << 19 | (dst))

int main(void)
{
    EMIT(_OP(0x10, 3 << 19));
    THREADCONFIG(12, 16);
    THREADCONFIG(28, 0);
    THREADCONFIG(14, 0x80);
    THREADCONFIG(30, 0);
    EMIT(_OP(0xA3, 1 << 20 | 1 << 2 << 6));
    WAIT_IDLE();
    WR(0xFFE80008, 0);
    (void)RD(0xFFE80008);
    volatile unsigned *mop = (volatile unsigned *)0xFFB80000;
    mop[0] = 2;                /* upper and lower faces */
    mop[1] = 1;
    mop[2] = GMPOOL(0, 0);     /* left */
    mop[3] = _OP(0x02, 0);
    mop[4] = _OP(0x02, 0);
    mop[5] = GMPOOL(16, 0);    /* right */
    mop[6] = _OP(0x02, 0);
    mop[7] = GMPOOL(16, 2);
    mop[8] = GMPOOL(16, 0);
    THREADCONFIG(1, 0);
    for (unsigned tile = 1; tile <= TILES; tile++) {
        EMIT(_OP(0x37, 0xF));
        EMIT(_OP(0x01, 1 << 23));
        EMIT(_OP(0x37, 3 << 22 | 0xF));
        WAIT_IDLE();
        WR(0x10C, tile);
    }
    STALLWAIT(2, 0x10);
    EMIT(_OP(0xA4, 1 << 2 << 6));
    WAIT_IDLE();
    WR(0x104, 0xD1);
    return 0;
}
