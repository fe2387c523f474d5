/* BRISC of pull. */
#include "pull/pull.h"

static void make(u32 page) {
    for (u32 i = 0; i < WORDS; i++) {
        L1(SLOT(page))[i] = L1(SOURCE)[page * WORDS + i] ^ (page << 8);
    }
    (void)*L1(SLOT(page) + BYTES - 4); /* the stores are in L1 */
}

static void maker(u32 count, u32 x, u32 y) {
    for (u32 page = 0; page < PAGES; page++) {
        for (u32 i = 1; i < count; i++) {
            while (*L1(TAKEN(i)) + SLOTS < page + 1) {
                fence();
            }
        }
        make(page);
        for (u32 i = 1; i < count; i++) {
            bump(XY(x + i, y), READY);
        }
    }
    settle(ATOMIC_DONE, PAGES * (count - 1));
}

static void taker(u32 maker) {
    u32 fetched = COUNTER(READ_DONE);
    for (u32 page = 0; page < PAGES; page++) {
        await(READY, page + 1);
        fetch(maker, SLOT(page), COPY, BYTES);
        settle(READ_DONE, fetched + page + 1);
        bump(maker, TAKEN(INDEX));
        for (u32 i = 0; i < WORDS; i++) {
            L1(SUM)[i] += L1(COPY)[i] * (page + 1);
        }
    }
    settle(ATOMIC_DONE, PAGES);
}

int main(void) {
    u32 index = INDEX, x = X, y = Y;
    if (index) {
        taker(XY(x - index, y));
    } else {
        maker(COUNT, x, y);
    }
    DONE = 0xD0E0;
    return 0;
}
