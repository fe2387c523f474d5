/* TRISC2: packs each finished tile of Dst, as faces or row-major, in the format the host names. */
#include "lib/pack_half.h"
#include "llk_like/kernel.h"

#define NEXT_ROW 3u /* address mode 3 of the packer: one row on in Dst */

/* bfp8, bfp4 and bfp2 of both families: one exponent byte per 16 datums, before the datums. */
static uint32_t has_exponents(uint32_t format) {
    return format == 2 || format == 3 || format == 6 || format == 7 || format == 11 || format == 15;
}

static void configure(void) {
    uint32_t exponents = has_exponents(runtime_args.out) ? TILE_DATUMS / 16 / 16 : 0;
    configure_pack_registers();
    cfg_write(STACC_RELU_ApplyRelu_ADDR32,
              CFG(STACC_RELU_ApplyRelu, runtime_args.relu & 15) |
                  CFG(STACC_RELU_ReluThreshold, runtime_args.relu >> 16));
    cfg_write(THCON_SEC0_REG1_Downsample_mask_ADDR32,
              CFG(THCON_SEC0_REG1_Pack_L1_Acc, runtime_args.l1_acc));
    cfg_write(THCON_SEC0_REG1_Row_start_section_size_ADDR32,
              CFG(THCON_SEC0_REG1_Exp_section_size, exponents));
    cfg_write(PCK_DEST_RD_CTRL_Read_32b_data_ADDR32,
              CFG(PCK_DEST_RD_CTRL_Read_32b_data, runtime_args.dst32));
    cfg_write(THCON_SEC0_REG1_Disable_zero_compress_ADDR32,
              CFG(THCON_SEC0_REG1_Disable_zero_compress, 1) |
                  CFG(THCON_SEC0_REG1_Out_data_format, runtime_args.out) |
                  CFG(THCON_SEC0_REG1_In_data_format, runtime_args.dst));
    configure_pack_counters();
    TTI_SETC16(CFG(ADDR_MOD_PACK_SEC3_YsrcIncr, 1), ADDR_MOD_PACK_SEC3_YsrcIncr_ADDR32);
    uint32_t row = 16 * (runtime_args.dst & 3 ? 2 : 4); /* bytes; formats 0, 4 and 8 have 32 bits */
    cfg_write(PCK0_ADDR_CTRL_XY_REG_0_Xstride_ADDR32, CFG(PCK0_ADDR_CTRL_XY_REG_0_Ystride, row));
    cfg_write(PCK0_ADDR_CTRL_ZW_REG_0_Zstride_ADDR32,
              CFG(PCK0_ADDR_CTRL_ZW_REG_0_Zstride, FACE_ROWS * row) |
                  CFG(PCK0_ADDR_CTRL_ZW_REG_0_Wstride, TILE_ROWS * row));
}

/* Four rows per PACR; address mode 0 goes on by four, 2 to the next face, 1 back to the start. */
static void pack_faces(void) {
    for (uint32_t face = 0; face < FACES; face++) {
        for (uint32_t i = 0; i < 3; i++) {
            TTI_PACR(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
        }
        if (face < FACES - 1) {
            TTI_PACR(0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0);
        } else {
            TTI_PACR(1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0);
        }
    }
}

/* Strided access: two interfaces read the same row of two neighbouring faces, 32 datums of L1. */
static void pack_rows(void) {
    for (uint32_t row = 0; row < 32; row++) {
        if (row % FACE_ROWS == 0) {
            TTI_SETADCXY(3, 0, 0, 0, 0, PACKER);
            TTP_SETADCZW(1, row / FACE_ROWS * 2, 0, 0, 0, PACKER);
        }
        TT_PUSH(TTO_PACR | TTF_PACR_read_intf_sel(3) | TTF_PACR_dst_access_mode(1) |
                TTF_PACR_addr_mode(NEXT_ROW) | TTF_PACR_last(row == 31));
    }
    TTI_SETADCXY(3, 0, 0, 0, 0, PACKER);
    TTI_SETADCZW(1, 0, 0, 0, 0, PACKER);
}

static void pack_tile(uint32_t address, uint32_t half) {
    TTI_SEMWAIT(SEMWAIT_WHILE_ZERO, SEM_SEL(SEMAPHORE_MATH_PACK), STALL_TDMA);
    set_pack_output(address, half);
    if (runtime_args.pack == PACK_UNTILIZE) {
        pack_rows();
    } else {
        pack_faces();
    }
    TTI_STALLWAIT(WAIT_PACK, STALL_MATH);
    TTP_ZEROACC(half, 0, 0, runtime_args.dst32, 2);
    TTI_STALLWAIT(WAIT_PACK | WAIT_MATH, STALL_SYNC);
    TTI_SEMGET(SEM_SEL(SEMAPHORE_MATH_PACK));
}

int main(void) {
    configure();
    for (uint32_t i = 0; i < runtime_args.tiles; i++) {
        uint32_t at = runtime_args.l1_acc ? 0 : i;
        pack_tile(runtime_args.c + at * runtime_args.out_bytes, i % 2);
    }
    complete(2);
    return 0;
}
