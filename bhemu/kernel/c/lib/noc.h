/* Requests of a data movement core to the NoC: reads, writes, multicast, semaphores, barriers.
 *
 * A core uses one NoC as if nobody else did: BRISC and NCRISC take one each. Coordinates are the
 * translated ones, the same numbers on both NoCs, as y << 6 | x. Addresses of a transfer agree
 * modulo 16 at both ends, those of a read from DRAM modulo 64. */
#pragma once

#include "lib/tensix.h"

/* One of the two NoC interface units and, of it, one of four request initiators. */
#define NOC_NIU(noc) (0xFFB20000u + 0x10000u * (noc))
#define NOC_WRITES 0u /* initiators by use, so that their registers rarely change */
#define NOC_READS 1u
#define NOC_ATOMICS 3u
#define NOC_INITIATOR_SIZE 0x800u

/* Registers of an initiator. */
#define NOC_TARG_ADDR_LO 0x00u
#define NOC_TARG_ADDR_MID 0x04u
#define NOC_TARG_ADDR_HI 0x08u
#define NOC_RET_ADDR_LO 0x0Cu
#define NOC_RET_ADDR_MID 0x10u
#define NOC_RET_ADDR_HI 0x14u
#define NOC_PACKET_TAG 0x18u
#define NOC_CTRL 0x1Cu
#define NOC_AT_LEN_BE 0x20u
#define NOC_AT_DATA 0x28u
#define NOC_CMD_CTRL 0x40u

/* Registers of the interface unit. */
#define NOC_ID_LOGICAL 0x148u
#define NOC_ATOMIC_RESPONSES 0x200u
#define NOC_WRITE_ACKS 0x204u
#define NOC_READ_RESPONSES 0x208u
#define NOC_WRITES_SENT 0x228u

/* NOC_CTRL: kind, answer wanted, multicast on a reserved path; static virtual channels, 1 for
 * unicast and 4 for multicast, because requests keep their order only on one channel. */
#define NOC_CTRL_READ (0u | 1u << 4 | 1u << 7 | 1u << 13)
#define NOC_CTRL_WRITE (2u | 1u << 4 | 1u << 7 | 1u << 13)
#define NOC_CTRL_ATOMIC (1u | 1u << 4 | 1u << 7 | 1u << 13)
#define NOC_CTRL_MULTICAST (2u | 1u << 4 | 1u << 5 | 1u << 7 | 1u << 8 | 4u << 13)
#define NOC_LINKED (1u << 6)          /* another request to the same tiles follows */
#define NOC_INCLUDE_SENDER (1u << 17) /* where it is one of the tiles */

#define NOC_PACKET_BYTES 16384u
#define NOC_ATOMIC_RESULT 4u /* L1 address for old values that nobody reads */
#define NOC_INCREMENT_32(address) (1u << 12 | 31u << 2 | ((address) >> 2 & 3u))

/* A NoC as one core uses it, with what must have been answered at the next barrier. */
struct noc {
    uint32_t number, niu, own;
    uint32_t reads, acks, sent, atomics;
};

static inline struct noc noc_open(uint32_t number) {
    uint32_t niu = NOC_NIU(number);
    return (struct noc){
        .number = number,
        .niu = niu,
        .own = load(niu + NOC_ID_LOGICAL),
        .reads = load(niu + NOC_READ_RESPONSES),
        .acks = load(niu + NOC_WRITE_ACKS),
        .sent = load(niu + NOC_WRITES_SENT),
        .atomics = load(niu + NOC_ATOMIC_RESPONSES),
    };
}

static inline uint32_t noc_xy(uint32_t x, uint32_t y) { return y << 6 | x; }

/* A port of a DRAM bank; each NoC has its own, so that they do not meet there. */
static inline uint32_t noc_dram(const struct noc *noc, uint32_t bank) {
    return noc_xy(17 + bank / 4, 12 + 3 * (bank % 4) + noc->number);
}

/* The column of Tensix tiles to the right of column x: there are none in 8 and 9. */
static inline uint32_t noc_next_column(uint32_t x) { return x == 7 ? 10 : x + 1; }

/* A rectangle of tiles. Multicast follows the direction of its NoC: NoC 1 runs up and left. */
static inline uint32_t noc_rectangle(const struct noc *noc, uint32_t left, uint32_t top,
                                     uint32_t right, uint32_t bottom) {
    uint32_t first = noc_xy(left, top), last = noc_xy(right, bottom);
    return noc->number ? last << 12 | first : first << 12 | last;
}

struct noc_request {
    uint32_t initiator, ctrl;
    uint32_t target, target_xy;
    uint32_t back, back_xy;
    uint32_t length, data;
};

static inline void noc_send(const struct noc *noc, struct noc_request r) {
    uint32_t at = noc->niu + NOC_INITIATOR_SIZE * r.initiator;
    while (load(at + NOC_CMD_CTRL)) {
    }
    store(at + NOC_TARG_ADDR_LO, r.target);
    store(at + NOC_TARG_ADDR_MID, 0);
    store(at + NOC_TARG_ADDR_HI, r.target_xy);
    store(at + NOC_RET_ADDR_LO, r.back);
    store(at + NOC_RET_ADDR_MID, 0);
    store(at + NOC_RET_ADDR_HI, r.back_xy);
    store(at + NOC_PACKET_TAG, 0);
    store(at + NOC_CTRL, r.ctrl);
    store(at + NOC_AT_LEN_BE, r.length);
    store(at + NOC_AT_DATA, r.data);
    store(at + NOC_CMD_CTRL, 1);
    load_and_wait(at + NOC_CMD_CTRL); /* the counters know of it from here on */
}

