/* Start of every core: global pointer, stack, zeroed .bss, main, and parking afterwards. */

#ifdef CORE_BRISC
    /* BRISC has no reset PC register: it always starts at L1 0. */
    .section .reset, "ax"
    .globl _reset
    .type _reset, @function
_reset:
    j _start
    .size _reset, . - _reset
#endif

    .cfi_sections .debug_frame
    .section .text.start, "ax"
    .globl _start
    .type _start, @function
_start:
    .cfi_startproc
    .cfi_undefined ra /* nobody called it: a backtrace ends here */
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
2:  call main
    .cfi_endproc
    .size _start, . - _start

    .globl park
    .type park, @function
park:
    j park
    .size park, . - park
