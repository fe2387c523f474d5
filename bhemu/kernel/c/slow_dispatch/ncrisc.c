/* NCRISC of the slow-dispatch firmware: runs its kernel when BRISC says so. */
#include "slow_dispatch/kernel.h"

int main(void) {
    mailboxes.subordinate_sync[0] = SYNC_DONE;
    for (;;) {
        if (mailboxes.subordinate_sync[0] == SYNC_GO) {
            volatile struct kernel_config_msg_t *launch = current_launch();
            sem_l1_base = launch->kernel_config_base[0] + launch->sem_offset[0];
            set_up_buffers(launch, 0);
            run_kernel(launch, NCRISC);
            mailboxes.subordinate_sync[0] = SYNC_DONE;
        }
        fence();
    }
}
