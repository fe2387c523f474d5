/* TRISC0: unpacks the operands' tiles, whole or face by face, in the formats the host names. */
#include "lib/tile.h"
#include "llk_like/kernel.h"

#define UNPACKER0 1u
#define UNPACKER1 2u
#define BOTH_UNPACKERS 3u
#define UNPACK_CONTEXTS 2u
#define WAIT_UNPACK1 0x004u
#define FORMAT_UINT16 9u

static uint32_t context; /* 0 or 1: the configuration context of the next unpack */

static uint32_t is_tilize(void) { return runtime_args.unpack == UNPACK_TILIZE; }

/* Bytes of 32 datums, one row of a row-major tile, in units of 16. */
static uint32_t row_units(void) { return runtime_args.in_bytes / 32 / 16; }

static uint32_t is_untilize(void) { return runtime_args.unpack == UNPACK_UNTILIZE; }

static uint32_t x_dimension(void) {
    return is_tilize() ? TILE_DATUMS : is_untilize() ? 16 : FACE_DATUMS;
}

/* Bytes of a row of SrcA, as unpacker 0 counts its target in the source format. */
static uint32_t srca_row_bytes(void) {
    uint32_t width = runtime_args.src & 3;
    return 16 * (width == 0 ? 4 : width == 1 ? 2 : 1);
}

static void configure_formats(void) {
    uint32_t src = runtime_args.src;
    uint32_t to_dst = runtime_args.unpack == UNPACK_TO_DST;
    uint32_t y_dim = is_untilize() ? 16 : 1;
    uint32_t z_dim = is_tilize() ? 1 : FACES;
    uint32_t descriptor = runtime_args.in | 1u << 4 | x_dimension() << 16;
    uint32_t transposed = runtime_args.unpack == UNPACK_A_TRANSPOSED ||
                          (runtime_args.unpack == UNPACK_REDUCE && (runtime_args.reduce & 1));
    cfg_write(ALU_FORMAT_SPEC_REG0_SrcA_ADDR32,
              CFG(ALU_FORMAT_SPEC_REG0_SrcA, src) | CFG(ALU_FORMAT_SPEC_REG1_SrcB, src) |
                  CFG(ALU_FORMAT_SPEC_REG2_Dstacc, runtime_args.dst) |
                  CFG(ALU_ACC_CTRL_Fp32_enabled, runtime_args.dst32) |
                  CFG(ALU_ACC_CTRL_SFPU_Fp32_enabled, runtime_args.dst32) |
                  CFG(ALU_ACC_CTRL_INT8_math_enabled, runtime_args.int8));
    /* uint16 is raw bits: what would be a denormal as bf16 must not become zero. */
    cfg_write(ALU_ACC_CTRL_Zero_Flag_disabled_src_ADDR32,
              CFG(ALU_ACC_CTRL_Zero_Flag_disabled_src, src == FORMAT_UINT16));
    cfg_write(THCON_SEC0_REG0_TileDescriptor_ADDR32, descriptor);
    cfg_write(THCON_SEC0_REG0_TileDescriptor_ADDR32 + 1, y_dim | z_dim << 16);
    cfg_write(THCON_SEC1_REG0_TileDescriptor_ADDR32, descriptor);
    cfg_write(THCON_SEC1_REG0_TileDescriptor_ADDR32 + 1, 1u | z_dim << 16);
    cfg_write(THCON_SEC0_REG2_Out_data_format_ADDR32,
              CFG(THCON_SEC0_REG2_Out_data_format, src) |
                  CFG(THCON_SEC0_REG2_Throttle_mode, 2) |
                  CFG(THCON_SEC0_REG2_Tileize_mode, is_tilize()) |
                  CFG(THCON_SEC0_REG2_Shift_amount_cntx0, is_tilize() ? row_units() & 15 : 0) |
                  CFG(THCON_SEC0_REG2_Shift_amount_cntx1, is_tilize() ? row_units() >> 4 : 0) |
                  CFG(THCON_SEC0_REG2_Haloize_mode, transposed));
    cfg_write(THCON_SEC1_REG2_Out_data_format_ADDR32,
              CFG(THCON_SEC1_REG2_Out_data_format, src) |
                  CFG(THCON_SEC1_REG2_Throttle_mode, 2));
    cfg_write(THCON_SEC0_REG2_Disable_zero_compress_cntx0_ADDR32,
              CFG(THCON_SEC0_REG2_Disable_zero_compress_cntx0, 1) |
                  CFG(THCON_SEC0_REG2_Disable_zero_compress_cntx1, 1) |
                  CFG(THCON_SEC0_REG2_Unpack_if_sel_cntx0, to_dst) |
                  CFG(THCON_SEC0_REG2_Unpack_if_sel_cntx1, to_dst));
    cfg_write(THCON_SEC1_REG2_Disable_zero_compress_cntx0_ADDR32,
              CFG(THCON_SEC1_REG2_Disable_zero_compress_cntx0, 1) |
                  CFG(THCON_SEC1_REG2_Disable_zero_compress_cntx1, 1));
}

