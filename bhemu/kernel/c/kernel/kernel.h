/* What a kernel finds when the firmware calls it: arguments, semaphores, circular buffers. */
#pragma once

#include "slow_dispatch/mailbox.h"

/* The runtime arguments of this core, as the host gave them. */
#define KERNEL_ARGS(type) ((volatile struct type *)rta_l1_base)

/* The address of a semaphore in L1, the same on every tile. Data movement cores only. */
static inline uint32_t kernel_semaphore(uint32_t n) { return sem_l1_base + 16u * n; }
