/* T2 of rectify: packs with a threshold; the second and all later tiles are added to the first. */
#include "rectify/rectify.h"

#define PCK 4u
#define GPR_TO 24u
#define GPR_FROM 26u
#define RELU_ABOVE 2u
#define ROW_BYTES 32u
#define MODE_NEXT 0u
#define MODE_FACE 1u
#define MODE_END 2u

static void formats(uint32_t threshold) {
    cfg_write(PCK0_ADDR_CTRL_XY_REG_0_Xstride_ADDR32,
              CFG(PCK0_ADDR_CTRL_XY_REG_0_Ystride, ROW_BYTES));
    cfg_write(PCK0_ADDR_CTRL_ZW_REG_0_Zstride_ADDR32,
              CFG(PCK0_ADDR_CTRL_ZW_REG_0_Zstride, 16 * ROW_BYTES));
    cfg_write(STACC_RELU_ApplyRelu_ADDR32, CFG(STACC_RELU_ApplyRelu, RELU_ABOVE) |
                                               CFG(STACC_RELU_ReluThreshold, threshold >> 16));
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
}

static void counters(void) {
    TTI_SETADCXY(PCK, 0, 0, 0, 0, 0xF);
    TTI_SETADCZW(PCK, 0, 0, 0, 0, 0xF);
    TTI_SETADCXX(PCK, 15, 0);
    TTI_SETC16(ADDR_MOD_PACK_SEC0_YsrcIncr_ADDR32 + MODE_NEXT,
               CFG(ADDR_MOD_PACK_SEC0_YsrcIncr, 4) | CFG(ADDR_MOD_PACK_SEC0_YdstIncr, 4));
    TTI_SETC16(ADDR_MOD_PACK_SEC1_YsrcIncr_ADDR32,
               CFG(ADDR_MOD_PACK_SEC0_YsrcClear, 1) | CFG(ADDR_MOD_PACK_SEC0_ZsrcIncr, 1) |
                   CFG(ADDR_MOD_PACK_SEC0_YdstIncr, 4));
    TTI_SETC16(ADDR_MOD_PACK_SEC2_YsrcIncr_ADDR32,
               CFG(ADDR_MOD_PACK_SEC0_YsrcClear, 1) | CFG(ADDR_MOD_PACK_SEC0_ZsrcClear, 1) |
                   CFG(ADDR_MOD_PACK_SEC0_YdstClear, 1));
}

/* The packer has nothing to do. */
static void accumulate(uint32_t add) {
    tensix_sync();
    cfg_write(THCON_SEC0_REG1_Downsample_mask_ADDR32, CFG(THCON_SEC0_REG1_Pack_L1_Acc, add));
    TTI_STALLWAIT(STALL_TDMA, WAIT_TRISC_CFG);
}

static void pack(uint32_t to, uint32_t half) {
    gpr_write(GPR_TO, to / 16 - 1);
    gpr_write(GPR_FROM, half * DST_HALF_ROWS);
    TTI_SEMWAIT(STALL_TDMA | STALL_CFG, SEM_SEL(SEM_FULL), SEMWAIT_WHILE_ZERO);
    TTI_WRCFG(GPR_TO, 0, THCON_SEC0_REG1_L1_Dest_addr_ADDR32);
    TTI_WRCFG(GPR_FROM, 0, DEST_TARGET_REG_CFG_PACK_SEC0_Offset_ADDR32);
    TTI_DMANOP;
    for (uint32_t face = 0; face < 4; face++) {
        TTI_PACR(0, 0, 0, MODE_NEXT, 0, 0, 0, 0, 0, 0, 0, 0);
        TTI_PACR(0, 0, 0, MODE_NEXT, 0, 0, 0, 0, 0, 0, 0, 0);
        TTI_PACR(0, 0, 0, MODE_NEXT, 0, 0, 0, 0, 0, 0, 0, 0);
        TT_PUSH(face < 3 ? TTO_PACR | TTF_PACR_addr_mode(MODE_FACE)
                         : TTO_PACR | TTF_PACR_addr_mode(MODE_END) | TTF_PACR_last(1));
    }
    TTI_STALLWAIT(STALL_SYNC, WAIT_PACK);
    TTI_SEMGET(SEM_SEL(SEM_FULL));
}

int main(void) {
    formats(runtime_args.threshold);
    counters();
    for (uint32_t i = 0; i < runtime_args.pairs; i++) {
        accumulate(TURNS[i].add);
        pack(TURNS[i].out, i % 2);
    }
    tensix_sync();
    done_words[3] = DONE_TRISC(2);
    return 0;
}