static void configure_addresses(void) {
    uint32_t x_dim = x_dimension();
    uint32_t to_dst = runtime_args.unpack == UNPACK_TO_DST;
    uint32_t whole = runtime_args.unpack == UNPACK_AB || is_tilize() || to_dst;
    /* The destination index of unpacker 0 counts from four rows before SrcA. */
    cfg_write(THCON_SEC0_REG5_Dest_cntx0_address_ADDR32,
              CFG(THCON_SEC0_REG5_Dest_cntx0_address, 4 * 16) |
                  CFG(THCON_SEC0_REG5_Dest_cntx1_address, 4 * 16));
    cfg_write(THCON_SEC0_REG5_Tile_x_dim_cntx0_ADDR32,
              CFG(THCON_SEC0_REG5_Tile_x_dim_cntx0, x_dim) |
                  CFG(THCON_SEC0_REG5_Tile_x_dim_cntx1, x_dim));
    cfg_write(THCON_SEC0_REG7_Offset_address_ADDR32, 0);
    cfg_write(UNP0_ADD_DEST_ADDR_CNTR_add_dest_addr_cntr_ADDR32,
              CFG(UNP0_ADD_DEST_ADDR_CNTR_add_dest_addr_cntr, is_untilize()));
    cfg_write(UNP0_ADDR_CTRL_XY_REG_1_Ystride_ADDR32,
              CFG(UNP0_ADDR_CTRL_XY_REG_1_Ystride, is_untilize() ? srca_row_bytes() : 0));
    TTP_SETC16(CFG(SRCA_SET_SetOvrdWithAddr, !to_dst), SRCA_SET_SetOvrdWithAddr_ADDR32);
    TTI_SETADCXY(0xF, 0, 0, 0, 0, BOTH_UNPACKERS);
    TTI_SETADCZW(0xF, 0, 0, 0, 0, BOTH_UNPACKERS);
    TTP_SETADCXX(0, (whole ? TILE_DATUMS : FACE_DATUMS) - 1, UNPACKER0);
    TTP_SETADCXX(0, (whole ? TILE_DATUMS : FACE_DATUMS) - 1, UNPACKER1);
}

/* Stores both bases, less 1 for the tile header, in the free context, and selects it. */
static void begin(uint32_t a, uint32_t b) {
    while (semaphore_read(SEMAPHORE_UNPACK_SYNC) >= UNPACK_CONTEXTS) {
    }
    cfg_write(context ? THCON_SEC0_REG3_Base_cntx1_address_ADDR32
                      : THCON_SEC0_REG3_Base_address_ADDR32,
              (a >> 4) - 1);
    cfg_write(context ? THCON_SEC1_REG3_Base_cntx1_address_ADDR32
                      : THCON_SEC1_REG3_Base_address_ADDR32,
              (b >> 4) - 1);
    semaphore_post(SEMAPHORE_UNPACK_SYNC);
    TTP_SETC16(CFG(UNPACK_MISC_CFG_CfgContextOffset_0, context) |
                   CFG(UNPACK_MISC_CFG_CfgContextOffset_1, context),
               UNPACK_MISC_CFG_CfgContextOffset_0_ADDR32);
    TTI_STALLWAIT(WAIT_TRISC_CFG, STALL_UNPACK);
}

