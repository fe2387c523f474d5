/* votes: in each round the first tile sends weights, and all others add their votes to its sums. */
#pragma once

#include "relay/niu.h"

#define ROUNDS 3u
#define WORDS 16u
#define BYTES (4u * WORDS)

#define INDEX (*L1(0x120))
#define COUNT (*L1(0x124))
#define ROOT (*L1(0x128)) /* coordinates of the first tile */
#define BOX (*L1(0x12C))  /* corners of all tiles */
#define ADDED 0x130u      /* of the first tile: tiles that have added, of all rounds */
#define OPENED 0x140u     /* 1 = the weights of a round are there */
#define OPEN_NOW 0x150u   /* 1, which the first tile sends */
#define OWN 0x21000u
#define WEIGHTS 0x22000u
#define SUMS 0x23000u
#define NEXT 0x24000u /* the weights that the first tile sends */
#define DONE (*L1(0x100))
