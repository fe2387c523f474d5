/* colsum: the sum of each column of three tiles, times weights, in row 0 of an output tile. */
#pragma once

#include "lib/done.h"
#include "lib/tensix.h"

#define TILES 3u
#define DATA 0x30000u
#define WEIGHTS 0x2E000u /* a face of 16 x 16, all alike */
#define RESULT 0x40000u
#define FACE 512u
#define TILE 2048u

#define SEM_DONE 6u