static void end(void) {
    TTI_STALLWAIT(WAIT_UNPACK0 | WAIT_UNPACK1, STALL_SYNC);
    TTI_SEMGET(SEM_SEL(SEMAPHORE_UNPACK_SYNC));
    context ^= 1;
}

/* Math waits for SrcA alone and clears both. The second word waits until math has released SrcB's
 * bank before; as in tt-llk nothing but its pace brings it in before math's next release. */
static void unpack_srca_alone(void) {
    TTI_UNPACR(1, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0);
    TTI_UNPACR_NOP(1, 0, 0, 0, 0, 1, 0, 0, 1);
}

static void unpack_pair(void) {
    TTI_UNPACR(1, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1);
    TTI_UNPACR(1, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0);
}

/* Faces 0 top left, 1 top right, 2 bottom left, 3 bottom right; `exchange` takes 0, 2, 1, 3. */
static void unpack_faces(uint32_t exchange, uint32_t with_b) {
    for (uint32_t i = 0; i < FACES; i++) {
        uint32_t face = exchange ? i >> 1 | (i & 1) << 1 : i;
        TTP_SETADCZW(1, face, 0, 0, 0, UNPACKER0);
        if (with_b) {
            unpack_pair();
        } else {
            unpack_srca_alone();
        }
    }
}

/* One row of the left face and one of the right make a row of the tile. Every word unpacks a whole
 * face's worth of datums from its row on; all but the first 16 are overwritten by the next words.
 * The last word, 16 rows further on, only hands the bank over. */
static void unpack_row_by_row(void) {
    for (uint32_t row = 0; row < 32; row++) {
        TTP_SETADCZW(1, row >> 4 << 1, 0, 0, 0, UNPACKER0);
        if ((row & 15) == 0) {
            TTI_SETADCXY(2, 0, 0, 0, 0, UNPACKER0);
        }
        TTI_UNPACR(1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x41, 0); /* next face, next row of SrcA */
        TTI_UNPACR(1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x41, 0);
        TTI_INCADCXY(0, 1, 0, 0, UNPACKER0);
        if ((row & 7) == 7) {
            unpack_srca_alone();
            TTI_SETADCXY(8, 0, 0, 0, 0, UNPACKER0);
        }
    }
}

static void unpack_tile(uint32_t a, uint32_t b) {
    uint32_t mode = runtime_args.unpack;
    begin(a, b);
    if (mode == UNPACK_AB) {
        unpack_pair();
    } else if (mode == UNPACK_TILIZE) {
        unpack_srca_alone();
    } else if (mode == UNPACK_UNTILIZE) {
        unpack_row_by_row();
    } else if (mode == UNPACK_REDUCE) {
        unpack_faces(!(runtime_args.reduce & 1), 1);
    } else if (mode == UNPACK_TO_DST) {
        TTI_UNPACR(1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0);
    } else {
        unpack_faces(mode == UNPACK_A_TRANSPOSED || mode == UNPACK_A_EXCHANGED, 0);
        if (mode == UNPACK_A_EXCHANGED) { /* a bank of SrcB for math's own use */
            unpack_srca_alone();
        }
    }
    end();
    if (mode == UNPACK_TO_DST) {
        TTI_SEMPOST(SEM_SEL(SEMAPHORE_UNPACK_TO_DST));
    }
}

int main(void) {
    uint32_t pairs = runtime_args.tiles * runtime_args.inner;
    configure_formats();
    configure_addresses();
    for (uint32_t i = 0; i < pairs; i++) {
        uint32_t offset = i * runtime_args.in_bytes;
        uint32_t scaler = runtime_args.unpack == UNPACK_REDUCE ? 0 : offset;
        unpack_tile(runtime_args.a + offset, runtime_args.b + scaler);
        if (runtime_args.unpack == UNPACK_A_THEN_B) {
            unpack_tile(runtime_args.b + offset, runtime_args.b + offset);
        }
    }
    complete(0);
    return 0;
}
