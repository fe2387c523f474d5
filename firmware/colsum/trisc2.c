/* T2 of colsum: the one tile of sums to L1, face by face. */
#include "colsum/colsum.h"

#define GPR_RESULT 30u

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
    cfg_write(THCON_SEC0_REG1_L1_Dest_addr_ADDR32, RESULT / 16 - 1);
    cfg_write(DEST_TARGET_REG_CFG_PACK_SEC0_Offset_ADDR32, 0);
}

static void counters(void) {
    TTI_SETADCXY(4, 0, 0, 0, 0, 0xF);
    TTI_SETADCZW(4, 0, 0, 0, 0, 0xF);
    TTI_SETADCXX(4, 15, 0);
    TTI_SETC16(ADDR_MOD_PACK_SEC0_YsrcIncr_ADDR32,
               CFG(ADDR_MOD_PACK_SEC0_YsrcIncr, 4) | CFG(ADDR_MOD_PACK_SEC0_YdstIncr, 4));
    TTI_SETC16(ADDR_MOD_PACK_SEC1_YsrcIncr_ADDR32,
               CFG(ADDR_MOD_PACK_SEC1_YsrcClear, 1) | CFG(ADDR_MOD_PACK_SEC1_YdstClear, 1));
}

static void face(uint32_t number) {
    TT_SETADCZW(4, 0, number, 0, number, 0xF);
    TTI_PACR(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    TTI_PACR(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    TTI_PACR(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    if (number == 3) {
        TTI_PACR(0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1);
    } else {
        TTI_PACR(0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0);
    }
}

int main(void) {
    configure();
    counters();
    TTI_STALLWAIT(STALL_TDMA, WAIT_TRISC_CFG);
    TTI_SEMWAIT(STALL_TDMA, SEM_SEL(SEM_DONE), SEMWAIT_WHILE_ZERO);
    for (uint32_t number = 0; number < 4; number++) {
        face(number);
    }
    TTI_STALLWAIT(STALL_SYNC, WAIT_PACK);
    TTI_SEMGET(SEM_SEL(SEM_DONE));
    tensix_sync();
    done_words[3] = DONE_TRISC(2);
    return 0;
}
