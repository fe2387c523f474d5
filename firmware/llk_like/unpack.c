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

static uint32_t is_fast_tilize(void) { return runtime_args.unpack == UNPACK_FAST_TILIZE; }

static uint32_t has_flag(uint32_t flag) { return (runtime_args.flags & flag) != 0; }

static uint32_t face_datums(void) { return 16 * runtime_args.face_rows; }

static uint32_t x_dimension(void) {
    return is_tilize()        ? TILE_DATUMS
           : is_untilize()    ? 16
           : is_fast_tilize() ? 32
                              : face_datums();
}

/* Datums that an UNPACR of unpacker 0 takes. */
static uint32_t burst_of_a(void) {
    uint32_t mode = runtime_args.unpack;
    if (mode == UNPACK_AB || mode == UNPACK_B_FACES || is_tilize() || mode == UNPACK_TO_DST) {
        return TILE_DATUMS;
    }
    return is_untilize() ? FACE_DATUMS : is_fast_tilize() ? 32 * runtime_args.width : face_datums();
}

/* Bytes of a row of SrcA, as unpacker 0 counts its target in the source format. */
static uint32_t srca_row_bytes(void) {
    uint32_t width = runtime_args.src & 3;
    return 16 * (width == 0 ? 4 : width == 1 ? 2 : 1);
}

static void configure_formats(void) {
    uint32_t src = runtime_args.src;
    uint32_t to_dst = runtime_args.unpack == UNPACK_TO_DST;
    uint32_t y_dim = is_untilize() ? 16 : is_fast_tilize() ? runtime_args.width : 1;
    uint32_t z_dim = is_tilize() ? 1 : is_fast_tilize() ? 16 : runtime_args.faces;
    uint32_t z_dim_a = runtime_args.unpack == UNPACK_B_FACES ? FACES : z_dim;
    uint32_t descriptor = runtime_args.in | 1u << 4;
    uint32_t transposed = runtime_args.unpack == UNPACK_A_TRANSPOSED ||
                          runtime_args.unpack == UNPACK_TOPK ||
                          (runtime_args.unpack == UNPACK_REDUCE && (runtime_args.reduce & 1));
    cfg_write(ALU_FORMAT_SPEC_REG0_SrcA_ADDR32,
              CFG(ALU_FORMAT_SPEC_REG0_SrcA, src) | CFG(ALU_FORMAT_SPEC_REG1_SrcB, src) |
                  CFG(ALU_FORMAT_SPEC_REG2_Dstacc, runtime_args.dst) |
                  CFG(ALU_FORMAT_SPEC_REG0_SrcAUnsigned, has_flag(UNSIGNED_IN)) |
                  CFG(ALU_FORMAT_SPEC_REG0_SrcBUnsigned, has_flag(UNSIGNED_IN)) |
                  CFG(ALU_ACC_CTRL_Fp32_enabled, runtime_args.dst32) |
                  CFG(ALU_ACC_CTRL_SFPU_Fp32_enabled, runtime_args.dst32) |
                  CFG(ALU_ACC_CTRL_INT8_math_enabled, runtime_args.int8));
    /* uint16 is raw bits: what would be a denormal as bf16 must not become zero. The packer has
     * bits of its own in this word, and in the one of unpacker 0's fp8. */
    TT_RMWCIB0(ALU_ACC_CTRL_Zero_Flag_disabled_src_MASK,
                CFG(ALU_ACC_CTRL_Zero_Flag_disabled_src,
                    src == FORMAT_UINT16 || runtime_args.unpack == UNPACK_TOPK),
               ALU_ACC_CTRL_Zero_Flag_disabled_src_ADDR32);
    cfg_write(THCON_SEC0_REG0_TileDescriptor_ADDR32, descriptor | x_dimension() << 16);
    cfg_write(THCON_SEC0_REG0_TileDescriptor_ADDR32 + 1, y_dim | z_dim_a << 16);
    cfg_write(THCON_SEC1_REG0_TileDescriptor_ADDR32, descriptor | x_dimension() << 16);
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
    TT_RMWCIB2(THCON_SEC0_REG1_Unp_LF8_4b_exp_MASK >> 16,
                CFG(THCON_SEC0_REG1_Unp_LF8_4b_exp, has_flag(E4M3_IN)) >> 16,
               THCON_SEC0_REG1_Unp_LF8_4b_exp_ADDR32);
    cfg_write(THCON_SEC1_REG1_Unp_LF8_4b_exp_ADDR32,
              CFG(THCON_SEC1_REG1_Unp_LF8_4b_exp, has_flag(E4M3_IN)));
}

