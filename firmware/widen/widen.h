/* widen: bf16 tiles become fp32 tiles by way of a 32-bit Dst; no BRISC. */
#pragma once

#include "lib/done.h"
#include "lib/tensix.h"

#define NTILES 3u
#define IN 0x30000u
#define OUT 0x50000u
#define IN_TILE 2048u
#define OUT_TILE 4096u

#define SEM_FULL 2u /* Dst halves that T1 has filled */
