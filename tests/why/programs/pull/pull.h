/* pull: the first tile makes pages, the others fetch each of them. */
#pragma once

#include "relay/niu.h"

#define PAGES 5u
#define WORDS 32u
#define BYTES (4u * WORDS)
#define SLOTS 2u

#define INDEX (*L1(0x120))
#define COUNT (*L1(0x124))
#define X (*L1(0x128)) /* of this tile */
#define Y (*L1(0x12C))
#define READY 0x130u /* pages that can be fetched */
#define TAKEN(index) (0x140u + 4u * (index)) /* of the first tile: pages that a tile has fetched */
#define SOURCE 0x21000u
#define SLOT(page) (0x22000u + (page) % SLOTS * BYTES)
#define COPY 0x23000u
#define SUM 0x24000u
#define DONE (*L1(0x100))
