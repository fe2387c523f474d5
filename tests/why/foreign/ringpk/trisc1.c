#include "common.h"
#define mop(i) (((volatile u *)0xFFB80000)[i])

static void expander(void)
{
    w32(0xFFE80008, 0);
    (void)r32(0xFFE80008);
    mop(0) = 1;
    mop(1) = 8;
    mop(2) = 0x02000000;
    mop(3) = 0x37400001; // SETRWC: A back to 0, the bank to the unpacker
    mop(4) = 0x02000000;
    mop(5) = 0x12002000 | 5 << 14;
    mop(6) = 0x02000000;
    mop(7) = 0x12002000 | 5 << 14;
    mop(8) = 0x12002000 | 5 << 14;
}

int main(void)
{
    SETC16(12 + 5, 8);
    SETC16(28 + 5, 8);
    ttinsn(0xA3200000 | 4 << 3); // semaphore 3: 0 of 2
    expander();
    ttinsn(0x37000000 | 15); // SETRWC: all counters to 0
    u half = 0;
    for (u i = PAGES; i; --i) {
        ttinsn(0xA6000000u | (RES_MATH | RES_SYNC) << 15 | 4 << 3 | 2);
        w32(0xFFE40000, 0xB2010000 | half);
        ttinsn(0x37000004);
        ttinsn(0x01800000);
        STALLWAIT(RES_SYNC, 0x10);
        ttinsn(0xA4000000u | 4 << 3);
        half ^= 512;
    }
    sync();
    w32(0x18108, 0xAA);
    return 0;
}
