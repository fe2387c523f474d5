/* Start and end of a kernel under the harness. */
#pragma once

#include "lib/tensix.h"
#include "llk_like/mailbox.h"
#include "llk_like/params.h"

/* The host polls the mailbox of TRISC `n`. */
static inline void complete(uint32_t n) {
    tensix_sync();
    mailboxes.done[n] = COMPLETE;
}
