/* A TRISC of the slow-dispatch firmware: runs its kernel; TRISC0 also clears stream counters. */
#include "slow_dispatch/kernel.h"

#if defined(CORE_TRISC0)
#define THREAD 0u
#elif defined(CORE_TRISC1)
#define THREAD 1u
#else
#define THREAD 2u
#endif

#define STREAM_ACKED 0xFFB48020u    /* of circular buffer 0; the others follow every 0x1000 */
#define STREAM_RECEIVED 0xFFB48028u
#define UNITS_OF_16_BYTES 4u

static inline void clear_streams(void) {
    for (uint32_t n = 0; n < 32; n++) {
        store(STREAM_ACKED + 0x1000 * n, 0);
        store(STREAM_RECEIVED + 0x1000 * n, 0);
    }
}

int main(void) {
    volatile uint8_t *sync = &mailboxes.subordinate_sync[1 + THREAD];
    for (uint32_t n = 0; n < 64; n++) {
        gpr_write(n, 0);
    }
    *sync = SYNC_DONE;
    for (;;) {
        uint32_t wanted = *sync;
        if (wanted == SYNC_GO) {
            volatile struct kernel_config_msg_t *launch = current_launch();
            if (THREAD != 1) {
                set_up_buffers(launch, UNITS_OF_16_BYTES);
            }
            run_kernel(launch, TRISC0 + THREAD);
            tensix_sync();
            *sync = SYNC_DONE;
        } else if (THREAD == 0 && wanted == SYNC_INIT_STREAMS) {
            clear_streams();
            *sync = SYNC_DONE;
        }
        fence();
    }
}
