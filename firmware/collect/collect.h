/* collect: in each round all tiles send their words to the first, which spreads the sums. */
#pragma once

#include "relay/niu.h"

#define ROUNDS 3u
#define WORDS 16u
#define BYTES (4u * WORDS)

#define INDEX (*L1(0x120))
#define COUNT (*L1(0x124))
#define ROOT (*L1(0x128)) /* coordinates of the first tile */
#define BOX (*L1(0x12C))  /* corners of all tiles */
#define ARRIVED 0x130u    /* of the first tile: pages of all rounds */
#define ROUND 0x140u      /* rounds whose sums are there */
#define OWN 0x21000u
#define ROOM(index) (0x22000u + (index) * BYTES)
#define SUMS 0x23000u  /* of this round */
#define TOTAL 0x24000u /* of all rounds */
#define OUTBOX 0x25000u
#define NEXT(round) (0x26000u + 16u * (round))
#define DONE (*L1(0x100))
