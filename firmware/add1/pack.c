/* TRISC2: packs each filled Dst half to L1, clears it and gives it back to math. */
#include "add1/args.h"
#include "lib/tensix.h"

#define PACKER 4u

#define GPR_DST_OFFSET 4u     /* and the next one: row offsets of the two Dst halves */
#define GPR_OUTPUT_ADDRESS 12u

#define BF16_ROW_BYTES 32u
#define FACE_ROWS 16u
#define TILE_ROWS 64u

uint32_t tiles_done; /* in local RAM, for a debugger */

static void configure_packer(void) {
    cfg_write(STACC_RELU_ApplyRelu_ADDR32, 0);
    cfg_write(PCK0_ADDR_CTRL_XY_REG_0_Xstride_ADDR32,
              CFG(PCK0_ADDR_CTRL_XY_REG_0_Ystride, BF16_ROW_BYTES));
    cfg_write(PCK0_ADDR_CTRL_ZW_REG_0_Zstride_ADDR32,
              CFG(PCK0_ADDR_CTRL_ZW_REG_0_Zstride, FACE_ROWS * BF16_ROW_BYTES) |
                  CFG(PCK0_ADDR_CTRL_ZW_REG_0_Wstride, TILE_ROWS * BF16_ROW_BYTES));
    cfg_write(PCK_DEST_RD_CTRL_Read_32b_data_ADDR32, 0);
    cfg_write(TILE_ROW_SET_MAPPING_0_row_set_mapping_0_ADDR32, 0);
    cfg_write(PCK_EDGE_OFFSET_SEC0_mask_ADDR32, CFG(PCK_EDGE_OFFSET_SEC0_mask, 0xFFFF));
    cfg_write(PACK_COUNTERS_SEC0_pack_per_xy_plane_ADDR32,
              CFG(PACK_COUNTERS_SEC0_pack_reads_per_xy_plane, FACE_ROWS));
    cfg_write(THCON_SEC0_REG1_Row_start_section_size_ADDR32, 0);
    cfg_write(THCON_SEC0_REG1_Disable_zero_compress_ADDR32,
              CFG(THCON_SEC0_REG1_Disable_zero_compress, 1) |
                  CFG(THCON_SEC0_REG1_Out_data_format, FORMAT_FLOAT16_B) |
                  CFG(THCON_SEC0_REG1_In_data_format, FORMAT_FLOAT16_B));
    cfg_write(THCON_SEC0_REG1_Downsample_mask_ADDR32, 0);
}

/* PACR packs four rows; address mode 0 goes on by four, 2 to the next face, 1 back to the start. */
static void configure_counters(void) {
    TTI_SETADCXY(PACKER, 0, 0, 0, 0, 0xF);
    TTI_SETADCZW(PACKER, 0, 0, 0, 0, 0xF);
    TTI_SETADCXX(PACKER, 15, 0);
    TTI_SETC16(ADDR_MOD_PACK_SEC0_YsrcIncr_ADDR32,
               CFG(ADDR_MOD_PACK_SEC0_YsrcIncr, 4) | CFG(ADDR_MOD_PACK_SEC0_YdstIncr, 4));
    TTI_SETC16(ADDR_MOD_PACK_SEC1_YsrcIncr_ADDR32,
               CFG(ADDR_MOD_PACK_SEC1_YsrcClear, 1) | CFG(ADDR_MOD_PACK_SEC1_YdstClear, 1) |
                   CFG(ADDR_MOD_PACK_SEC1_ZsrcClear, 1));
    TTI_SETC16(ADDR_MOD_PACK_SEC2_YsrcIncr_ADDR32,
               CFG(ADDR_MOD_PACK_SEC2_YsrcClear, 1) | CFG(ADDR_MOD_PACK_SEC2_YdstIncr, 4) |
                   CFG(ADDR_MOD_PACK_SEC2_ZsrcIncr, 1));
    gpr_write(GPR_DST_OFFSET, 0);
    gpr_write(GPR_DST_OFFSET + 1, DST_HALF_ROWS);
}

static void program_mop(void) {
    uint32_t rows = TTO_PACR;
    uint32_t end_of_face = TTO_PACR | TTF_PACR_addr_mode(2);
    uint32_t end_of_tile = TTO_PACR | TTF_PACR_addr_mode(1) | TTF_PACR_last(1);
    mop_loop_program(FACES, 4, TT_OP_NOP, rows, TT_OP_NOP, end_of_face, end_of_tile);
}

static void set_output(uint32_t address, uint32_t half) {
    uint32_t value = (address >> 4) - 1; /* the packer adds 1 for a tile header */
    TT_SETDMAREG((value >> 14) & 3, value & 0x3FFF, 0, 2 * GPR_OUTPUT_ADDRESS);
    TT_SETDMAREG(value >> 30, (value >> 16) & 0x3FFF, 0, 2 * GPR_OUTPUT_ADDRESS + 1);
    TTI_STALLWAIT(STALL_CFG, WAIT_THCON | WAIT_PACK);
    TTI_WRCFG(GPR_OUTPUT_ADDRESS, 0, THCON_SEC0_REG1_L1_Dest_addr_ADDR32);
    TT_WRCFG(GPR_DST_OFFSET + half, 0, DEST_TARGET_REG_CFG_PACK_SEC0_Offset_ADDR32);
    TTI_DMANOP; /* WRCFG takes two cycles */
}

static void pack_tile(uint32_t address, uint32_t half) {
    TTI_SEMWAIT(STALL_TDMA, SEM_SEL(SEMAPHORE_MATH_PACK), SEMWAIT_WHILE_ZERO);
    set_output(address, half);
    MOP_LOOP_RUN();
    TTI_STALLWAIT(STALL_MATH, WAIT_PACK);
    TT_ZEROACC(2, 0, 0, 0, half);
    TTI_STALLWAIT(STALL_SYNC, WAIT_PACK | WAIT_MATH);
    TTI_SEMGET(SEM_SEL(SEMAPHORE_MATH_PACK));
}

int main(void) {
    configure_packer();
    configure_counters();
    program_mop();
    uint32_t half = 0;
    for (uint32_t i = 0; i < runtime_args.n_tiles; i++) {
        pack_tile(runtime_args.dst + i * TILE_BYTES, half);
        half ^= 1;
        tiles_done = i + 1;
    }
    tensix_sync();
    done_words[3] = DONE_TRISC(2);
    return 0;
}
