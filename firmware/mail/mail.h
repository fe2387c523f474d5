/* mail: BRISC sends each TRISC a job by mailbox: sum up words; the answers come back the same way. */
#pragma once

#include "lib/done.h"
#include "lib/tensix.h"

#define MAILBOX(core) (0xFFEC0000u + 0x1000u * (core)) /* 0 brisc, 1 to 3 trisc0 to trisc2 */
#define STOP 0u

struct job {
    uint32_t address, count;
};

#define JOBS ((volatile struct job *)0x20000)
#define NJOBS 6u
#define ANSWERS 0x20100u

static inline void send(uint32_t core, uint32_t value) { store(MAILBOX(core), value); }

static inline uint32_t receive(uint32_t core) { return load(MAILBOX(core)); }
