/* Running a core's kernel: its arguments, its circular buffers, its text. */
#pragma once

#include "lib/tensix.h"
#include "slow_dispatch/mailbox.h"

/* The message that the read pointer names. */
static inline volatile struct launch_message *current_launch(void) {
    return &mailbox.launch[mailbox.read_pointer % LAUNCHES];
}

/* Both counters of a buffer start at 0; `shift` is 4 where pointers count 16-byte units. */
static inline void set_up_buffers(volatile struct launch_message *launch, uint32_t shift) {
    volatile struct cb_config *config =
        (volatile struct cb_config *)(launch->config_base[0] + launch->local_cb_offset);
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

/* Calls the kernel of `core`, position-independent text behind kernel_config_base. */
static inline void run_kernel(volatile struct launch_message *launch, uint32_t core) {
    uint32_t base = launch->config_base[0];
    rta_l1_base = base + launch->args[core].rta;
    crta_l1_base = base + launch->args[core].crta;
    fence();
    void (*kernel)(void) = (void (*)(void))(base + launch->text_offset[core]);
    kernel();
}
