/* TRISC2: packs each finished tile of Dst, as faces or row-major, in the format the host names. */
#include "lib/pack_half.h"
#include "llk_like/kernel.h"
#include "llk_like/pack_rows.h"

#define FORMAT_UINT16 9u

/* bfp8, bfp4 and bfp2 of both families: one exponent byte per 16 datums, before the datums. */
static uint32_t has_exponents(uint32_t format) {
    return format == 2 || format == 3 || format == 6 || format == 7 || format == 11 || format == 15;
}

/* Strides and address modes. */
static void configure_order(uint32_t row_bytes) {
    if (runtime_args.pack == PACK_BLOCK_UNTILIZE || runtime_args.pack == PACK_BLOCK_DENSE) {
        configure_block_untilize(row_bytes);
    } else if (runtime_args.pack == PACK_FAST_TILIZE) {
        configure_fast_tilize(row_bytes);
    } else if (runtime_args.pack == PACK_FAST_UNTILIZE) {
        configure_fast_untilize(row_bytes);
    } else {
        pack_strides(row_bytes, 1, FACE_ROWS, TILE_ROWS);
    }
}

/* Output tiles of a pass, and bytes of all of them. */
static uint32_t bytes_per_pass(void) {
    uint32_t tiles = runtime_args.pack >= PACK_BLOCK_UNTILIZE ? runtime_args.width : 1;
    uint32_t indices = runtime_args.pack == PACK_TOPK ? runtime_args.b_bytes : 0;
    return tiles * runtime_args.out_bytes + indices;
}

static void configure(void) {
    uint32_t flags = runtime_args.flags, rows = runtime_args.faces * runtime_args.face_rows;
    uint32_t exponents = has_exponents(runtime_args.out) ? (rows + 15) / 16 : 0;
    configure_pack_registers();
    cfg_write(STACC_RELU_ApplyRelu_ADDR32,
              CFG(STACC_RELU_ApplyRelu, runtime_args.relu & 15) |
                  CFG(STACC_RELU_ReluThreshold, runtime_args.relu >> 16));
    TT_RMWCIB2((THCON_SEC0_REG1_Pack_L1_Acc_MASK | THCON_SEC0_REG1_Pac_LF8_4b_exp_MASK) >> 16,
                (CFG(THCON_SEC0_REG1_Pack_L1_Acc, runtime_args.l1_acc) |
                 CFG(THCON_SEC0_REG1_Pac_LF8_4b_exp, (flags & E4M3_OUT) != 0)) >> 16,
               THCON_SEC0_REG1_Pack_L1_Acc_ADDR32);
    cfg_write(THCON_SEC0_REG1_Row_start_section_size_ADDR32,
              CFG(THCON_SEC0_REG1_Exp_section_size, exponents));
    cfg_write(PCK_DEST_RD_CTRL_Read_32b_data_ADDR32,
              CFG(PCK_DEST_RD_CTRL_Read_32b_data, runtime_args.dst32) |
                  CFG(PCK_DEST_RD_CTRL_Read_unsigned, (flags & UNSIGNED_OUT) != 0) |
                  CFG(PCK_DEST_RD_CTRL_Round_10b_mant, (flags & ROUND_10_BITS) != 0) |
                  CFG(PCK_DEST_RD_CTRL_Read_int8, (flags & READ_INT8) != 0));
    cfg_write(THCON_SEC0_REG1_Disable_zero_compress_ADDR32,
              CFG(THCON_SEC0_REG1_Disable_zero_compress, 1) |
                  CFG(THCON_SEC0_REG1_Out_data_format, runtime_args.out) |
                  CFG(THCON_SEC0_REG1_In_data_format, runtime_args.dst));
    configure_pack_counters();
    TTI_SETC16(ADDR_MOD_PACK_SEC3_YsrcIncr_ADDR32, CFG(ADDR_MOD_PACK_SEC3_YsrcIncr, 1));
    uint32_t width = runtime_args.dst & 3;
    configure_order(16 * (width == 0 ? 4 : width == 1 ? 2 : 1));
}

