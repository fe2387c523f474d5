/* BRISC of the slow-dispatch firmware: boots the tile, answers go messages, launches kernels. */
#include "slow_dispatch/kernel.h"

#define RISCV_DEBUG_REG_NCRISC_RESET_PC 0xFFB12238u
#define RISCV_DEBUG_REG_NCRISC_RESET_PC_OVERRIDE 0xFFB1223Cu
#define SUBORDINATES 4u
#define SYNC_TRISC0 1u

/* Text bases of the other cores, see the linker scripts. */
static const uint32_t trisc_text[] = {0x5A40, 0x6040, 0x6640};
#define NCRISC_TEXT 0x5440u

static void prepare_tensix(void) {
    TT_ZEROACC(3, 0, 0, 0, 0); /* all of Dst */
    TT_SFPENCC(3, 0, 0, 10);    /* all lanes on, condition codes in force */
    TT_NOP;
    TT_SFPLOADI(0, 0, 0xBF80); /* LReg0 = bf16 -1.0 */
    TT_SFPCONFIG(0, 11, 0);     /* LReg11 = LReg0 */
    TT_SEMINIT(1, 0, SEM_SEL(1));
    TT_SEMINIT(1, 0, SEM_SEL(2));
    TT_SEMINIT(1, 0, SEM_SEL(7));
}

static void release_others(void) {
    for (uint32_t n = 0; n < 3; n++) {
        store(RISCV_DEBUG_REG_TRISC0_RESET_PC + 4 * n, trisc_text[n]);
    }
    store(RISCV_DEBUG_REG_TRISC_RESET_PC_OVERRIDE, 7);
    store(RISCV_DEBUG_REG_NCRISC_RESET_PC, NCRISC_TEXT);
    store(RISCV_DEBUG_REG_NCRISC_RESET_PC_OVERRIDE, 1);
    cfg_write(RISCV_IC_INVALIDATE_InvalidateAll_ADDR32,
              CFG(RISCV_IC_INVALIDATE_InvalidateAll, 0x1F));
    fence();
    store(RISCV_DEBUG_REG_SOFT_RESET_0, 0);
}

static void wait_for_others(void) {
    for (uint32_t n = 0; n < SUBORDINATES; n++) {
        while (mailboxes.subordinate_sync[n] != SYNC_DONE) {
            fence();
        }
    }
}

/* TRISC0 does it while the host may already look at the signal. */
static void start_clearing_streams(void) { mailboxes.subordinate_sync[SYNC_TRISC0] = SYNC_INIT_STREAMS; }

static void launch_kernels(void) {
    volatile struct kernel_config_msg_t *launch = current_launch();
    uint32_t enables = launch->enables;
    wait_for_others(); /* the streams may still be being cleared */
    cfg_write(RISCV_IC_INVALIDATE_InvalidateAll_ADDR32,
              CFG(RISCV_IC_INVALIDATE_InvalidateAll, 0x1F));
    for (uint32_t n = 0; n < SUBORDINATES; n++) {
        if (enables >> (NCRISC + n) & 1) {
            mailboxes.subordinate_sync[n] = SYNC_GO;
        }
    }
    if (enables >> BRISC & 1) {
        sem_l1_base = launch->kernel_config_base[0] + launch->sem_offset[0];
        set_up_buffers(launch, 0);
        run_kernel(launch, BRISC);
    }
    wait_for_others();
    start_clearing_streams();
    if (launch->mode != MODE_HOST) {
        mailboxes.launch_msg_rd_ptr = (mailboxes.launch_msg_rd_ptr + 1) % LAUNCHES;
    }
}

int main(void) {
    for (uint32_t n = 0; n < SUBORDINATES; n++) {
        mailboxes.subordinate_sync[n] = SYNC_INIT;
    }
    mailboxes.launch_msg_rd_ptr = 0;
    mailboxes.go_message_index = 0;
    prepare_tensix();
    release_others();
    wait_for_others();
    start_clearing_streams();
    mailboxes.go_messages[0].signal = SIGNAL_DONE;
    for (;;) {
        volatile struct go_msg_t *go = &mailboxes.go_messages[mailboxes.go_message_index];
        uint32_t signal = go->signal;
        if (signal == SIGNAL_GO) {
            launch_kernels();
            go->signal = SIGNAL_DONE;
        } else if (signal == SIGNAL_RESET_READ_POINTER || signal == SIGNAL_RESET_READ_POINTER_2) {
            mailboxes.launch_msg_rd_ptr = 0;
            go->signal = SIGNAL_DONE;
        } else if (signal == SIGNAL_RESET_READ_POINTER_SILENT) {
            mailboxes.launch_msg_rd_ptr = 0;
        }
        fence();
    }
}
