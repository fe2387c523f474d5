/* T2 of refeed: packs a half as its job says, with ReLU or without. */
#include "refeed/refeed.h"

#define GPR_OUT 20u
#define GPR_HALVES 24u /* and the next one */

static void configure(void) {
    cfg_write(PCK0_ADDR_CTRL_XY_REG_0_Xstride_ADDR32, CFG(PCK0_ADDR_CTRL_XY_REG_0_Ystride, 32));
    cfg_write(PCK0_ADDR_CTRL_ZW_REG_0_Zstride_ADDR32, CFG(PCK0_ADDR_CTRL_ZW_REG_0_Zstride, 512));
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
    TTI_SETC16(ADDR_MOD_PACK_SEC0_YsrcIncr_ADDR32,
               CFG(ADDR_MOD_PACK_SEC0_YsrcIncr, 4) | CFG(ADDR_MOD_PACK_SEC0_YdstIncr, 4));
    TTI_SETC16(ADDR_MOD_PACK_SEC1_YsrcIncr_ADDR32,
               CFG(ADDR_MOD_PACK_SEC1_YsrcClear, 1) | CFG(ADDR_MOD_PACK_SEC1_YdstIncr, 4) |
                   CFG(ADDR_MOD_PACK_SEC1_ZsrcIncr, 1));
    TTI_SETC16(ADDR_MOD_PACK_SEC2_YsrcIncr_ADDR32,
               CFG(ADDR_MOD_PACK_SEC2_YsrcClear, 1) | CFG(ADDR_MOD_PACK_SEC2_YdstClear, 1) |
                   CFG(ADDR_MOD_PACK_SEC2_ZsrcClear, 1));
}

static void pack(uint32_t out, uint32_t relu, uint32_t half) {
    uint32_t value = out / 16 - 1;
    TT_SETDMAREG(value >> 14 & 3, value & 0x3FFF, 0, 2 * GPR_OUT);
    TT_SETDMAREG(0, value >> 16, 0, 2 * GPR_OUT + 1);
    TTI_SEMWAIT(STALL_TDMA | STALL_CFG, SEM_SEL(SEM_HALF), SEMWAIT_WHILE_ZERO);
    TTI_STALLWAIT(STALL_CFG, WAIT_THCON | WAIT_PACK);
    TT_RMWCIB0(STACC_RELU_ApplyRelu_MASK, CFG(STACC_RELU_ApplyRelu, relu),
               STACC_RELU_ApplyRelu_ADDR32);
    TTI_WRCFG(GPR_OUT, 0, THCON_SEC0_REG1_L1_Dest_addr_ADDR32);
    TT_WRCFG(GPR_HALVES + half, 0, DEST_TARGET_REG_CFG_PACK_SEC0_Offset_ADDR32);
    TTI_DMANOP;
    MOP_LOOP_RUN();
    TTI_STALLWAIT(STALL_SYNC, WAIT_PACK);
    TTI_SEMGET(SEM_SEL(SEM_HALF));
}

int main(void) {
    configure();
    mop_loop_program(4, 4, TT_OP_NOP, TTO_PACR, TT_OP_NOP, TTO_PACR | TTF_PACR_addr_mode(1),
                     TTO_PACR | TTF_PACR_addr_mode(2) | TTF_PACR_last(1));
    for (uint32_t i = 0; i < runtime_args.tiles; i++) {
        volatile struct job *job = JOB(i);
        while (ISSUED <= i) {
            fence();
        }
        pack(job->out, job->relu, i % 2);
        fence();
        TAKEN_2 = i + 1;
        tensix_sync();
        PACKED = i + 1;
    }
    done_words[3] = DONE_TRISC(2);
    return 0;
}