static inline uint32_t noc_packet(uint32_t bytes) {
    return bytes < NOC_PACKET_BYTES ? bytes : NOC_PACKET_BYTES;
}

/* Begins to read `bytes` at `address` of `xy` to `local` in own L1. */
static inline void noc_read(struct noc *noc, uint32_t xy, uint32_t address, uint32_t local,
                            uint32_t bytes) {
    for (uint32_t length; bytes; address += length, local += length, bytes -= length) {
        length = noc_packet(bytes);
        noc_send(noc, (struct noc_request){NOC_READS, NOC_CTRL_READ, address, xy, local, noc->own,
                                           length, 0});
        noc->reads++;
    }
}

/* The store to `local`, and all before it, are in L1 before the NoC reads them. */
static inline void noc_see_stores(uint32_t local) { load_and_wait(local & ~3u); }

static inline void noc_write_as(struct noc *noc, uint32_t ctrl, uint32_t acks, uint32_t local,
                                uint32_t xy, uint32_t address, uint32_t bytes) {
    for (uint32_t length; bytes; address += length, local += length, bytes -= length) {
        length = noc_packet(bytes);
        noc_see_stores(local + length - 1); /* its last word: buffers are filled upwards */
        noc_send(noc, (struct noc_request){NOC_WRITES, ctrl, local, noc->own, address, xy, length,
                                           0});
        noc->acks += acks;
        noc->sent++;
    }
}

/* Begins to write `bytes` at `local` in own L1 to `address` of `xy`. */
static inline void noc_write(struct noc *noc, uint32_t local, uint32_t xy, uint32_t address,
                             uint32_t bytes) {
    noc_write_as(noc, NOC_CTRL_WRITE, 1, local, xy, address, bytes);
}

/* The same to every tile of a rectangle, `receivers` of them, the sender not counted unless
 * `flags` has NOC_INCLUDE_SENDER. With NOC_LINKED the next multicast goes to the same tiles and
 * arrives after this one. */
static inline void noc_multicast(struct noc *noc, uint32_t local, uint32_t rectangle,
                                 uint32_t receivers, uint32_t address, uint32_t bytes,
                                 uint32_t flags) {
    noc_write_as(noc, NOC_CTRL_MULTICAST | flags, receivers, local, rectangle, address, bytes);
}

/* Adds to a word in another tile's L1. */
static inline void noc_increment(struct noc *noc, uint32_t xy, uint32_t address, uint32_t amount) {
    noc_send(noc, (struct noc_request){NOC_ATOMICS, NOC_CTRL_ATOMIC, address, xy,
                                       NOC_ATOMIC_RESULT, noc->own, NOC_INCREMENT_32(address),
                                       amount});
    noc->atomics++;
}

static inline void noc_await(const struct noc *noc, uint32_t counter, uint32_t value) {
    while (load(noc->niu + counter) != value) {
    }
    fence(); /* what arrived is seen from here on */
}

/* All that was to be read is in L1. */
static inline void noc_read_barrier(const struct noc *noc) {
    noc_await(noc, NOC_READ_RESPONSES, noc->reads);
}

/* All that was written is where it belongs. */
static inline void noc_write_barrier(const struct noc *noc) {
    noc_await(noc, NOC_WRITE_ACKS, noc->acks);
}

/* All that was written has left L1: the source may be overwritten. */
static inline void noc_writes_sent(const struct noc *noc) {
    noc_await(noc, NOC_WRITES_SENT, noc->sent);
}

/* Every increment has been carried out. */
static inline void noc_atomic_barrier(const struct noc *noc) {
    noc_await(noc, NOC_ATOMIC_RESPONSES, noc->atomics);
}

/* Waits for a word in own L1 that other tiles change. */
static inline void semaphore_wait(uint32_t semaphore, uint32_t value) {
    while (load(semaphore) != value) {
        fence();
    }
}

/* The same where the word may have gone on. */
static inline void semaphore_wait_min(uint32_t semaphore, uint32_t least) {
    while (load(semaphore) < least) {
        fence();
    }
}

static inline void semaphore_set(uint32_t semaphore, uint32_t value) {
    store(semaphore, value);
    load_and_wait(semaphore);
}

/* Pages of a tensor over DRAM banks: page i in bank i mod banks. */
struct dram_tensor {
    uint32_t address, page, banks;
};

#define DRAM_ALIGNMENT 64u

static inline uint32_t dram_address(const struct dram_tensor *tensor, uint32_t page) {
    uint32_t slot = (tensor->page + DRAM_ALIGNMENT - 1) & ~(DRAM_ALIGNMENT - 1);
    return tensor->address + page / tensor->banks * slot;
}

static inline void dram_read_page(struct noc *noc, const struct dram_tensor *tensor, uint32_t page,
                                  uint32_t local) {
    uint32_t xy = noc_dram(noc, page % tensor->banks);
    noc_read(noc, xy, dram_address(tensor, page), local, tensor->page);
}

static inline void dram_write_page(struct noc *noc, const struct dram_tensor *tensor,
                                   uint32_t page, uint32_t local) {
    uint32_t xy = noc_dram(noc, page % tensor->banks);
    noc_write(noc, local, xy, dram_address(tensor, page), tensor->page);
}