/* Up to four rows per PACR: address mode 0 goes on by four, 2 to the next face, 1 back to the
 * start. The last PACR of a face takes the rows that are left. */
static void pack_faces(void) {
    uint32_t steps = (runtime_args.face_rows + 3) / 4;
    uint32_t left = runtime_args.face_rows % 4;
    for (uint32_t face = 0; face < runtime_args.faces; face++) {
        for (uint32_t i = 0; i < steps - 1; i++) {
            TTI_PACR(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
        }
        uint32_t last = face == runtime_args.faces - 1;
        TT_PUSH(TTO_PACR | TTF_PACR_read_intf_sel((1u << left) - 1) |
                TTF_PACR_addr_mode(last ? 1 : 2) | TTF_PACR_last(last));
    }
}

static void set_pack_formats(uint32_t in, uint32_t out) {
    TTI_STALLWAIT(STALL_CFG, WAIT_PACK);
    TT_RMWCIB0(THCON_SEC0_REG1_Out_data_format_MASK,    CFG(THCON_SEC0_REG1_Out_data_format, out),
               THCON_SEC0_REG1_Out_data_format_ADDR32);
    TT_RMWCIB1(THCON_SEC0_REG1_In_data_format_MASK >> 8,
               CFG(THCON_SEC0_REG1_In_data_format, in) >> 8,
               THCON_SEC0_REG1_In_data_format_ADDR32);
    TT_RMWCIB3(ALU_FORMAT_SPEC_REG2_Dstacc_MASK>>24,CFG(ALU_FORMAT_SPEC_REG2_Dstacc, in) >> 24,
               ALU_FORMAT_SPEC_REG2_Dstacc_ADDR32);
}

/* The first tile of values in Dst, then the first one of indices. */
static void pack_topk(uint32_t address, uint32_t half) {
    pack_faces();
    set_pack_formats(FORMAT_UINT16, FORMAT_UINT16);
    set_pack_output(address + runtime_args.out_bytes, half);
    TTI_SETADCZW(PACKER, 0, 0, 2, 0, 2);
    pack_faces();
    TTI_SETADCZW(PACKER, 0, 0, 0, 0, 2);
    set_pack_formats(runtime_args.dst, runtime_args.out);
}

static void pack_in_order(uint32_t address, uint32_t half) {
    switch (runtime_args.pack) {
    case PACK_UNTILIZE:
        pack_rows();
        break;
    case PACK_BLOCK_UNTILIZE:
    case PACK_BLOCK_DENSE:
        pack_block_untilize();
        break;
    case PACK_FAST_TILIZE:
        pack_fast_tilize();
        break;
    case PACK_FAST_UNTILIZE:
        pack_fast_untilize();
        break;
    case PACK_TOPK:
        pack_topk(address, half);
        break;
    default:
        pack_faces();
        break;
    }
}

static void pack_tile(uint32_t address, uint32_t half) {
    TTI_SEMWAIT(STALL_TDMA, SEM_SEL(SEMAPHORE_MATH_PACK), SEMWAIT_WHILE_ZERO);
    set_pack_output(address, half);
    pack_in_order(address, half);
    TTI_STALLWAIT(STALL_MATH, WAIT_PACK);
    TT_ZEROACC(/* half */2, runtime_args.dst32, 0, 0, half);
    TTI_STALLWAIT(STALL_SYNC, WAIT_PACK | WAIT_MATH);
    TTI_SEMGET(SEM_SEL(SEMAPHORE_MATH_PACK));
}

int main(void) {
    configure();
    load_and_wait(TENSIX_CFG_BASE + 4 * STACC_RELU_ApplyRelu_ADDR32);
    mailboxes.configured = 1;
    for (uint32_t i = 0; i < runtime_args.tiles; i++) {
        uint32_t at = runtime_args.l1_acc ? 0 : i;
        pack_tile(runtime_args.c + at * bytes_per_pass(), i % 2);
    }
    complete(2);
    return 0;
}
