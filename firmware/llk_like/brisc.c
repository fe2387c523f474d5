/* BRISC: carries out the host's commands, which reset the TRISCs or prepare the tile and start them. */
#include "lib/tensix.h"
#include "llk_like/mailbox.h"

#define RISCV_DEBUG_REG_WALL_CLOCK_L 0xFFB121F0u
#define POLL_TICKS 1350u /* 1 us */

/* In .data, so that nothing starts unless the loader staged it and the start code copied it. */
uint32_t reset_pc[3] = {0x6000, 0xB000, 0x10000};

static void wait_ticks(uint32_t ticks) {
    uint32_t start = load(RISCV_DEBUG_REG_WALL_CLOCK_L);
    while (load(RISCV_DEBUG_REG_WALL_CLOCK_L) - start < ticks) {
    }
}

/* These words enter thread 0's queue ahead of T0's own, which begins when they have been executed;
 * T1 and T2 depend on T0's data or on the semaphore's maximum, which is 0 until the last of them. */
static void prepare_tensix(void) {
    /* Unpacker and packer share this word and change their own bits of it. */
    cfg_write(THCON_SEC0_REG1_Downsample_mask_ADDR32, 0);
    TT_SEMINIT(0, 0, SEM_SEL(SEMAPHORE_MATH_PACK));
    TT_SEMINIT(1, 0, SEM_SEL(SEMAPHORE_UNPACK_TO_DST));
    TT_ZEROACC(3, 0, 0, 0, 0); /* all of Dst */
    TT_SFPENCC(3, 0, 0, 10); /* all lanes on */
    TT_NOP;
    TT_SFPCONFIG(0, 11, 1); /* LReg11 = -1.0 */
    TT_SEMINIT(2, 0, SEM_SEL(SEMAPHORE_UNPACK_SYNC));
    TT_SEMINIT(2, 0, SEM_SEL(SEMAPHORE_MATH_PACK));
}

static void start_triscs(void) {
    for (uint32_t n = 0; n < 3; n++) {
        mailboxes.done[n] = RUNNING;
        store(RISCV_DEBUG_REG_TRISC0_RESET_PC + 4 * n, reset_pc[n]);
    }
    mailboxes.configured = 0;
    store(RISCV_DEBUG_REG_TRISC_RESET_PC_OVERRIDE, 7);
    prepare_tensix();
    cfg_write(RISCV_IC_INVALIDATE_InvalidateAll_ADDR32,
              CFG(RISCV_IC_INVALIDATE_InvalidateAll, 0x1F));
    fence();
    store(RISCV_DEBUG_REG_SOFT_RESET_0, load(RISCV_DEBUG_REG_SOFT_RESET_0) & ~SOFT_RESET_TRISCS);
}

static void reset_triscs(void) {
    store(RISCV_DEBUG_REG_SOFT_RESET_0, load(RISCV_DEBUG_REG_SOFT_RESET_0) | SOFT_RESET_TRISCS);
}

/* The host sees the new count only after the slot of its next command is free. */
static uint32_t carried_out(uint32_t count) {
    count++;
    mailboxes.command[count % 2] = COMMAND_IDLE;
    mailboxes.counter = count;
    return count;
}

int main(void) {
    uint32_t count = 0;
    mailboxes.command[0] = COMMAND_IDLE;
    mailboxes.command[1] = COMMAND_IDLE;
    mailboxes.counter = count;
    for (;;) {
        fence();
        uint32_t command = mailboxes.command[count % 2];
        if (command == COMMAND_START_TRISCS) {
            start_triscs();
            count = carried_out(count);
        } else if (command == COMMAND_RESET_TRISCS) {
            reset_triscs();
            count = carried_out(count);
        }
        wait_ticks(POLL_TICKS);
    }
}