static void configure_addresses(void) {
    uint32_t x_dim = runtime_args.unpack == UNPACK_B_FACES ? FACE_DATUMS : x_dimension();
    uint32_t to_dst = runtime_args.unpack == UNPACK_TO_DST;
    uint32_t burst_of_b = runtime_args.unpack == UNPACK_AB ? TILE_DATUMS : face_datums();
    /* The destination index of unpacker 0 counts from four rows before SrcA. */
    cfg_write(THCON_SEC0_REG5_Dest_cntx0_address_ADDR32,
              CFG(THCON_SEC0_REG5_Dest_cntx0_address, 4 * 16) |
                  CFG(THCON_SEC0_REG5_Dest_cntx1_address, 4 * 16));
    cfg_write(THCON_SEC0_REG5_Tile_x_dim_cntx0_ADDR32,
              CFG(THCON_SEC0_REG5_Tile_x_dim_cntx0, x_dim) |
                  CFG(THCON_SEC0_REG5_Tile_x_dim_cntx1, x_dim));
    cfg_write(THCON_SEC0_REG7_Offset_address_ADDR32, 0);
    cfg_write(UNP0_ADD_DEST_ADDR_CNTR_add_dest_addr_cntr_ADDR32,
              CFG(UNP0_ADD_DEST_ADDR_CNTR_add_dest_addr_cntr, is_untilize() || is_fast_tilize()));
    cfg_write(UNP0_ADDR_CTRL_XY_REG_1_Ystride_ADDR32,
              CFG(UNP0_ADDR_CTRL_XY_REG_1_Ystride, is_untilize() ? srca_row_bytes() : 0));
    cfg_write(UNP0_ADDR_CTRL_ZW_REG_1_Zstride_ADDR32,
              CFG(UNP0_ADDR_CTRL_ZW_REG_1_Zstride, is_fast_tilize() ? 8 * srca_row_bytes() : 0));
    cfg_write(UNP1_ADDR_CTRL_ZW_REG_1_Zstride_ADDR32,
              CFG(UNP1_ADDR_CTRL_ZW_REG_1_Zstride, FACE_ROWS * srca_row_bytes()));
    TT_SETC16(SRCA_SET_SetOvrdWithAddr_ADDR32, CFG(SRCA_SET_SetOvrdWithAddr, !to_dst));
    TTI_SETADCXY(BOTH_UNPACKERS, 0, 0, 0, 0, 0xF);
    TTI_SETADCZW(BOTH_UNPACKERS, 0, 0, 0, 0, 0xF);
    TT_SETADCXX(1u, burst_of_a() - 1, 0); /* UNPACKER0 */
    TT_SETADCXX(UNPACKER1, burst_of_b - 1, 0);
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
    THREAD_CFG(CFG(UNPACK_MISC_CFG_CfgContextOffset_0, context) |
                   CFG(UNPACK_MISC_CFG_CfgContextOffset_1, context),
               UNPACK_MISC_CFG_CfgContextOffset_0_ADDR32);
    TTI_STALLWAIT(STALL_UNPACK, WAIT_TRISC_CFG);
}

static void end(void) {
    TTI_STALLWAIT(STALL_SYNC, WAIT_UNPACK0 | WAIT_UNPACK1);
    TTI_SEMGET(SEM_SEL(SEMAPHORE_UNPACK_SYNC));
    context ^= 1;
}

