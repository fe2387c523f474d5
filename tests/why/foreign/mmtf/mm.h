/* C[2] = A[2][2] * B[2], fp32 in L1, tf32 in Src, fp32 in Dst. BRISC deals out the work by mailbox. */
#pragma once
typedef __UINT32_TYPE__ uint32_t;
typedef volatile uint32_t *reg_t;
#define MAIL(core) ((reg_t)(0xFFEC0000 + 0x1000 * (core)))
enum core { BRISC, T0, T1, T2 };
#define A 0x40000
#define B 0x48000
#define C 0x4C000
#define BYTES 4096

#define ckernel_insn(w) __asm__ volatile(".word %0" : : "i"((((w) & 0x3FFFFFFFu) << 2) | ((w) >> 30)))
static const reg_t cfg_regs = (reg_t)0xFFEF0000;
static const reg_t instrn_buffer = (reg_t)0xFFE40000;
static inline void wait_for_tensix(void) {
    ((reg_t)0xFFE80004)[0] = 0;
    uint32_t v = ((reg_t)0xFFE80004)[0];
    __asm__ volatile("" : : "r"(v));
}
static inline void tell(enum core who, uint32_t what) { *MAIL(who) = what; }
static inline uint32_t ask(enum core who) { return *MAIL(who); }
