/* What relay, collect and pull need of the NoC: one initiator for each kind of request of NIU 0. */
#pragma once

typedef unsigned int u32;

struct initiator {
    volatile u32 targ_lo, targ_mid, targ_hi;
    volatile u32 ret_lo, ret_mid, ret_hi;
    volatile u32 tag, ctrl, len_lo, len_hi, data, exclude, acc, sec, none[2], go;
};

#define NIU 0xFFB20000u
#define INITIATOR(n) ((struct initiator *)(NIU + 0x800u * (n)))
#define COUNTER(n) (*(volatile u32 *)(NIU + 0x200u + 4u * (n)))
#define NODE_ID (*(volatile u32 *)(NIU + 0x148u))

#define ATOMIC_DONE 0u
#define WRITE_DONE 1u
#define READ_DONE 2u
#define WRITE_LEFT 10u
#define OPEN(id) (16u + (id)) /* requests of a transaction id without an answer */

#define L1(address) ((volatile u32 *)(address))
#define XY(x, y) ((y) << 6 | (x))
#define CHANNEL(n) (1u << 7 | (n) << 13)
#define OLD_VALUE 0x1F0u /* where old values of increments go */

static inline void fence(void) { __asm__ volatile("fence" ::: "memory"); }

static inline void go(struct initiator *at) {
    at->go = 1;
    while (at->go) {
    }
}

static inline void send_as(u32 ctrl, u32 from, u32 xy, u32 to, u32 bytes, u32 id) {
    struct initiator *at = INITIATOR(0);
    (void)*L1(from & ~3u), (void)*L1((from + bytes - 1) & ~3u); /* own stores are there */
    at->targ_lo = from, at->targ_mid = 0, at->targ_hi = NODE_ID;
    at->ret_lo = to, at->ret_mid = 0, at->ret_hi = xy;
    at->tag = id << 10, at->ctrl = ctrl, at->len_lo = bytes, at->len_hi = 0;
    go(at);
}

static inline void send(u32 from, u32 xy, u32 to, u32 bytes, u32 id) {
    send_as(0x12u | CHANNEL(1u), from, xy, to, bytes, id);
}

static inline void spread(u32 from, u32 box, u32 to, u32 bytes, u32 linked) {
    send_as(0x132u | CHANNEL(4u) | linked << 6, from, box, to, bytes, 0);
}

static inline void fetch(u32 xy, u32 from, u32 to, u32 bytes) {
    struct initiator *at = INITIATOR(1);
    at->targ_lo = from, at->targ_mid = 0, at->targ_hi = xy;
    at->ret_lo = to, at->ret_mid = 0, at->ret_hi = NODE_ID;
    at->tag = 0, at->ctrl = 0x10u | CHANNEL(1u), at->len_lo = bytes, at->len_hi = 0;
    go(at);
}

static inline void add(u32 xy, u32 word, u32 value) {
    struct initiator *at = INITIATOR(3);
    at->targ_lo = word, at->targ_mid = 0, at->targ_hi = xy;
    at->ret_lo = OLD_VALUE, at->ret_mid = 0, at->ret_hi = NODE_ID;
    at->tag = 0, at->ctrl = 0x11u | CHANNEL(1u);
    at->len_lo = 1u << 12 | 31u << 2 | (word >> 2 & 3u), at->len_hi = 0, at->data = value;
    go(at);
}

static inline void bump(u32 xy, u32 word) { add(xy, word, 1); }

static inline void settle(u32 counter, u32 value) {
    while (COUNTER(counter) != value) {
    }
    fence();
}

static inline void await(u32 word, u32 least) {
    while (*L1(word) < least) {
        fence();
    }
}
