/* TRISC0's part of a kernel with two operands: whole tiles to SrcA and SrcB, in pairs. */
#pragma once

#include "lib/tensix.h"
#include "lib/tile.h"

#define UNPACKER0 1u
#define UNPACKER1 2u
#define BOTH_UNPACKERS 3u
#define UNPACK_CONTEXTS 2u

#define WAIT_UNPACK1 0x004u

/* Tile descriptor, first two words: format, uncompressed, x dimension; y and z dimension. */
#define TILE_DESCRIPTOR_0(format) ((format) | 1u << 4 | FACE_DATUMS << 16)
#define TILE_DESCRIPTOR_1 (1u | FACES << 16)

/* What unpacker 0 reads from L1 and what it writes to SrcA. */
static inline void set_srca_format(uint32_t in, uint32_t out) {
    cfg_write(THCON_SEC0_REG0_TileDescriptor_ADDR32, TILE_DESCRIPTOR_0(in));
    cfg_write(THCON_SEC0_REG2_Out_data_format_ADDR32,
              CFG(THCON_SEC0_REG2_Out_data_format, out) | CFG(THCON_SEC0_REG2_Throttle_mode, 2));
}

static inline void configure_unpack_formats(uint32_t format, uint32_t fp32_dst) {
    cfg_write(ALU_FORMAT_SPEC_REG0_SrcA_ADDR32,
              CFG(ALU_FORMAT_SPEC_REG0_SrcA, format) | CFG(ALU_FORMAT_SPEC_REG1_SrcB, format) |
                  CFG(ALU_FORMAT_SPEC_REG2_Dstacc, FORMAT_FLOAT16_B) |
                  CFG(ALU_ACC_CTRL_Fp32_enabled, fp32_dst));
    set_srca_format(format, format);
    cfg_write(THCON_SEC0_REG0_TileDescriptor_ADDR32 + 1, TILE_DESCRIPTOR_1);
    cfg_write(THCON_SEC1_REG0_TileDescriptor_ADDR32, TILE_DESCRIPTOR_0(format));
    cfg_write(THCON_SEC1_REG0_TileDescriptor_ADDR32 + 1, TILE_DESCRIPTOR_1);
    cfg_write(THCON_SEC1_REG2_Out_data_format_ADDR32,
              CFG(THCON_SEC1_REG2_Out_data_format, format) |
                  CFG(THCON_SEC1_REG2_Throttle_mode, 2));
    cfg_write(THCON_SEC0_REG2_Disable_zero_compress_cntx0_ADDR32,
              CFG(THCON_SEC0_REG2_Disable_zero_compress_cntx0, 1) |
                  CFG(THCON_SEC0_REG2_Disable_zero_compress_cntx1, 1));
    cfg_write(THCON_SEC1_REG2_Disable_zero_compress_cntx0_ADDR32,
              CFG(THCON_SEC1_REG2_Disable_zero_compress_cntx0, 1) |
                  CFG(THCON_SEC1_REG2_Disable_zero_compress_cntx1, 1));
}

/* One UNPACR takes all 1024 datums: the four faces follow each other in L1 and in the bank. */
static inline void configure_unpack_addresses(void) {
    /* The destination index of unpacker 0 counts from four rows before SrcA. */
    cfg_write(THCON_SEC0_REG5_Dest_cntx0_address_ADDR32,
              CFG(THCON_SEC0_REG5_Dest_cntx0_address, 4 * 16) |
                  CFG(THCON_SEC0_REG5_Dest_cntx1_address, 4 * 16));
    cfg_write(THCON_SEC0_REG5_Tile_x_dim_cntx0_ADDR32,
              CFG(THCON_SEC0_REG5_Tile_x_dim_cntx0, FACE_DATUMS) |
                  CFG(THCON_SEC0_REG5_Tile_x_dim_cntx1, FACE_DATUMS));
    cfg_write(THCON_SEC0_REG7_Offset_address_ADDR32, 0);
    TTI_SETC16(SRCA_SET_SetOvrdWithAddr_ADDR32, CFG(SRCA_SET_SetOvrdWithAddr, 1));
    TTI_SETADCXY(BOTH_UNPACKERS, 0, 0, 0, 0, 0xF);
    TTI_SETADCZW(BOTH_UNPACKERS, 0, 0, 0, 0, 0xF);
    TTI_SETADCXX(UNPACKER0, TILE_DATUMS - 1, 0);
    TTI_SETADCXX(UNPACKER1, TILE_DATUMS - 1, 0);
}

/* Both operands of one format; Dst of 16 or, with `fp32_dst` 1, of 32 bits. */
static inline void configure_unpack_as(uint32_t format, uint32_t fp32_dst) {
    configure_unpack_formats(format, fp32_dst);
    configure_unpack_addresses();
}

static inline void configure_unpack(void) { configure_unpack_as(FORMAT_FLOAT16_B, 0); }

/* Both unpackers add 1 to the base for a tile header. */
static inline void write_bases(uint32_t srca, uint32_t srcb, uint32_t context) {
    cfg_write(context ? THCON_SEC0_REG3_Base_cntx1_address_ADDR32
                      : THCON_SEC0_REG3_Base_address_ADDR32,
              (srca >> 4) - 1);
    cfg_write(context ? THCON_SEC1_REG3_Base_cntx1_address_ADDR32
                      : THCON_SEC1_REG3_Base_address_ADDR32,
              (srcb >> 4) - 1);
}

/* Waits for a context, stores the two addresses in it and lets the unpackers use it. */
static inline void acquire_context(uint32_t srca, uint32_t srcb, uint32_t context) {
    while (semaphore_read(SEMAPHORE_UNPACK_SYNC) >= UNPACK_CONTEXTS) {
    }
    write_bases(srca, srcb, context);
    semaphore_post(SEMAPHORE_UNPACK_SYNC);
    THREAD_CFG(CFG(UNPACK_MISC_CFG_CfgContextOffset_0, context) |
                   CFG(UNPACK_MISC_CFG_CfgContextOffset_1, context),
               UNPACK_MISC_CFG_CfgContextOffset_0_ADDR32);
    TTI_STALLWAIT(STALL_UNPACK, WAIT_TRISC_CFG);
}

static inline void release_context(void) {
    TTI_STALLWAIT(STALL_SYNC, WAIT_UNPACK0 | WAIT_UNPACK1);
    TTI_SEMGET(SEM_SEL(SEMAPHORE_UNPACK_SYNC));
}

/* last, set_dat_valid, ovrd_thread_id */
#define UNPACK_TO_SRCA() TTI_UNPACR(0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1)
#define UNPACK_TO_SRCB() TTI_UNPACR(1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1)

/* Unpacks the tiles at `srca` and `srcb`; contexts alternate, so that the addresses of the next
 * pair are stored while this one is still unpacked. */
static inline void unpack_pair(uint32_t srca, uint32_t srcb, uint32_t context) {
    acquire_context(srca, srcb, context);
    UNPACK_TO_SRCA();
    UNPACK_TO_SRCB();
    release_context();
}

/* The same for SrcA alone. */
static inline void unpack_srca(uint32_t srca, uint32_t context) {
    acquire_context(srca, srca, context);
    UNPACK_TO_SRCA();
    release_context();
}
