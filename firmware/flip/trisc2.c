/* T2 of flip: 16 PACR played from the replay buffer per tile. */
#include "flip/flip.h"

#define GPR_TARGET 12u
#define GPR_HALVES 20u /* and the next one */

static void configure(void) {
    cfg_write(PCK0_ADDR_CTRL_XY_REG_0_Xstride_ADDR32, CFG(PCK0_ADDR_CTRL_XY_REG_0_Ystride, 32));
    cfg_write(PCK0_ADDR_CTRL_ZW_REG_0_Zstride_ADDR32, CFG(PCK0_ADDR_CTRL_ZW_REG_0_Zstride, FACE));
    cfg_write(STACC_RELU_ApplyRelu_ADDR32, 0);
    cfg_write(PCK_DEST_RD_CTRL_Read_32b_data_ADDR32, 0);
    cfg_write(TILE_ROW_SET_MAPPING_0_row_set_mapping_0_ADDR32, 0);
    cfg_write(PCK_EDGE_OFFSET_SEC0_mask_ADDR32, CFG(PCK_EDGE_OFFSET_SEC0_mask, 0xFFFF));
    cfg_write(PACK_COUNTERS_SEC0_pack_per_xy_plane_ADDR32,
              CFG(PACK_COUNTERS_SEC0_pack_reads_per_xy_plane, 16));
    cfg_write(THCON_SEC0_REG1_Row_start_section_size_ADDR32, 0);
    cfg_write(THCON_SEC0_REG1_Disable_zero_compress_ADDR32,
              CFG(THCON_SEC0_REG1_Disable_zero_compress, 1) |
                  CFG(THCON_SEC0_REG1_Out_data_format, FORMAT_FLOAT16_B) |
                  CFG(THCON_SEC0_REG1_In_data_format, FORMAT_FLOAT16_B));
    cfg_write(THCON_SEC0_REG1_Downsample_mask_ADDR32, 0);
    gpr_write(GPR_HALVES, 0);
    gpr_write(GPR_HALVES + 1, DST_HALF_ROWS);
    TTI_SETADCXY(4, 0, 0, 0, 0, 0xF);
    TTI_SETADCZW(4, 0, 0, 0, 0, 0xF);
    TTI_SETADCXX(4, 15, 0);
}

static void modes(void) {
    TTI_SETC16(ADDR_MOD_PACK_SEC0_YsrcIncr_ADDR32,
               CFG(ADDR_MOD_PACK_SEC0_YsrcIncr, 4) | CFG(ADDR_MOD_PACK_SEC0_YdstIncr, 4));
    TTI_SETC16(ADDR_MOD_PACK_SEC1_YsrcIncr_ADDR32,
               CFG(ADDR_MOD_PACK_SEC1_YsrcClear, 1) | CFG(ADDR_MOD_PACK_SEC1_YdstIncr, 4) |
                   CFG(ADDR_MOD_PACK_SEC1_ZsrcIncr, 1));
    TTI_SETC16(ADDR_MOD_PACK_SEC2_YsrcIncr_ADDR32,
               CFG(ADDR_MOD_PACK_SEC2_YsrcClear, 1) | CFG(ADDR_MOD_PACK_SEC2_YdstClear, 1) |
                   CFG(ADDR_MOD_PACK_SEC2_ZsrcClear, 1));
}

static void record(void) {
    TTI_REPLAY(0, 16, 0, 1);
    for (uint32_t i = 1; i <= 16; i++) {
        uint32_t mode = i == 16 ? 2 : i % 4 == 0 ? 1 : 0;
        TT_PUSH(TTO_PACR | TTF_PACR_addr_mode(mode) | TTF_PACR_last(i == 16));
    }
}

static void tile(uint32_t target, uint32_t half) {
    uint32_t value = target / 16 - 1;
    TT_SETDMAREG(value >> 14 & 3, value & 0x3FFF, 0, 2 * GPR_TARGET);
    TT_SETDMAREG(0, 0, 0, 2 * GPR_TARGET + 1);
    TTI_SEMWAIT(STALL_TDMA | STALL_CFG, SEM_SEL(SEM_TILE), SEMWAIT_WHILE_ZERO);
    TTI_STALLWAIT(STALL_CFG, WAIT_THCON | WAIT_PACK);
    TTI_WRCFG(GPR_TARGET, 0, THCON_SEC0_REG1_L1_Dest_addr_ADDR32);
    TT_WRCFG(GPR_HALVES + half, 0, DEST_TARGET_REG_CFG_PACK_SEC0_Offset_ADDR32);
    TTI_DMANOP;
    TTI_REPLAY(0, 16, 0, 0);
    TTI_STALLWAIT(STALL_SYNC, WAIT_PACK);
    TTI_SEMGET(SEM_SEL(SEM_TILE));
}

int main(void) {
    configure();
    modes();
    record();
    uint32_t target = runtime_args.target;
    for (uint32_t i = 0; i < runtime_args.tiles; i++) {
        tile(target + i * TILE, i % 2);
    }
    tensix_sync();
    done_words[3] = DONE_TRISC(2);
    return 0;
}
