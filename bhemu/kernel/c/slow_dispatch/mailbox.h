/* The mailbox through which a host talks to the firmware, and the local-memory words of kernels.
 *
 * Layout and values are those of ABI A: signals and launch messages in L1 from 0x60 on, kernels at
 * kernel_config_base, circular buffers n counted by stream n + 8. */
#pragma once

#include "lib/types.h"

typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __INT32_TYPE__ int32_t;

/* Cores in the order of enables, text offsets and runtime arguments. */
#define BRISC 0u
#define NCRISC 1u
#define TRISC0 2u
#define CORES 5u

/* Values of a go message's signal byte. */
#define SIGNAL_DONE 0x00u
#define SIGNAL_INIT 0x40u
#define SIGNAL_GO 0x80u
#define SIGNAL_RESET_READ_POINTER 0xC0u
#define SIGNAL_RESET_READ_POINTER_2 0xF0u
#define SIGNAL_RESET_READ_POINTER_SILENT 0xE0u /* not acknowledged: the byte stays */

/* Values of a sync byte. */
#define SYNC_DONE 0x00u
#define SYNC_INIT_STREAMS 0x03u
#define SYNC_INIT 0x40u
#define SYNC_GO 0x80u

#define MODE_HOST 1u
#define LAUNCHES 8u

/* Names and layout are tt-metal's: a host finds every member in the debug information. */
struct kernel_config_msg_t {
    uint32_t kernel_config_base[3];
    uint16_t sem_offset[3];
    uint16_t local_cb_offset;
    uint16_t remote_cb_offset;
    struct {
        uint16_t rta_offset;
        uint16_t crta_offset;
    } rta_offset[CORES];
    uint8_t mode;
    uint8_t pad;
    uint32_t kernel_text_offset[CORES];
    uint32_t local_cb_mask;
    uint8_t brisc_noc_id;
    uint8_t brisc_noc_mode;
    uint8_t min_remote_cb_start_index;
    uint8_t pad2;
    uint32_t host_assigned_id;
    uint32_t enables;
    uint32_t watcher_and_rest[4];
};
_Static_assert(sizeof(struct kernel_config_msg_t) == 96, "launch message");

struct launch_msg_t {
    struct kernel_config_msg_t kernel_config;
};

struct go_msg_t {
    uint8_t dispatch_message_offset;
    uint8_t master_x;
    uint8_t master_y;
    uint8_t signal;
};

struct mailboxes_t {
    uint32_t ncrisc_halt[2];
    uint8_t subordinate_sync[4]; /* ncrisc, trisc0, trisc1, trisc2 */
    uint32_t launch_msg_rd_ptr;
    struct launch_msg_t launch[LAUNCHES];
    struct go_msg_t go_messages[9];
    uint8_t pad[12];
    uint32_t go_message_index;
};
_Static_assert(__builtin_offsetof(struct mailboxes_t, go_messages) == 0x370 - 0x60, "go messages");
_Static_assert(__builtin_offsetof(struct mailboxes_t, go_message_index) == 0x3A0 - 0x60,
               "go message index");

/* A circular buffer as the host describes it, bytes, and as a kernel uses it: bytes on BRISC and
 * NCRISC, 16-byte units on the TRISCs. */
struct cb_config {
    uint32_t address, size, pages, page_size;
};

struct cb_interface {
    uint32_t size, limit, page_size, pages;
    uint32_t read, write;
    uint16_t acked, received;
    uint32_t write_tile;
};

/* The linker scripts give the addresses: L1 for the mailbox, local memory for the others. */
extern volatile struct mailboxes_t mailboxes;
extern volatile uint32_t crta_l1_base, rta_l1_base, sem_l1_base;
extern volatile struct cb_interface cb_interface[32];
