/* Goes before every kernel source: what sfpi's compiler has built in. */
#ifndef STOCK_TTNN_PREFIX
#define STOCK_TTNN_PREFIX

/* A Tensix word in the instruction stream stands rotated left by two bits. */
__asm__(
    ".macro .ttinsn word\n"
    "  .4byte (((\\word) << 2) & 0xfffffffc) | (((\\word) >> 30) & 3)\n"
    ".endm\n");

/* GCC 12 evaluates static_assert(false) in templates that nothing instantiates. */
#ifdef __cplusplus
#define static_assert(...)
#endif

#endif
