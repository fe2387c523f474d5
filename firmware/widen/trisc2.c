/* T2 of widen: 32-bit rows of Dst to L1 as fp32. */
#include "widen/widen.h"

#define GPR_ADDRESS 8u
#define GPR_HALF 9u
#define ROW_BYTES 64u
#define PCK 4u

static void configure(void) {
    cfg_write(PCK0_ADDR_CTRL_XY_REG_0_Xstride_ADDR32,
              CFG(PCK0_ADDR_CTRL_XY_REG_0_Ystride, ROW_BYTES));
    cfg_write(PCK0_ADDR_CTRL_ZW_REG_0_Zstride_ADDR32,
              CFG(PCK0_ADDR_CTRL_ZW_REG_0_Zstride, 16 * ROW_BYTES));
    cfg_write(STACC_RELU_ApplyRelu_ADDR32, 0);
    cfg_write(PCK_DEST_RD_CTRL_Read_32b_data_ADDR32, CFG(PCK_DEST_RD_CTRL_Read_32b_data, 1));
    cfg_write(TILE_ROW_SET_MAPPING_0_row_set_mapping_0_ADDR32, 0);
    cfg_write(PCK_EDGE_OFFSET_SEC0_mask_ADDR32, CFG(PCK_EDGE_OFFSET_SEC0_mask, 0xFFFF));
    cfg_write(PACK_COUNTERS_SEC0_pack_per_xy_plane_ADDR32,
              CFG(PACK_COUNTERS_SEC0_pack_reads_per_xy_plane, 16));
    cfg_write(THCON_SEC0_REG1_Row_start_section_size_ADDR32, 0);
    cfg_write(THCON_SEC0_REG1_Disable_zero_compress_ADDR32,
              CFG(THCON_SEC0_REG1_Disable_zero_compress, 1) |
                  CFG(THCON_SEC0_REG1_Out_data_format, FORMAT_FLOAT32) |
                  CFG(THCON_SEC0_REG1_In_data_format, FORMAT_FLOAT32));
    cfg_write(THCON_SEC0_REG1_Downsample_mask_ADDR32, 0);
}

static void counters(void) {
    TTI_SETADCXY(PCK, 0, 0, 0, 0, 0xF);
    TTI_SETADCZW(PCK, 0, 0, 0, 0, 0xF);
    TTI_SETADCXX(PCK, 15, 0);
    TTI_SETC16(ADDR_MOD_PACK_SEC0_YsrcIncr_ADDR32,
               CFG(ADDR_MOD_PACK_SEC0_YsrcIncr, 4) | CFG(ADDR_MOD_PACK_SEC0_YdstIncr, 4));
    TTI_SETC16(ADDR_MOD_PACK_SEC1_YsrcIncr_ADDR32,
               CFG(ADDR_MOD_PACK_SEC1_YsrcClear, 1) | CFG(ADDR_MOD_PACK_SEC1_YdstClear, 1) |
                   CFG(ADDR_MOD_PACK_SEC1_ZsrcClear, 1));
    TTI_SETC16(ADDR_MOD_PACK_SEC2_YsrcIncr_ADDR32,
               CFG(ADDR_MOD_PACK_SEC2_YsrcClear, 1) | CFG(ADDR_MOD_PACK_SEC2_YdstIncr, 4) |
                   CFG(ADDR_MOD_PACK_SEC2_ZsrcIncr, 1));
}

static void target(uint32_t address, uint32_t row) {
    uint32_t value = address / 16 - 1;
    TT_SETDMAREG(value >> 14 & 3, value & 0x3FFF, 0, 2 * GPR_ADDRESS);
    TT_SETDMAREG(0, 0, 0, 2 * GPR_ADDRESS + 1);
    TT_SETDMAREG(0, row, 0, 2 * GPR_HALF);
    TT_SETDMAREG(0, 0, 0, 2 * GPR_HALF + 1);
    TTI_STALLWAIT(STALL_CFG, WAIT_THCON | WAIT_PACK);
    TTI_WRCFG(GPR_ADDRESS, 0, THCON_SEC0_REG1_L1_Dest_addr_ADDR32);
    TTI_WRCFG(GPR_HALF, 0, DEST_TARGET_REG_CFG_PACK_SEC0_Offset_ADDR32);
    TTI_DMANOP;
}

static void tile(uint32_t address, uint32_t row) {
    TTI_SEMWAIT(STALL_TDMA | STALL_CFG, SEM_SEL(SEM_FULL), SEMWAIT_WHILE_ZERO);
    target(address, row);
    for (uint32_t i = 1; i <= 16; i++) {
        uint32_t mode = i == 16 ? 1 : i % 4 == 0 ? 2 : 0;
        TT_PUSH(TTO_PACR | TTF_PACR_addr_mode(mode) | TTF_PACR_last(i == 16));
    }
    TTI_STALLWAIT(STALL_SYNC, WAIT_PACK);
    TTI_SEMGET(SEM_SEL(SEM_FULL));
}

int main(void) {
    done_words[3] = 0;
    configure();
    counters();
    TTI_STALLWAIT(STALL_TDMA | STALL_CFG, WAIT_TRISC_CFG);
    for (uint32_t i = 0; i < NTILES; i++) {
        tile(OUT + i * OUT_TILE, (i & 1) * DST_HALF_ROWS);
    }
    tensix_sync();
    done_words[3] = DONE_TRISC(2);
    return 0;
}
