/* BRISC of relay. */
#include "relay/relay.h"

static void work(u32 in, u32 out, u32 index) {
    for (u32 i = 0; i < WORDS; i++) {
        L1(out)[i] = 3 * L1(in)[i] + index;
    }
}

static void forward(u32 page, u32 next) {
    while (*L1(EMPTY) + SLOTS <= page) {
        fence();
    }
    send(STAGE(page), next, SLOT(page), BYTES, 0);
    *L1(NUMBER(page)) = page + 1;
    send(NUMBER(page), next, FULL, 4, 0); /* behind the page on one channel */
}

int main(void) {
    u32 index = INDEX, last = COUNT - 1, x = X, y = Y;
    u32 left = COUNTER(WRITE_LEFT), written = COUNTER(WRITE_DONE);
    for (u32 page = 0; page < PAGES; page++) {
        u32 in = index ? SLOT(page) : SOURCE + page * BYTES;
        u32 out = index == last ? RESULT + page * BYTES : STAGE(page);
        if (index) {
            await(FULL, page + 1);
        }
        if (index != last) {
            settle(WRITE_LEFT, left + 2 * page);
        }
        work(in, out, index);
        if (index) {
            bump(XY(x - 1, y), EMPTY);
        }
        if (index != last) {
            forward(page, XY(x + 1, y));
        }
    }
    if (index != last) {
        settle(WRITE_DONE, written + 2 * PAGES);
    }
    if (index) {
        settle(ATOMIC_DONE, PAGES);
    }
    DONE = 0xD0E0;
    return 0;
}
