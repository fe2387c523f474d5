/* BRISC of votes. */
#include "votes/votes.h"

static void voter(u32 round, u32 root) {
    while (*L1(OPENED) != 1) {
        fence();
    }
    *L1(OPENED) = 0;
    for (u32 i = 0; i < WORDS; i++) {
        add(root, SUMS + 4 * i, L1(OWN)[i] * L1(WEIGHTS)[i]);
    }
    settle(ATOMIC_DONE, round * (WORDS + 1) + WORDS);
    bump(root, ADDED);
}

static void first(u32 round, u32 count, u32 box) {
    settle(WRITE_LEFT, 2 * round);
    for (u32 i = 0; i < WORDS; i++) {
        L1(SENT)[i] = 1 + (L1(SUMS)[i] & 7);
    }
    spread(SENT, box, WEIGHTS, BYTES, 1);
    spread(OPEN_NOW, box, OPENED, 4, 0);
    await(ADDED, (count - 1) * (round + 1));
    for (u32 i = 0; i < WORDS; i++) {
        L1(OWN)[i] = L1(SUMS)[i] + 3 * L1(OWN)[i];
    }
}

int main(void) {
    u32 index = INDEX, count = COUNT;
    for (u32 round = 0; round < ROUNDS; round++) {
        if (index) {
            voter(round, ROOT);
        } else {
            first(round, count, BOX);
        }
    }
    if (index) {
        settle(ATOMIC_DONE, ROUNDS * (WORDS + 1));
    } else {
        settle(WRITE_DONE, 2 * ROUNDS * (count - 1));
    }
    DONE = 0xD0E0;
    return 0;
}
