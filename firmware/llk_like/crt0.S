/* Start of every core: gp, stack, zeroed .bss, .data from where the loader staged it, main. */

    .section .text.start, "ax"
    .globl _start
    .type _start, @function
_start:
    .option push
    .option norelax
    la gp, __global_pointer$
    .option pop
    la sp, __stack_top
    la a0, __bss_start
    la a1, __bss_end
    beq a0, a1, 2f
1:  sw zero, 0(a0)
    addi a0, a0, 4
    bne a0, a1, 1b
2:  la a0, __data_start
    la a1, __data_end
    la a2, __loader_init_start
    beq a0, a1, 4f
3:  lw a3, 0(a2)
    sw a3, 0(a0)
    addi a0, a0, 4
    addi a2, a2, 4
    bne a0, a1, 3b
4:  call main
    .size _start, . - _start

    .globl park
    .type park, @function
park:
    j park
    .size park, . - park
