/* One operand's way into a circular buffer: read by the sender, multicast, received by the others. */
#pragma once

#include "matmul_mcast/args.h"

struct operand {
    struct noc noc;
    struct cb cb;
    uint32_t is_sender, receivers, rectangle, sender_xy;
    uint32_t ready, valid; /* semaphores */
    uint32_t tiles;        /* of one step of K */
};

/* The pages are in the buffer; `tiles` of them go to all receivers, then the word VALID. */
static inline void multicast_step(struct operand *o) {
    if (o->receivers == 0) {
        return;
    }
    semaphore_wait(o->ready, o->receivers);
    semaphore_set(o->ready, 0);
    noc_multicast(&o->noc, o->cb.pointer, o->rectangle, o->receivers, o->cb.pointer,
                  o->tiles * o->cb.page, NOC_LINKED);
    noc_multicast(&o->noc, o->valid, o->rectangle, o->receivers, o->valid, 4, 0);
    noc_writes_sent(&o->noc);
}

static inline void receive_step(struct operand *o) {
    semaphore_set(o->valid, 0);
    noc_increment(&o->noc, o->sender_xy, o->ready, 1);
    semaphore_wait(o->valid, 1);
}

/* Lets the tiles of one step arrive: page `i` of the step is page(args, i) of the tensor. */
#define OPERAND_STEP(o, tensor, page_of) \
    do { \
        cb_wait_room(&(o)->cb, (o)->tiles); \
        if ((o)->is_sender) { \
            for (uint32_t i = 0; i < (o)->tiles; i++) { \
                dram_read_page(&(o)->noc, (tensor), (page_of), cb_page(&(o)->cb, i)); \
            } \
            noc_read_barrier(&(o)->noc); \
            multicast_step(o); \
        } else { \
            receive_step(o); \
        } \
        cb_push(&(o)->cb, (o)->tiles); \
    } while (0)

static inline void operand_end(struct operand *o) {
    noc_write_barrier(&o->noc);
    noc_atomic_barrier(&o->noc);
}
