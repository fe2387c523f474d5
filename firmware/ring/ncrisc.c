/* NCRISC of ring. */
#include "ring/ring.h"

static uint32_t sums[WORDS];

static void add_page(uint32_t page) {
    for (uint32_t i = 0; i < WORDS; i++) {
        sums[i] += load(slot(page) + 4 * i);
        store(SUMS + (page * WORDS + i) * 4, sums[i]);
    }
}

int main(void) {
    for (uint32_t page = 0; page < PAGES; page++) {
        while (WRITTEN <= page) {
            fence();
        }
        add_page(page);
        fence();
        TAKEN = page + 1;
    }
    done_words[5] = 0xD0E5;
    return 0;
}
