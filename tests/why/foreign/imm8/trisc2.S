#include "asm.h"
    .macro pacr4 mode, last=0
    tt 0x41000000
    tt 0x41000000
    tt 0x41000000
    tt 0x41000000 + ((\mode) << 15) + \last
    .endm

    .text
    .globl main
    .type main, @function
main:
    li s11, 0xFFEF0000
    li s10, 0xFFE80000
    cfg 2, 0
    cfg 12, 0x400000
    cfg 13, 0x10000400
    cfg 18, 1
    cfg 20, 0
    cfg 24, 0xffff
    cfg 28, 0x1000
    cfg 68, 0
    cfg 69, (L1_C / 16 - 1)
    cfg 70, 0x881
    cfg 71, 0
    cfg 180, 0
    tt 0x5180000F
    tt 0x5480000F
    tt 0x5E800000 + (15 << 10)
    setc16 37, 0x0104
    setc16 38, 0x2820
    setc16 39, 0x1120
    sync
    tt 0xA6000000 + (0x1FF << 15) + (4 << 1) + 1
    pacr4 2
    pacr4 2
    pacr4 2
    pacr4 1, 1
    tt 0xA2000000 + (2 << 15) + 8
    tt 0xA5000000 + (4 << 1)
    sync
    li t0, MBOX
    li t1, 4
    sw t1, 8(t0)
    ret
    .size main, . - main
