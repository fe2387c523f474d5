/* Circular buffers between the cores of a tile: pages in L1, counted by two registers of a stream.
 *
 * One core produces: it waits for room, fills a page and pushes it. One core consumes: it waits for
 * a page, uses it and pops it. Firmware describes the buffers in local RAM before a kernel starts
 * and sets the counters to zero after it. */
#pragma once

#include "kernel/kernel.h"
#include "lib/tensix.h"

#define CB_STREAM(n) (0xFFB40000u + 0x1000u * (8u + (n)))
#define CB_ACKED 0x20u    /* pages popped, counted by the consumer */
#define CB_RECEIVED 0x28u /* pages pushed, counted by the producer */

/* Addresses and sizes in bytes; `own` counts what this core pushed or popped. */
struct cb {
    uint32_t stream, first, limit, page, pages;
    uint32_t pointer, own;
};

/* Compute cores have addresses and sizes in units of 16 bytes. */
#if defined(CORE_BRISC) || defined(CORE_NCRISC)
#define CB_SHIFT 0u
#else
#define CB_SHIFT 4u
#endif

static inline struct cb cb_open(uint32_t n) {
    volatile struct cb_interface *about = &cb_interface[n];
    uint32_t first = about->read << CB_SHIFT;
    return (struct cb){
        .stream = CB_STREAM(n),
        .first = first,
        .limit = about->limit << CB_SHIFT,
        .page = about->page_size << CB_SHIFT,
        .pages = about->pages,
        .pointer = first,
        .own = 0,
    };
}

static inline void cb_await(uint32_t counter, uint32_t own, uint32_t least, uint32_t pages) {
    while (((load(counter) - own + pages) & 0xFFFFu) < least) {
    }
}

/* Returns when there is room for `pages` more. */
static inline void cb_wait_room(const struct cb *cb, uint32_t pages) {
    cb_await(cb->stream + CB_ACKED, cb->own, pages, cb->pages);
}

/* Returns when `pages` are there. */
static inline void cb_wait_pages(const struct cb *cb, uint32_t pages) {
    cb_await(cb->stream + CB_RECEIVED, cb->own, pages, 0);
}

/* Address of page `i` from the one whose turn it is. */
static inline uint32_t cb_page(const struct cb *cb, uint32_t i) {
    uint32_t at = cb->pointer + i * cb->page;
    return at < cb->limit ? at : at - (cb->limit - cb->first);
}

static inline void cb_advance(struct cb *cb, uint32_t pages) {
    cb->pointer = cb_page(cb, pages);
    cb->own = (cb->own + pages) & 0xFFFFu;
}

#if defined(CORE_BRISC) || defined(CORE_NCRISC)

static inline void cb_push(struct cb *cb, uint32_t pages) {
    cb_advance(cb, pages);
    store(cb->stream + CB_RECEIVED, cb->own);
}

static inline void cb_pop(struct cb *cb, uint32_t pages) {
    cb_advance(cb, pages);
    store(cb->stream + CB_ACKED, cb->own);
}

#else

/* The thread itself stores the counter, after the words that use the pages. */
#define CB_GPR 60u
#define STOREREG_BASE 0xFFB00000u

static inline void cb_store(uint32_t address, uint32_t value) {
    TT_SETDMAREG(value >> 14, value & 0x3FFF, 0, 2 * CB_GPR);
    TT_SETDMAREG(0, 0, 0, 2 * CB_GPR + 1);
    TTI_STALLWAIT(STALL_TDMA, WAIT_THCON);
    TT_STOREREG(CB_GPR, (address - STOREREG_BASE) >> 2);
}

/* For TRISC2: what it packed is in L1. */
static inline void cb_push(struct cb *cb, uint32_t pages) {
    cb_advance(cb, pages);
    TTI_STALLWAIT(STALL_TDMA, WAIT_PACK);
    cb_store(cb->stream + CB_RECEIVED, cb->own);
}

/* For TRISC0: what it unpacked has been read. */
static inline void cb_pop(struct cb *cb, uint32_t pages) {
    cb_advance(cb, pages);
    TTI_STALLWAIT(STALL_TDMA, WAIT_UNPACK0 | 0x004u /* unpacker 1 */);
    cb_store(cb->stream + CB_ACKED, cb->own);
}

#endif

/* As cb_open, where no firmware has set the counters to 0: they go on from where they were left. */
static inline struct cb cb_open_counting(uint32_t n, uint32_t counter) {
    struct cb cb = cb_open(n);
    cb.own = load(cb.stream + counter) & 0xFFFFu;
    return cb;
}

static inline struct cb cb_open_producer(uint32_t n) { return cb_open_counting(n, CB_RECEIVED); }

static inline struct cb cb_open_consumer(uint32_t n) { return cb_open_counting(n, CB_ACKED); }
