/* The words by which the cores say that they are done. */
#pragma once

#include "lib/types.h"

/* The linker script fixes the address. */
extern volatile uint32_t done_words[64]; /* BRISC, TRISC0, TRISC1, TRISC2, then a kernel's own */

#define DONE_BRISC 0xD0E0u
#define DONE_TRISC(n) (0xD0E1u + (n))
