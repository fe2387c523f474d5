#include "common.h"

static void once(void)
{
    cfg(2, 0);
    cfg(12, 0x200000);
    cfg(13, 0x8000200);
    cfg(18, 0);
    cfg(20, 0);
    cfg(24, 0xffff);
    cfg(28, 0x1000);
    cfg(68, 0);
    cfg(69, SUM / 16 - 1);
    cfg(70, 0x551);
    cfg(71, 0);
    ttinsn(0x5180000F);
    ttinsn(0x5480000F);
    ttinsn(0x5E800000 | 15 << 10);
    SETC16(37, 0x0104);
    SETC16(38, 0x2820);
    SETC16(39, 0x1120);
    // 16 PACR at 8
    ttinsn(0x04000001 | 16 << 4 | 8 << 14);
    for (u k = 1; k < 16; ++k)
        w32(0xFFE40000, 0x41000000 | (k % 4 ? 0u : 2u) << 15);
    ttinsn(0x41008001);
}

int main(void)
{
    once();
    for (u i = 0; i < PAGES; ++i) {
        if (i == 1)
            cfg(71, 0x80000); // from now on add
        cfg(180, (i & 1) << 9);
        STALLWAIT(RES_TDMA | RES_CFG, 0x400);
        ttinsn(0xA6000000u | RES_TDMA << 15 | 4 << 3 | 1);
        ttinsn(0x04000000 | 16 << 4 | 8 << 14);
        STALLWAIT(RES_SYNC, 0x8);
        ttinsn(0xA5000000u | 4 << 3);
        sync();
    }
    w32(0x1810C, 0xAA);
    return 0;
}
