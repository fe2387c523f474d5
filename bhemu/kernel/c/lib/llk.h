/* The macros of a tt-llk checkout in place of bhemu's: for C++, included before all else.
 * [build] include of the PROGRAM.toml names tt_llk_blackhole/common/inc of the checkout. */
#pragma once

#define _Static_assert static_assert
#define BHEMU_LLK /* tensix_insn.h leaves TT_OP_*, TTI_* and TT_* to ckernel_ops.h */

#ifndef __riscv_xtttensixbh /* whose compiler knows this directive: a word, rotated left by 2 */
__asm__(".macro .ttinsn word\n"
        ".4byte (((\\word) << 2) | (((\\word) & 0xFFFFFFFF) >> 30)) & 0xFFFFFFFF\n"
        ".endm");
#endif

/* What TT_* of ckernel_ops.h stores to (ckernel.h, which needs headers of tt-metal). */
namespace ckernel {
static volatile unsigned *const instrn_buffer = (volatile unsigned *)0xFFE40000u;
}

#include "ckernel_ops.h"

#ifdef TTI_INSN /* newer ones: an error unless tt-metal's compiler and defines are there */
#undef TTI_INSN
#undef TT_INSN
#define TTI_INSN(word) ({ __asm__ __volatile__(".ttinsn %0" : : "i"((unsigned)(word))); })
#define TT_INSN(word) ((void)(ckernel::instrn_buffer[0] = (unsigned)(word)))
#endif
