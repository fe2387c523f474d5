/* What both tiles are told. */
#pragma once

#include "kernel/kernel.h"
#include "lib/noc.h"

struct credits_args {
    uint32_t tensor, page, banks, pages; /* in DRAM */
    uint32_t other_x, other_y;           /* the tile at the other end */
    uint32_t slots;                      /* L1 address of SLOTS pages, the same on both tiles */
};

#define SLOTS 2u
#define CREDITS 0u /* semaphore of the producer: slots that are free, SLOTS at first */
#define FILLED 1u  /* semaphore of the consumer: slots that were filled */
