/* Start of every kernel: a function that the firmware calls, whose stack it uses. It fills .data and
 * .bss in local RAM and calls main. */

    .section .text.start, "ax"
    .globl _start
    .type _start, @function
_start:
    addi sp, sp, -16
    sw ra, 12(sp)
    lui a0, %hi(__data_load)
    addi a0, a0, %lo(__data_load)
    lui a1, %hi(__data_start)
    addi a1, a1, %lo(__data_start)
    lui a2, %hi(__data_end)
    addi a2, a2, %lo(__data_end)
    beq a1, a2, 2f
1:  lw a3, 0(a0)
    sw a3, 0(a1)
    addi a0, a0, 4
    addi a1, a1, 4
    bne a1, a2, 1b
2:  lui a2, %hi(__bss_end)
    addi a2, a2, %lo(__bss_end)
    beq a1, a2, 4f
3:  sw zero, 0(a1)
    addi a1, a1, 4
    bne a1, a2, 3b
4:  call main
    lw ra, 12(sp)
    addi sp, sp, 16
    ret
    .size _start, . - _start
