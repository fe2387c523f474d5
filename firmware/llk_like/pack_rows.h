/* TRISC2's strided packs: every interface reads 16 rows further on than the one before. */
#pragma once

#include "lib/pack_half.h"
#include "llk_like/kernel.h"

#define TWO_INTERFACES 3u
#define GPR_ROW_BYTES 13u /* how far L1_Dest_addr goes on, in units of 16 bytes */

static inline void pacr_strided(uint32_t interfaces, uint32_t mode, uint32_t last) {
    TT_PUSH(TTO_PACR | TTF_PACR_read_intf_sel(interfaces) | TTF_PACR_dst_access_mode(1) |
            TTF_PACR_addr_mode(mode) | TTF_PACR_last(last));
}

static inline void pack_address_modes(uint32_t m0, uint32_t m1, uint32_t m2, uint32_t m3) {
    TT_SETC16(ADDR_MOD_PACK_SEC0_YsrcIncr_ADDR32, m0);
    TT_SETC16(ADDR_MOD_PACK_SEC1_YsrcIncr_ADDR32, m1);
    TT_SETC16(ADDR_MOD_PACK_SEC2_YsrcIncr_ADDR32, m2);
    TT_SETC16(ADDR_MOD_PACK_SEC3_YsrcIncr_ADDR32, m3);
}

/* Strides in rows of Dst. */
static inline void pack_strides(uint32_t row_bytes, uint32_t y, uint32_t z, uint32_t w) {
    cfg_write(PCK0_ADDR_CTRL_XY_REG_0_Xstride_ADDR32,
              CFG(PCK0_ADDR_CTRL_XY_REG_0_Ystride, y * row_bytes));
    cfg_write(PCK0_ADDR_CTRL_ZW_REG_0_Zstride_ADDR32,
              CFG(PCK0_ADDR_CTRL_ZW_REG_0_Zstride, z * row_bytes) |
                  CFG(PCK0_ADDR_CTRL_ZW_REG_0_Wstride, w * row_bytes));
}

/* The next PACR starts GPR_ROW_BYTES behind the last start; the one before has ended its tile. */
static inline void advance_output(void) {
    TTI_ADDDMAREG(0, GPR_OUTPUT_ADDRESS, GPR_ROW_BYTES, GPR_OUTPUT_ADDRESS);
    TTI_STALLWAIT(STALL_CFG, WAIT_THCON | WAIT_PACK);
    TTI_WRCFG(GPR_OUTPUT_ADDRESS, 0, THCON_SEC0_REG1_L1_Dest_addr_ADDR32);
    TTI_DMANOP;
}

/* Two interfaces read the same row of two neighbouring faces, 32 datums of L1. Address mode 3 goes
 * on by a row. */
static inline void pack_rows(void) {
    for (uint32_t row = 0; row < 32; row++) {
        if (row % FACE_ROWS == 0) {
            TTI_SETADCXY(PACKER, 0, 0, 0, 0, 3);
            TT_SETADCZW(PACKER, 0, 0, 0, row / FACE_ROWS * 2, 1);
        }
        pacr_strided(TWO_INTERFACES, 3, row == 31);
    }
    TTI_SETADCXY(PACKER, 0, 0, 0, 0, 3);
    TTI_SETADCZW(PACKER, 0, 0, 0, 0, 1);
}

static inline uint32_t is_dense(void) { return runtime_args.pack == PACK_BLOCK_DENSE; }

/* Mode 0 stays, mode 3 goes to the next row. */
static inline void configure_block_untilize(uint32_t row_bytes) {
    uint32_t faces = runtime_args.faces;
    uint32_t columns = 16 * (faces > 1 ? 2 : 1) * runtime_args.width;
    uint32_t width = runtime_args.out & 3;
    uint32_t bytes = columns * (width == 0 ? 4 : width == 1 ? 2 : 1);
    pack_strides(row_bytes, 1, FACE_ROWS, is_dense() ? TILE_ROWS : FACE_ROWS * faces);
    pack_address_modes(0, 0, 0, CFG(ADDR_MOD_PACK_SEC0_YsrcIncr, 1));
    gpr_write(GPR_ROW_BYTES, bytes / 16);
}

/* A row of each tile side by side (with all four interfaces: of each two tiles) makes a row in L1,
 * which is a tile of its own for the packer. */
