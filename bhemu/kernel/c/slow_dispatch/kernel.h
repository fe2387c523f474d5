/* Running a core's kernel: its arguments, its circular buffers, its text. */
#pragma once

#include "lib/tensix.h"
#include "slow_dispatch/mailbox.h"

/* The message that the read pointer names. */
static inline volatile struct kernel_config_msg_t *current_launch(void) {
    volatile struct mailboxes_t *box = &mailboxes; /* so that debug information has the type */
    return &box->launch[box->launch_msg_rd_ptr % LAUNCHES].kernel_config;
}

/* Both counters of a buffer start at 0; `shift` is 4 where pointers count 16-byte units. */
static inline void set_up_buffers(volatile struct kernel_config_msg_t *launch, uint32_t shift) {
    volatile struct cb_config *config =
        (volatile struct cb_config *)(launch->kernel_config_base[0] + launch->local_cb_offset);
    uint32_t mask = launch->local_cb_mask;
    for (uint32_t n = 0; mask >> n; n++) {
        if ((mask >> n & 1) == 0) {
            continue;
        }
        volatile struct cb_interface *cb = &cb_interface[n];
        uint32_t address = config[n].address >> shift;
        uint32_t page = config[n].page_size >> shift;
        cb->size = shift ? (config[n].pages * config[n].page_size) >> shift : config[n].size;
        cb->limit = address + (config[n].size >> shift);
        cb->page_size = page;
        cb->pages = config[n].pages;
        cb->read = address;
        cb->write = address;
        cb->acked = 0;
        cb->received = 0;
        cb->write_tile = 0;
        if (n == 31) {
            break;
        }
    }
}

/* Calls the kernel of `core`, position-independent text after kernel_config_base. */
static inline void run_kernel(volatile struct kernel_config_msg_t *launch, uint32_t core) {
    uint32_t base = launch->kernel_config_base[0];
    rta_l1_base = base + launch->rta_offset[core].rta_offset;
    crta_l1_base = base + launch->rta_offset[core].crta_offset;
    fence();
    void (*kernel)(void) = (void (*)(void))(base + launch->kernel_text_offset[core]);
    kernel();
}
