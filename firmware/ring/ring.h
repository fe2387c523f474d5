/* ring: BRISC writes pages of words into a ring, NCRISC turns them into running sums. */
#pragma once

#include "lib/done.h"
#include "lib/tensix.h"

#define PAGES 12u
#define WORDS 16u
#define SLOTS 4u
#define SOURCE 0x21000u
#define RING 0x22000u
#define SUMS 0x23000u

#define WRITTEN done_words[8] /* pages that BRISC has written */
#define TAKEN done_words[9]   /* pages that NCRISC has used */

static inline uint32_t slot(uint32_t page) { return RING + page % SLOTS * WORDS * 4; }
