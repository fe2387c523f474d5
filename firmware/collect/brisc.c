/* BRISC of collect. */
#include "collect/collect.h"

static void worker(u32 round, u32 index, u32 root) {
    u32 id = 1 + round % 2;
    for (u32 i = 0; i < WORDS; i++) {
        L1(OUTBOX)[i] = L1(OWN)[i] + (round ? L1(SUMS)[i] : 0);
    }
    send(OUTBOX, root, ROOM(index), BYTES, id);
    settle(OPEN(id), 0); /* it is in the room of the first tile */
    bump(root, ARRIVED);
    await(ROUND, round + 1);
}

static void first(u32 round, u32 count, u32 box) {
    u32 sums[WORDS];
    for (u32 i = 0; i < WORDS; i++) {
        sums[i] = L1(OWN)[i] + (round ? L1(SUMS)[i] : 0);
    }
    await(ARRIVED, (count - 1) * (round + 1));
    settle(WRITE_LEFT, 2 * round);
    for (u32 i = 0; i < WORDS; i++) {
        for (u32 tile = 1; tile < count; tile++) {
            sums[i] += L1(ROOM(tile))[i];
        }
        L1(SUMS)[i] = sums[i];
    }
    *L1(NEXT(round)) = round + 1;
    spread(SUMS, box, SUMS, BYTES, 1);
    spread(NEXT(round), box, ROUND, 4, 0);
}

int main(void) {
    u32 index = INDEX, count = COUNT;
    for (u32 round = 0; round < ROUNDS; round++) {
        if (index) {
            worker(round, index, ROOT);
        } else {
            first(round, count, BOX);
        }
        for (u32 i = 0; i < WORDS; i++) {
            L1(TOTAL)[i] += L1(SUMS)[i];
        }
    }
    if (index) {
        settle(ATOMIC_DONE, ROUNDS);
    } else {
        settle(WRITE_DONE, 2 * ROUNDS * (count - 1));
    }
    DONE = 0xD0E0;
    return 0;
}
