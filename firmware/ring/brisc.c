/* BRISC of ring. */
#include "ring/ring.h"

static uint32_t scaled(uint32_t value) { return value * 3 + 1; }

static void write_page(uint32_t page) {
    for (uint32_t i = 0; i < WORDS; i++) {
        store(slot(page) + 4 * i, scaled(load(SOURCE + (page * WORDS + i) * 4)));
    }
}

int main(void) {
    for (uint32_t page = 0; page < PAGES; page++) {
        while (page - TAKEN >= SLOTS) {
            fence();
        }
        write_page(page);
        fence();
        WRITTEN = page + 1;
    }
    while (TAKEN != PAGES) {
        fence();
    }
    done_words[0] = DONE_BRISC;
    return 0;
}