/* Math waits for SrcA alone and clears both. The second word waits until math has released SrcB's
 * bank before; as in tt-llk nothing but its pace brings it in before math's next release. */
static void unpack_srca_alone(void) {
    TTI_UNPACR(0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1);
    TTI_UNPACR_NOP(1, 0, 0, 1, 0, 0, 0, 0, 1);
}

static void unpack_pair(void) {
    TTI_UNPACR(1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1);
    TTI_UNPACR(0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1);
}

/* Faces 0 top left, 1 top right, 2 bottom left, 3 bottom right; `exchange` takes 0, 2, 1, 3. */
static void unpack_faces(uint32_t exchange, uint32_t with_b) {
    for (uint32_t i = 0; i < runtime_args.faces; i++) {
        uint32_t face = exchange ? i >> 1 | (i & 1) << 1 : i;
        TT_SETADCZW(UNPACKER0, 0, 0, 0, face, 1);
        if (with_b) {
            unpack_pair();
        } else {
            unpack_srca_alone();
        }
    }
}

static void unpack_face_pairs(void) {
    for (uint32_t face = 0; face < runtime_args.faces; face++) {
        TT_SETADCZW(BOTH_UNPACKERS, 0, 0, 0, face, 1);
        unpack_pair();
    }
}

static void unpack_srca_only(void) {
    for (uint32_t face = 0; face < runtime_args.faces; face++) {
        TT_SETADCZW(UNPACKER0, 0, 0, 0, face, 1);
        TTI_UNPACR(0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1);
    }
}

/* The faces of B lie 16 rows apart in SrcB, however few rows they have; the last hands it over. */
static void unpack_b_faces(void) {
    TTI_UNPACR(0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1);
    for (uint32_t face = 0; face < runtime_args.faces; face++) {
        TT_SETADCZW(UNPACKER1, 0, face, 0, face, 5);
        if (face + 1 < runtime_args.faces) {
            TTI_UNPACR(1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1);
        } else {
            TTI_UNPACR(1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1);
        }
    }
}

/* A row of `width` tiles becomes 2 * width rows of SrcA, in a place for 8; every eighth UNPACR
 * hands over a bank. A MOP of template 0, whose mask tells which. */
static void program_fast_tilize(void) {
    uint32_t row = TTO_UNPACR | TTF_UNPACR_last(1) | TTF_UNPACR_addr_mode(0x11) |
                   TTF_UNPACR_ovrd_thread_id(1);
    mop_sync();
    store(MOP_CFG_BASE + 0x04, 0); /* one word for a 0 of the mask, one for a 1 */
    store(MOP_CFG_BASE + 0x0C, row);
    store(MOP_CFG_BASE + 0x1C, row | TTF_UNPACR_set_dat_valid(1));
}

static void unpack_fast_tilize(void) {
    TTI_SETADCXY(UNPACKER0, 0, 0, 0, 0, 3);
    TTI_SETADCZW(UNPACKER0, 0, 0, 0, 0, 0xF);
    TTI_MOP_CFG(0x8080);
    TTI_MOP(0, 31, 0x8080);
}

/* One row of the left face and one of the right make a row of the tile. Every word unpacks a whole
 * face's worth of datums from its row on; all but the first 16 are overwritten by the next words.
 * The last word, 16 rows further on, only hands the bank over. */
static void unpack_row_by_row(void) {
    for (uint32_t row = 0; row < 32; row++) {
        TT_SETADCZW(UNPACKER0, 0, 0, 0, row >> 4 << 1, 1);
        if ((row & 15) == 0) {
            TTI_SETADCXY(UNPACKER0, 0, 0, 0, 0, 2);
        }
        TTI_UNPACR(0, 0x41, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1); /* next face, next row of SrcA */
        TTI_UNPACR(0, 0x41, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1);
        TTI_INCADCXY(UNPACKER0, 0, 0, 1, 0);
        if ((row & 7) == 7) {
            unpack_srca_alone();
            TTI_SETADCXY(UNPACKER0, 0, 0, 0, 0, 8);
        }
    }
}

