/* refeed: out = a * b + b, tile by tile, with ReLU in every second tile; the product goes back from Dst
 * to SrcA for the sum. BRISC hands out jobs, NCRISC adds up the bits of what was packed. */
#pragma once

#include "lib/done.h"
#include "lib/tensix.h"

struct refeed_args {
    uint32_t tiles;
    uint32_t a, b, out;
    uint32_t sums; /* a word per tile */
};

extern volatile struct refeed_args runtime_args;

struct job {
    uint32_t a, b, out, relu;
};

#define SLOTS 2u
#define JOB(i) ((volatile struct job *)(0x20000u + (i) % SLOTS * 16u))
#define ISSUED done_words[16] /* jobs that BRISC has written */
#define TAKEN_0 done_words[20] /* and those that T0 and T2 have read */
#define TAKEN_2 done_words[24]
#define PACKED done_words[28] /* tiles in L1 */

#define DONE_NCRISC 0xD0E5u

#define TILE 2048u
#define SEM_HALF 2u /* Dst halves that are full */
