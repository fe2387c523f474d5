/* TRISC0: unpacks the tiles of each step straight to a Dst half, one slot of 64 rows per input. */
#include "lib/done.h"
#include "lib/tensix.h"
#include "lib/tile.h"
#include "sfpu/args.h"

#define UNPACKER0 1u
#define FORMAT_FLOAT32 0u

uint32_t tiles_done; /* in local RAM, for a debugger */

static void configure(void) {
    cfg_write(ALU_FORMAT_SPEC_REG0_SrcA_ADDR32,
              CFG(ALU_FORMAT_SPEC_REG0_SrcA, FORMAT_FLOAT32) |
                  CFG(ALU_FORMAT_SPEC_REG1_SrcB, FORMAT_FLOAT32) |
                  CFG(ALU_FORMAT_SPEC_REG2_Dstacc, FORMAT_FLOAT32) |
                  CFG(ALU_ACC_CTRL_Fp32_enabled, 1) | CFG(ALU_ACC_CTRL_SFPU_Fp32_enabled, 1));
    /* Tile descriptor: format, uncompressed, x dimension; then y and z dimension. */
    cfg_write(THCON_SEC0_REG0_TileDescriptor_ADDR32, FORMAT_FLOAT32 | 1u << 4 | FACE_DATUMS << 16);
    cfg_write(THCON_SEC0_REG0_TileDescriptor_ADDR32 + 1, 1u | FACES << 16);
    cfg_write(THCON_SEC0_REG2_Out_data_format_ADDR32,
              CFG(THCON_SEC0_REG2_Out_data_format, FORMAT_FLOAT32) |
                  CFG(THCON_SEC0_REG2_Throttle_mode, 2));
    cfg_write(THCON_SEC0_REG2_Disable_zero_compress_cntx0_ADDR32,
              CFG(THCON_SEC0_REG2_Disable_zero_compress_cntx0, 1) |
                  CFG(THCON_SEC0_REG2_Unpack_if_sel_cntx0, 1)); /* 1: Dst */
    cfg_write(THCON_SEC0_REG5_Tile_x_dim_cntx0_ADDR32,
              CFG(THCON_SEC0_REG5_Tile_x_dim_cntx0, FACE_DATUMS));
    cfg_write(THCON_SEC0_REG7_Offset_address_ADDR32, 0);
    TTI_SETC16(SRCA_SET_SetOvrdWithAddr_ADDR32, 0);
    TTI_SETC16(UNPACK_MISC_CFG_CfgContextOffset_0_ADDR32, 0);
    TTI_SETADCXY(UNPACKER0, 0, 0, 0, 0, 0xF);
    TTI_SETADCZW(UNPACKER0, 0, 0, 0, 0, 0xF);
    TTI_SETADCXX(UNPACKER0, TILE_DATUMS - 1, 0);
}

/* The configuration may change only while the unpacker is idle; the thread waits for its words. */
static void unpack_tile(uint32_t address, uint32_t row) {
    tensix_sync();
    cfg_write(THCON_SEC0_REG3_Base_address_ADDR32, (address >> 4) - 1);
    /* In datums, from four rows before the target. */
    cfg_write(THCON_SEC0_REG5_Dest_cntx0_address_ADDR32,
              CFG(THCON_SEC0_REG5_Dest_cntx0_address, (row + 4) * 16));
    TTI_STALLWAIT(STALL_UNPACK, WAIT_TRISC_CFG);
    TTI_UNPACR(0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1); /* last, ovrd_thread_id; no set_dat_valid */
}

static void unpack_step(uint32_t i) {
    TTI_SEMWAIT(STALL_UNPACK | STALL_SYNC, SEM_SEL(SEMAPHORE_DST_FREE), SEMWAIT_WHILE_ZERO);
    TTI_SEMGET(SEM_SEL(SEMAPHORE_DST_FREE));
    for (uint32_t input = 0; input < runtime_args.inputs; input++) {
        unpack_tile(runtime_args.in[input] + i * SFPU_TILE_BYTES,
                    (i % 2) * DST_HALF_ROWS + input * SLOT_ROWS);
    }
    TTI_STALLWAIT(STALL_SYNC, WAIT_UNPACK0);
    TTI_SEMPOST(SEM_SEL(SEMAPHORE_DST_FILLED));
}

int main(void) {
    configure();
    for (uint32_t i = 0; i < runtime_args.n_tiles; i++) {
        unpack_step(i);
        tiles_done = i + 1;
    }
    tensix_sync();
    done_words[1] = DONE_TRISC(0);
    return 0;
}
