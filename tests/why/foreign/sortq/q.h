#ifndef Q_H
#define Q_H
#include "stdint_own.h"
/* A queue in L1: head and tail count words for ever, only the producer writes head. */
typedef struct {
    volatile uint32_t head;
    uint32_t pad0[3];
    volatile uint32_t tail;
    uint32_t pad1[3];
    volatile int32_t data[4][32];
} queue_t;
#define QUEUE ((queue_t *)0x30000)
#define SOURCE ((const volatile int32_t *)0x21000)
#define SORTED ((volatile int32_t *)0x22000)
#define MERGED ((volatile int32_t *)0x23000)
#define HISTO ((volatile uint32_t *)0x24000)
#define BLOCK 32
#define BLOCKS 8
#define SYNC() __asm__ volatile("fence" ::: "memory")
#endif
