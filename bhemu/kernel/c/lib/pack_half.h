/* TRISC2's part of a kernel of the matrix unit: tiles from a Dst half to L1, bf16 or fp32. */
#pragma once

#include "lib/tensix.h"
#include "lib/tile.h"

#define PACKER 4u

#define GPR_DST_OFFSET 4u /* and the next one: row offsets of the two Dst halves */
#define GPR_OUTPUT_ADDRESS 12u

static inline void write_pack_format(uint32_t format, uint32_t add) {
    uint32_t row_bytes = format == FORMAT_FLOAT32 ? 2 * BF16_ROW_BYTES : BF16_ROW_BYTES;
    cfg_write(PCK0_ADDR_CTRL_XY_REG_0_Xstride_ADDR32,
              CFG(PCK0_ADDR_CTRL_XY_REG_0_Ystride, row_bytes));
    cfg_write(PCK0_ADDR_CTRL_ZW_REG_0_Zstride_ADDR32,
              CFG(PCK0_ADDR_CTRL_ZW_REG_0_Zstride, FACE_ROWS * row_bytes) |
                  CFG(PCK0_ADDR_CTRL_ZW_REG_0_Wstride, TILE_ROWS * row_bytes));
    cfg_write(THCON_SEC0_REG1_Disable_zero_compress_ADDR32,
              CFG(THCON_SEC0_REG1_Disable_zero_compress, 1) |
                  CFG(THCON_SEC0_REG1_Out_data_format, format) |
                  CFG(THCON_SEC0_REG1_In_data_format, format));
    cfg_write(THCON_SEC0_REG1_Downsample_mask_ADDR32, CFG(THCON_SEC0_REG1_Pack_L1_Acc, add));
}

/* Packs `format`, bf16 or (from 32-bit Dst only) fp32; `add` 1: adds to what is in L1. Nothing may
 * be packing, and T0 must have configured the formats. */
static inline void set_pack_format(uint32_t format, uint32_t add) {
    write_pack_format(format, add);
    TT_RMWCIB3(ALU_FORMAT_SPEC_REG2_Dstacc_MASK >> 24,
                CFG(ALU_FORMAT_SPEC_REG2_Dstacc, format) >> 24,
               ALU_FORMAT_SPEC_REG2_Dstacc_ADDR32);
}

static inline void configure_pack_registers(void) {
    cfg_write(STACC_RELU_ApplyRelu_ADDR32, 0);
    cfg_write(PCK_DEST_RD_CTRL_Read_32b_data_ADDR32, 0);
    cfg_write(TILE_ROW_SET_MAPPING_0_row_set_mapping_0_ADDR32, 0);
    cfg_write(PCK_EDGE_OFFSET_SEC0_mask_ADDR32, CFG(PCK_EDGE_OFFSET_SEC0_mask, 0xFFFF));
    cfg_write(PACK_COUNTERS_SEC0_pack_per_xy_plane_ADDR32,
              CFG(PACK_COUNTERS_SEC0_pack_reads_per_xy_plane, FACE_ROWS));
    cfg_write(THCON_SEC0_REG1_Row_start_section_size_ADDR32, 0);
    write_pack_format(FORMAT_FLOAT16_B, 0);
}

/* PACR packs four rows; address mode 0 goes on by four, 2 to the next face, 1 back to the start. */
static inline void configure_pack_counters(void) {
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

static inline void configure_pack(void) {
    uint32_t rows = TTO_PACR;
    uint32_t end_of_face = TTO_PACR | TTF_PACR_addr_mode(2);
    uint32_t end_of_tile = TTO_PACR | TTF_PACR_addr_mode(1) | TTF_PACR_last(1);
    configure_pack_registers();
    configure_pack_counters();
    mop_loop_program(FACES, 4, TT_OP_NOP, rows, TT_OP_NOP, end_of_face, end_of_tile);
}

/* From Dst of 16 or, with `fp32_dst` 1, of 32 bits; to bf16. */
static inline void configure_pack_from(uint32_t fp32_dst) {
    configure_pack();
    cfg_write(PCK_DEST_RD_CTRL_Read_32b_data_ADDR32,
              CFG(PCK_DEST_RD_CTRL_Read_32b_data, fp32_dst));
}

static inline void set_pack_output(uint32_t address, uint32_t half) {
    uint32_t value = (address >> 4) - 1; /* the packer adds 1 for a tile header */
    TT_SETDMAREG((value >> 14) & 3, value & 0x3FFF, 0, 2 * GPR_OUTPUT_ADDRESS);
    TT_SETDMAREG(value >> 30, (value >> 16) & 0x3FFF, 0, 2 * GPR_OUTPUT_ADDRESS + 1);
    TTI_STALLWAIT(STALL_CFG, WAIT_THCON | WAIT_PACK);
    TTI_WRCFG(GPR_OUTPUT_ADDRESS, 0, THCON_SEC0_REG1_L1_Dest_addr_ADDR32);
    TT_WRCFG(GPR_DST_OFFSET + half, 0, DEST_TARGET_REG_CFG_PACK_SEC0_Offset_ADDR32);
    TTI_DMANOP; /* WRCFG takes two cycles */
}

/* Waits until math has filled a half. */
static inline void acquire_packed_half(void) {
    TTI_SEMWAIT(STALL_TDMA | STALL_CFG, SEM_SEL(SEMAPHORE_MATH_PACK),
                SEMWAIT_WHILE_ZERO);
}

/* Packs a tile of the half, 0 to 7, to `address`. */
static inline void pack_tile_of_half(uint32_t address, uint32_t half, uint32_t tile) {
    set_pack_output(address, half);
    TT_SETADCZW(PACKER, 0, 0, tile, 0, 2);
    MOP_LOOP_RUN();
}

/* Clears the half and gives it back to math. */
static inline void release_packed_half(uint32_t half) {
    TTI_STALLWAIT(STALL_MATH, WAIT_PACK);
    TT_ZEROACC(2, 0, 0, 0, half);
    TTI_STALLWAIT(STALL_SYNC, WAIT_PACK | WAIT_MATH);
    TTI_SEMGET(SEM_SEL(SEMAPHORE_MATH_PACK));
}

/* Packs the half that math filled with one tile to `address`. */
static inline void pack_half(uint32_t address, uint32_t half) {
    acquire_packed_half();
    pack_tile_of_half(address, half, 0);
    release_packed_half(half);
}
