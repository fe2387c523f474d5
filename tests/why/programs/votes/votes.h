/* votes: in each round the first tile sends weights, and all others add their votes to its sums. */
#pragma once

#include "collect/collect.h"

#define ADDED ARRIVED   /* of the first tile: tiles that have added, of all rounds */
#define OPENED ROUND    /* 1 = the weights of a round are there */
#define OPEN_NOW 0x150u /* 1, which the first tile sends */
#define WEIGHTS 0x22000u
#define SENT 0x24000u /* the weights that the first tile sends */