static void unpack_tile(uint32_t a, uint32_t b) {
    uint32_t mode = runtime_args.unpack;
    begin(a, b);
    if (mode == UNPACK_AB) {
        unpack_pair();
    } else if (mode == UNPACK_FACE_PAIRS) {
        unpack_face_pairs();
    } else if (mode == UNPACK_B_FACES) {
        unpack_b_faces();
    } else if (mode == UNPACK_A_ONLY) {
        unpack_srca_only();
    } else if (mode == UNPACK_FAST_TILIZE) {
        unpack_fast_tilize();
    } else if (mode == UNPACK_TILIZE) {
        unpack_srca_alone();
    } else if (mode == UNPACK_UNTILIZE) {
        unpack_row_by_row();
    } else if (mode == UNPACK_REDUCE) {
        unpack_faces(!(runtime_args.reduce & 1), 1);
    } else if (mode == UNPACK_TO_DST) {
        TTI_UNPACR(0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1);
    } else {
        uint32_t exchange = mode == UNPACK_A_TRANSPOSED || mode == UNPACK_A_EXCHANGED;
        unpack_faces(exchange || mode == UNPACK_TOPK, 0);
        if (mode == UNPACK_A_EXCHANGED) { /* a bank of SrcB for math's own use */
            unpack_srca_alone();
        }
    }
    end();
    if (mode == UNPACK_TO_DST) {
        TTI_SEMPOST(SEM_SEL(SEMAPHORE_UNPACK_TO_DST));
    }
}

/* The format of the next tiles of unpacker 0, in L1 and in SrcA. */
static void set_format_of_a(uint32_t format) {
    TTI_STALLWAIT(STALL_CFG, WAIT_UNPACK0);
    TT_RMWCIB0(0xF, format, THCON_SEC0_REG0_TileDescriptor_ADDR32);
    TT_RMWCIB0(THCON_SEC0_REG2_Out_data_format_MASK, format,
               THCON_SEC0_REG2_Out_data_format_ADDR32);
}

/* Two tiles of values and their indices, then one of each at a time. */
static void unpack_topk(void) {
    for (uint32_t i = 0; i < runtime_args.tiles; i++) {
        uint32_t a = runtime_args.a + i * runtime_args.inner * runtime_args.in_bytes;
        uint32_t b = runtime_args.b + i * runtime_args.inner * runtime_args.b_bytes;
        for (uint32_t k = 0; k < runtime_args.inner; k++) {
            set_format_of_a(runtime_args.in);
            unpack_tile(a + k * runtime_args.in_bytes, a);
            set_format_of_a(FORMAT_UINT16);
            unpack_tile(b + k * runtime_args.b_bytes, b);
        }
    }
}

int main(void) {
    uint32_t pairs = runtime_args.tiles * runtime_args.inner;
    tensix_sync(); /* stores to semaphores do not wait for the SEMINITs that BRISC has pushed */
    while (mailboxes.configured == 0) {
        fence();
    }
    configure_formats();
    configure_addresses();
    if (is_fast_tilize()) {
        program_fast_tilize();
    }
    if (runtime_args.unpack == UNPACK_TOPK) {
        unpack_topk();
        pairs = 0;
    }
    for (uint32_t i = 0; i < pairs; i++) {
        uint32_t offset = i * runtime_args.in_bytes;
        uint32_t scaler = runtime_args.unpack == UNPACK_REDUCE ? 0 : i * runtime_args.b_bytes;
        unpack_tile(runtime_args.a + offset, runtime_args.b + scaler);
        if (runtime_args.unpack == UNPACK_A_THEN_B) {
            unpack_tile(runtime_args.b + offset, runtime_args.b + offset);
        }
    }
    complete(0);
    return 0;
}
