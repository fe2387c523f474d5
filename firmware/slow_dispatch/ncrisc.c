/* NCRISC of the slow-dispatch firmware: runs its kernel when BRISC says so. */
#include "slow_dispatch/kernel.h"

int main(void) {
    mailbox.sync[0] = SYNC_DONE;
    for (;;) {
        if (mailbox.sync[0] == SYNC_GO) {
            volatile struct launch_message *launch = current_launch();
            sem_l1_base = launch->config_base[0] + launch->semaphore_offset[0];
            set_up_buffers(launch, 0);
            run_kernel(launch, NCRISC);
            mailbox.sync[0] = SYNC_DONE;
        }
        fence();
    }
}
