#include "asm.h"
    .text
    .globl main
    .type main, @function
main:
    li s11, 0xFFEF0000
    li s10, 0xFFE80000
    tt 0xA3100000 + (4 << 1)    # SEMINIT 1: 0, at most 1
    cfg 64, 0x0100001e
    cfg 65, 0x00040001
    cfg 72, 0x2e
    cfg 73, 3
    cfg 84, 0x00400040
    cfg 86, 0x01000100
    cfg 92, 0
    cfg 112, 0x0100001e
    cfg 113, 0x00040001
    cfg 120, 0x2e
    cfg 121, 3
    cfg 1, 0x91dc0000
    setc16 5, 4
    setc16 41, 0
    tt 0x5160000F
    tt 0x5460000F
    tt 0x5E200000 + (1023 << 10)
    tt 0x5E400000 + (1023 << 10)
    sync
    li t0, MBOX
    li t1, 1
    sw t1, 0(t0)            # configured: T1 may go on
    li s0, L1_B
    li s1, L1_A
    li s2, NK
next:
    srli a0, s0, 4
    addi a0, a0, -1
    srli a1, s1, 4
    addi a1, a1, -1
    sw a0, 76 * 4(s11)
    sw a1, 124 * 4(s11)
    tt 0xA2000000 + (8 << 15) + 0x400
    tt 0x420000C1           # SrcA
    tt 0x428000C1           # SrcB
    sync
    addi s0, s0, 1024
    addi s1, s1, 1024
    addi s2, s2, -1
    bnez s2, next
    li t0, MBOX
    li t1, 2
    sw t1, 0(t0)
    ret
    .size main, . - main
