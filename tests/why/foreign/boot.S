#ifdef CORE_BRISC
    .section .vector, "ax"
    j _start
#endif
    .section .init, "ax"
    .globl _start
_start:
    la sp, _stack
    la t0, _bss
    la t1, _ebss
    bgeu t0, t1, 1f
0:  sw x0, 0(t0)
    addi t0, t0, 4
    bltu t0, t1, 0b
1:  call main
2:  j 2b
