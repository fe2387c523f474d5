/* TRISC0's part of a kernel with two operands: whole bf16 tiles to SrcA and SrcB, in pairs. */
#pragma once

#include "lib/tensix.h"
#include "lib/tile.h"

#define UNPACKER0 1u
#define UNPACKER1 2u
#define BOTH_UNPACKERS 3u
#define UNPACK_CONTEXTS 2u

#define WAIT_UNPACK1 0x004u

/* Tile descriptor, first two words: format, uncompressed, x dimension; y and z dimension. */
#define TILE_DESCRIPTOR_0 (FORMAT_FLOAT16_B | 1u << 4 | FACE_DATUMS << 16)
#define TILE_DESCRIPTOR_1 (1u | FACES << 16)

static inline void configure_unpack_formats(void) {
    cfg_write(ALU_FORMAT_SPEC_REG0_SrcA_ADDR32,
              CFG(ALU_FORMAT_SPEC_REG0_SrcA, FORMAT_FLOAT16_B) |
                  CFG(ALU_FORMAT_SPEC_REG1_SrcB, FORMAT_FLOAT16_B) |
                  CFG(ALU_FORMAT_SPEC_REG2_Dstacc, FORMAT_FLOAT16_B));
    cfg_write(THCON_SEC0_REG0_TileDescriptor_ADDR32, TILE_DESCRIPTOR_0);
    cfg_write(THCON_SEC0_REG0_TileDescriptor_ADDR32 + 1, TILE_DESCRIPTOR_1);
    cfg_write(THCON_SEC1_REG0_TileDescriptor_ADDR32, TILE_DESCRIPTOR_0);
    cfg_write(THCON_SEC1_REG0_TileDescriptor_ADDR32 + 1, TILE_DESCRIPTOR_1);
    cfg_write(THCON_SEC0_REG2_Out_data_format_ADDR32,
              CFG(THCON_SEC0_REG2_Out_data_format, FORMAT_FLOAT16_B) |
                  CFG(THCON_SEC0_REG2_Throttle_mode, 2));
    cfg_write(THCON_SEC1_REG2_Out_data_format_ADDR32,
              CFG(THCON_SEC1_REG2_Out_data_format, FORMAT_FLOAT16_B) |
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
    TTI_SETC16(CFG(SRCA_SET_SetOvrdWithAddr, 1), SRCA_SET_SetOvrdWithAddr_ADDR32);
    TTI_SETADCXY(0xF, 0, 0, 0, 0, BOTH_UNPACKERS);
    TTI_SETADCZW(0xF, 0, 0, 0, 0, BOTH_UNPACKERS);
    TTI_SETADCXX(0, TILE_DATUMS - 1, UNPACKER0);
    TTI_SETADCXX(0, TILE_DATUMS - 1, UNPACKER1);
}

static inline void configure_unpack(void) {
    configure_unpack_formats();
    configure_unpack_addresses();
}

/* Both unpackers add 1 to the base for a tile header. */
static inline void write_bases(uint32_t srca, uint32_t srcb, uint32_t context) {
    cfg_write(context ? THCON_SEC0_REG3_Base_cntx1_address_ADDR32
                      : THCON_SEC0_REG3_Base_address_ADDR32,
              (srca >> 4) - 1);
    cfg_write(context ? THCON_SEC1_REG3_Base_cntx1_address_ADDR32
                      : THCON_SEC1_REG3_Base_address_ADDR32,
              (srcb >> 4) - 1);
}

/* Unpacks the tiles at `srca` and `srcb`; contexts alternate, so that the addresses of the next
 * pair are stored while this one is still unpacked. */
static inline void unpack_pair(uint32_t srca, uint32_t srcb, uint32_t context) {
    while (semaphore_read(SEMAPHORE_UNPACK_SYNC) >= UNPACK_CONTEXTS) {
    }
    write_bases(srca, srcb, context);
    semaphore_post(SEMAPHORE_UNPACK_SYNC);
    TTP_SETC16(CFG(UNPACK_MISC_CFG_CfgContextOffset_0, context) |
                   CFG(UNPACK_MISC_CFG_CfgContextOffset_1, context),
               UNPACK_MISC_CFG_CfgContextOffset_0_ADDR32);
    TTI_STALLWAIT(WAIT_TRISC_CFG, STALL_UNPACK);
    /* last, set_dat_valid, ovrd_thread_id; to SrcA, then to SrcB */
    TTI_UNPACR(1, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0);
    TTI_UNPACR(1, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1);
    TTI_STALLWAIT(WAIT_UNPACK0 | WAIT_UNPACK1, STALL_SYNC);
    TTI_SEMGET(SEM_SEL(SEMAPHORE_UNPACK_SYNC));
}
