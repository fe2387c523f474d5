/* What a reader or writer of pages is told: pages first, first + step, ... below end of a tensor. */
#pragma once

#include "lib/cb.h"
#include "lib/noc.h"

struct pages_args {
    uint32_t address, page, banks; /* of the tensor in DRAM */
    uint32_t first, step, end;     /* which pages */
    uint32_t buffer;               /* the circular buffer */
};

static inline struct dram_tensor pages_tensor(volatile struct pages_args *args) {
    return (struct dram_tensor){args->address, args->page, args->banks};
}
