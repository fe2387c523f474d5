#include "ops.h"

static void unpacker(unsigned section)
{
    const unsigned base = 64 + 48 * section;
    CONFIG(base, 0x01000015);
    CONFIG(base + 1, 0x00040001);
    CONFIG(base + 8, 0x25);
    CONFIG(base + 9, 3);
}

int main(void)
{
    unpacker(0);
    unpacker(1);
    CONFIG(84, 0x00400040);
    CONFIG(86, 0x01000100);
    CONFIG(92, 0);
    CONFIG(1, 0x0AAA0000);
    THREADCONFIG(5, 4);
    THREADCONFIG(41, 0);
    EMIT(0x5160000F);
    EMIT(0x5460000F);
    EMIT(0x5E600000 | 1023 << 10);
    for (unsigned tile = 0; tile < TILES; tile++) {
        while (RD(0x10C) + 2 <= tile) /* T1 counts its tiles there */
            __asm__ volatile("fence");
        WAIT_IDLE();
        CONFIG(76, IN / 16 + tile * 128 - 1);
        CONFIG(124, ONES / 16 - 1);
        STALLWAIT(8, 0x400);
        EMIT(0x420000C1);
        EMIT(0x428000C1);
    }
    WAIT_IDLE();
    WR(0x100, 0xD0);
    return 0;
}
