/* TRISC2: packs slot 0 of each finished Dst half to L1, 32-bit datums as they are. */
#include "lib/done.h"
#include "lib/pack_half.h"
#include "sfpu/args.h"

#define FORMAT_FLOAT32 0u
#define FP32_ROW_BYTES 64u

uint32_t tiles_done; /* in local RAM, for a debugger */

static void configure(void) {
    configure_pack();
    cfg_write(PCK0_ADDR_CTRL_XY_REG_0_Xstride_ADDR32,
              CFG(PCK0_ADDR_CTRL_XY_REG_0_Ystride, FP32_ROW_BYTES));
    cfg_write(PCK0_ADDR_CTRL_ZW_REG_0_Zstride_ADDR32,
              CFG(PCK0_ADDR_CTRL_ZW_REG_0_Zstride, FACE_ROWS * FP32_ROW_BYTES));
    cfg_write(PCK_DEST_RD_CTRL_Read_32b_data_ADDR32, CFG(PCK_DEST_RD_CTRL_Read_32b_data, 1));
    cfg_write(THCON_SEC0_REG1_Disable_zero_compress_ADDR32,
              CFG(THCON_SEC0_REG1_Disable_zero_compress, 1) |
                  CFG(THCON_SEC0_REG1_Out_data_format, FORMAT_FLOAT32) |
                  CFG(THCON_SEC0_REG1_In_data_format, FORMAT_FLOAT32));
}

static void pack_tile(uint32_t address, uint32_t half) {
    TTI_SEMWAIT(STALL_TDMA, SEM_SEL(SEMAPHORE_MATH_PACK), SEMWAIT_WHILE_ZERO);
    set_pack_output(address, half);
    MOP_LOOP_RUN();
    TTI_STALLWAIT(STALL_SYNC, WAIT_PACK);
    TTI_SEMGET(SEM_SEL(SEMAPHORE_MATH_PACK));
    TTI_SEMPOST(SEM_SEL(SEMAPHORE_DST_FREE));
}

int main(void) {
    configure();
    for (uint32_t i = 0; i < runtime_args.n_tiles; i++) {
        pack_tile(runtime_args.out + i * SFPU_TILE_BYTES, i % 2);
        tiles_done = i + 1;
    }
    tensix_sync();
    done_words[3] = DONE_TRISC(2);
    return 0;
}
