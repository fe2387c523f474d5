/* Access to the tile from its cores: configuration, GPRs, semaphores, queues, MOP templates. */
#pragma once

#include "lib/types.h"
#define BHEMU_TT_ORDER
#include "tensix_insn.h" /* generated: TT_OP_*, TTI_*, TT_*, configuration fields */

/* Addresses as in the Blackhole tile's memory map. */
#define RISCV_DEBUG_REG_SOFT_RESET_0 0xFFB121B0u
#define RISCV_DEBUG_REG_TRISC0_RESET_PC 0xFFB12228u
#define RISCV_DEBUG_REG_TRISC_RESET_PC_OVERRIDE 0xFFB12234u
#define MOP_CFG_BASE 0xFFB80000u
#define GPR_BASE 0xFFE00000u
#define PC_BUF_THREAD_SYNC 0xFFE80004u
#define PC_BUF_MOP_SYNC 0xFFE80008u
#define PC_BUF_SEMAPHORE 0xFFE80020u
#define TENSIX_CFG_BASE 0xFFEF0000u

#define SOFT_RESET_TRISCS 0x7000u

/* Data formats of unpacker, Dst and packer. */
#define FORMAT_FLOAT32 0u
#define FORMAT_TF32 4u
#define FORMAT_FLOAT16_B 5u
#define FORMAT_BFP8_B 6u

/* Tensix semaphores as tt-llk assigns them. */
#define SEMAPHORE_MATH_PACK 1u   /* Dst halves that math has filled and pack not yet released */
#define SEMAPHORE_UNPACK_SYNC 5u /* unpacker contexts in use */
#define SEM_SEL(semaphore) (1u << (semaphore))
#define SEMWAIT_WHILE_ZERO 1u
#define SEMWAIT_WHILE_MAX 2u

/* Block bits B0..B8 of STALLWAIT and SEMWAIT. */
#define STALL_TDMA 0x01u
#define STALL_SYNC 0x02u
#define STALL_UNPACK 0x08u
#define STALL_MATH 0x40u
#define STALL_CFG 0x80u
#define STALL_SFPU 0x100u
/* Condition bits C0..C12 of STALLWAIT. */
#define WAIT_THCON 0x001u
#define WAIT_UNPACK0 0x002u
#define WAIT_PACK 0x008u
#define WAIT_MATH 0x010u
#define WAIT_TRISC_CFG 0x400u
#define WAIT_SFPU 0x800u

/* Rows of one of the two Dst halves, and the same in the packer's row offset. */
#define DST_HALF_ROWS 512u

/* A configuration field's bits in place. */
#define CFG(field, value) (((uint32_t)(value) << field##_SHAMT) & field##_MASK)

static inline void store(uint32_t address, uint32_t value) {
    *(volatile uint32_t *)address = value;
}

static inline uint32_t load(uint32_t address) { return *(volatile uint32_t *)address; }

/* Waits for the value: a load whose result nobody reads could still be on its way. */
static inline void load_and_wait(uint32_t address) {
    __asm__ volatile("and zero, zero, %0" : : "r"(load(address)) : "memory");
}

/* Orders L1 accesses and drops the core's read cache, so that polling sees other cores' stores. */
static inline void fence(void) { __asm__ volatile("fence" : : : "memory"); }

static inline void assert_that(int condition) {
    if (!condition) {
        __asm__ volatile("ebreak" : : : "memory");
    }
}

static inline void cfg_write(uint32_t word, uint32_t value) {
    store(TENSIX_CFG_BASE + 4 * word, value);
}

static inline void gpr_write(uint32_t index, uint32_t value) {
    store(GPR_BASE + 4 * index, value);
}

static inline uint32_t semaphore_read(uint32_t semaphore) {
    return load(PC_BUF_SEMAPHORE + 4 * semaphore);
}

static inline void semaphore_post(uint32_t semaphore) {
    store(PC_BUF_SEMAPHORE + 4 * semaphore, 0);
}

/* Returns when every Tensix word of this thread has been executed. */
static inline void tensix_sync(void) {
    store(PC_BUF_THREAD_SYNC, 0);
    load_and_wait(PC_BUF_THREAD_SYNC);
}

/* Returns when no MOP of this thread is expanding: only then may its template change. */
static inline void mop_sync(void) {
    store(PC_BUF_MOP_SYNC, 0);
    load_and_wait(PC_BUF_MOP_SYNC);
}

/* Template 1: outer times { start; inner times loop, the last one replaced; end }. NOP = absent. */
static inline void mop_loop_program(uint32_t outer, uint32_t inner, uint32_t start, uint32_t loop,
                                    uint32_t end, uint32_t last_inner, uint32_t last_outer) {
    mop_sync();
    store(MOP_CFG_BASE + 0x00, outer);
    store(MOP_CFG_BASE + 0x04, inner);
    store(MOP_CFG_BASE + 0x08, start);
    store(MOP_CFG_BASE + 0x0C, end);
    store(MOP_CFG_BASE + 0x10, TT_OP_NOP);
    store(MOP_CFG_BASE + 0x14, loop);
    store(MOP_CFG_BASE + 0x18, TT_OP_NOP);
    store(MOP_CFG_BASE + 0x1C, last_outer);
    store(MOP_CFG_BASE + 0x20, last_inner);
}

#define MOP_LOOP_RUN() TTI_MOP(1, 0, 0)

/* Pushes a new value of a ThreadConfig word. */
#define THREAD_CFG(value, word) TT_SETC16(word, value)

/* Pushes a new half of an LReg; mode 8: the high one, 10: the low one. */
#define SFPLOAD_HALF(value, mode, lreg) TT_SFPLOADI(lreg, mode, value)
