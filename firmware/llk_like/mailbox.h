/* The words by which host, BRISC and TRISCs talk, as in tt-llk's harness. */
#pragma once

#include "lib/types.h"

/* The linker script fixes the address, 0x1FFB8. */
struct mailboxes {
    uint32_t done[3];    /* TRISC0-2: COMPLETE when the kernel has ended */
    uint32_t command[2]; /* from the host, in turn */
    uint32_t counter;    /* commands that BRISC has carried out */
    uint32_t configured; /* 1: T2 has stored whole words of Config of which T0 changes bits */
};

extern volatile struct mailboxes mailboxes;

#define COMPLETE 0xFFu
#define RUNNING 0xA3u

#define COMMAND_IDLE 0u
#define COMMAND_START_TRISCS 1u
#define COMMAND_RESET_TRISCS 2u

#define SEMAPHORE_UNPACK_TO_DST 2u /* tiles that the unpacker itself wrote to Dst */
#define WAIT_SRCB_VALID 0x100u
