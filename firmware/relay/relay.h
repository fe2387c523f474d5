/* relay: a row of tiles, each of which makes 3 x + index of what the tile before it sends. */
#pragma once

#include "relay/niu.h"

#define PAGES 6u
#define WORDS 16u
#define BYTES (4u * WORDS)
#define SLOTS 2u

#define INDEX (*L1(0x120))
#define COUNT (*L1(0x124))
#define X (*L1(0x128))
#define Y (*L1(0x12C))
#define FULL 0x130u  /* pages that the tile before has sent */
#define EMPTY 0x140u /* pages that the next tile has used */
#define SOURCE 0x21000u
#define SLOT(page) (0x22000u + (page) % SLOTS * BYTES)
#define RESULT 0x23000u
#define STAGE(page) (0x24000u + (page) % SLOTS * BYTES)
#define NUMBER(page) (0x25000u + 16u * (page)) /* what FULL becomes */
#define DONE (*L1(0x100))
