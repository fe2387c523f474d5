/* int8 x int8 -> int32, K tiles deep: hand-made words. */
#define NK 3
#define L1_A 0x20000
#define L1_B 0x22000
#define L1_C 0x24000
#define MBOX 0x700

    .macro tt word
    .word (((\word) << 2) & 0xffffffff) | ((\word) >> 30)
    .endm

    .macro cfg n, value
    li a5, \value
    sw a5, 4 * (\n)(s11)
    .endm

    .macro setc16 n, value
    tt 0xB2000000 + ((\n) << 16) + (\value)
    .endm

    .macro sync
    sw zero, 4(s10)
    lw a5, 4(s10)
    and zero, a5, zero
    .endm
