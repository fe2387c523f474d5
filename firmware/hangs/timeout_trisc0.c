/* TRISC0 of "timeout": polls a word, gives up after some time and starts again, for ever. */
#include "lib/done.h"
#include "lib/tensix.h"

#define RISCV_DEBUG_REG_WALL_CLOCK_0 0xFFB121F0u
#define PATIENCE 5000u

__attribute__((noinline)) static int arrived(void) {
    uint32_t start = load(RISCV_DEBUG_REG_WALL_CLOCK_0);
    do {
        if (done_words[2] == DONE_TRISC(1)) {
            return 1;
        }
        fence();
    } while (load(RISCV_DEBUG_REG_WALL_CLOCK_0) - start < PATIENCE);
    return 0;
}

int main(void) {
    uint32_t attempts = 0;
    while (!arrived()) {
        attempts++;
    }
    done_words[1] = attempts;
    return 0;
}