static inline void pack_block_untilize(void) {
    uint32_t faces = runtime_args.faces;
    uint32_t interfaces = is_dense() ? 0 : faces > 1 ? TWO_INTERFACES : 1;
    uint32_t steps = is_dense() ? runtime_args.width / 2 : runtime_args.width;
    for (uint32_t face = 0; face < faces; face += 2) {
        TTI_SETADCXY(PACKER, 0, 0, 0, 0, 3);
        for (uint32_t row = 0; row < runtime_args.face_rows; row++) {
            for (uint32_t i = 0; i < steps; i++) {
                TT_SETADCZW(PACKER, 0, 0, i, face, 3);
                pacr_strided(interfaces, i == steps - 1 ? 3 : 0, i == steps - 1);
            }
            advance_output();
        }
    }
    TTI_SETADCXY(PACKER, 0, 0, 0, 0, 3);
    TTI_SETADCZW(PACKER, 0, 0, 0, 0, 3);
}

/* Rows of the block lie 16 rows apart. Mode 0: four rows of the block on; 3: the right face, the
 * same rows; 2: the left one, sixteen rows of the block on; 1: back to the start. */
static inline void configure_fast_tilize(uint32_t row_bytes) {
    pack_strides(row_bytes, 4 * 16, 1, 2);
    pack_address_modes(CFG(ADDR_MOD_PACK_SEC0_YsrcIncr, 1),
                       CFG(ADDR_MOD_PACK_SEC0_YsrcClear, 1) | CFG(ADDR_MOD_PACK_SEC0_YsrcCR, 1) |
                           CFG(ADDR_MOD_PACK_SEC0_ZsrcClear, 1),
                       CFG(ADDR_MOD_PACK_SEC0_YsrcIncr, 4) | CFG(ADDR_MOD_PACK_SEC0_YsrcCR, 1) |
                           CFG(ADDR_MOD_PACK_SEC0_ZsrcClear, 1),
                       CFG(ADDR_MOD_PACK_SEC0_YsrcCR, 1) | CFG(ADDR_MOD_PACK_SEC0_ZsrcIncr, 1));
    gpr_write(GPR_ROW_BYTES, runtime_args.out_bytes / 16);
}

static inline void pack_fast_tilize(void) {
    static const uint8_t end_of_face[FACES] = {3, 2, 3, 1};
    TTI_SETADCXY(PACKER, 0, 0, 0, 0, 3);
    TTI_SETADCZW(PACKER, 0, 0, 0, 0, 3);
    for (uint32_t tile = 0; tile < runtime_args.width; tile++) {
        TT_SETADCZW(PACKER, 0, 0, tile, 0, 2);
        for (uint32_t face = 0; face < FACES; face++) {
            for (uint32_t i = 0; i < 3; i++) {
                pacr_strided(0, 0, 0);
            }
            pacr_strided(0, end_of_face[face], face == FACES - 1);
        }
        advance_output();
    }
    TTI_SETADCZW(PACKER, 0, 0, 0, 0, 3);
}

/* 64 rows are the upper (128 rows further on the lower) faces of two tiles. Mode 0: the next two
 * tiles; 1: the next row of the first two. */
static inline void configure_fast_untilize(uint32_t row_bytes) {
    pack_strides(row_bytes, 1, 64, 128);
    pack_address_modes(CFG(ADDR_MOD_PACK_SEC0_ZsrcIncr, 1),
                       CFG(ADDR_MOD_PACK_SEC0_YsrcIncr, 1) | CFG(ADDR_MOD_PACK_SEC0_ZsrcClear, 1),
                       0, 0);
}

/* 2, 3 or 4 tiles side by side; the whole block is one tile for the packer. */
static inline void pack_fast_untilize(void) {
    uint32_t width = runtime_args.width;
    for (uint32_t half = 0; half < 2; half++) {
        TTI_SETADCXY(PACKER, 0, 0, 0, 0, 3);
        TT_SETADCZW(PACKER, 0, 0, half, 0, 3);
        for (uint32_t row = 0; row < FACE_ROWS; row++) {
            uint32_t last = half && row == FACE_ROWS - 1;
            if (width > 2) {
                pacr_strided(0, 0, 0);
            }
            pacr_strided(width == 3 ? TWO_INTERFACES : 0, 1, last);
        }
    }
    TTI_SETADCXY(PACKER, 0, 0, 0, 0, 3);
    TTI_SETADCZW(PACKER, 0, 0, 0, 0, 3);
}
