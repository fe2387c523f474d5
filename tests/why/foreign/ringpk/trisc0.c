#include "common.h"

int main(void)
{
    cfg(64, 0x01000015);
    cfg(65, 0x00040001);
    cfg(72, 0x25);
    cfg(73, 1);
    cfg(84, 0x40);
    cfg(86, 0x100);
    cfg(92, 0);
    cfg(1, 0x0aaa0000);
    SETC16(5, 4);
    SETC16(41, 0);
    ttinsn(0x5120000F);
    ttinsn(0x5420000F);
    ttinsn(0x5E200000 | 1023 << 10);
    for (u i = 0; i < PAGES; ++i) {
        do
            fence();
        while (ring->avail <= i);
        cfg(76, (SLOT0 + (i & 1) * PAGE) / 16 - 1);
        STALLWAIT(RES_UNPACK, 0x400);
        ttinsn(0x420000C1);
        sync();
        ring->taken = i + 1;
    }
    w32(0x18104, 0xAA);
    return 0;
}
