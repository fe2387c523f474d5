#include "asm.h"
    .macro mvmul mode
    tt 0x26000000 + ((\mode) << 14)
    .endm
    .macro half last
    mvmul 0
    mvmul 1
    mvmul 0
    mvmul 2
    mvmul 0
    mvmul 1
    mvmul 0
    mvmul \last
    .endm

    .text
    .globl main
    .type main, @function
main:
    li s10, 0xFFE80000
    li t0, MBOX
1:  fence
    lw t1, 0(t0)
    beqz t1, 1b
    setc16 12, 0x0800
    setc16 28, 8
    setc16 13, 0x4010
    setc16 29, 8
    setc16 14, 0x6040
    setc16 30, 8
    setc16 16, 0x7060
    setc16 32, 0x0400
    setc16 17, 0xC0C0
    setc16 33, 0x2C00
    setc16 1, 0
    tt 0x10180000               # ZEROACC all
    tt 0x3700000F
    li s0, NK
ktile:
    li s1, 4
phase:
    half 4
    half 5
    addi s1, s1, -1
    bnez s1, phase
    tt 0x37C0000F               # counters to 0, both banks back
    addi s0, s0, -1
    bnez s0, ktile
    tt 0xA2000000 + (2 << 15) + 0x10
    tt 0xA4000000 + (4 << 1)    # SEMPOST 1
    sync
    li t0, MBOX
    li t1, 3
    sw t1, 4(t0)
    ret
    .size main, . - main
