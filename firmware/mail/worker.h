/* What the three TRISCs do. */
#include "mail/mail.h"

static uint32_t total(uint32_t address, uint32_t count) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        sum += load(address + 4 * i);
    }
    return sum;
}

static inline void work(void) {
    for (;;) {
        uint32_t job = receive(0);
        if (job == STOP) {
            break;
        }
        send(0, total(load(job), load(job + 4)));
    }
}
