/* T0 of colsum: for the left and the right half of the tiles: faces to SrcA, weights to SrcB. */
#include "colsum/colsum.h"

static void section(uint32_t format) {
    uint32_t first = format | 1u << 4 | 256u << 16, second = 1u | 1u << 16;
    cfg_write(THCON_SEC0_REG0_TileDescriptor_ADDR32, first);
    cfg_write(THCON_SEC0_REG0_TileDescriptor_ADDR32 + 1, second);
    cfg_write(THCON_SEC1_REG0_TileDescriptor_ADDR32, first);
    cfg_write(THCON_SEC1_REG0_TileDescriptor_ADDR32 + 1, second);
    cfg_write(THCON_SEC0_REG2_Out_data_format_ADDR32,
              CFG(THCON_SEC0_REG2_Out_data_format, format) |
                  CFG(THCON_SEC0_REG2_Throttle_mode, 2));
    cfg_write(THCON_SEC1_REG2_Out_data_format_ADDR32,
              CFG(THCON_SEC1_REG2_Out_data_format, format) |
                  CFG(THCON_SEC1_REG2_Throttle_mode, 2));
    cfg_write(ALU_FORMAT_SPEC_REG0_SrcA_ADDR32,
              CFG(ALU_FORMAT_SPEC_REG0_SrcA, format) | CFG(ALU_FORMAT_SPEC_REG1_SrcB, format) |
                  CFG(ALU_FORMAT_SPEC_REG2_Dstacc, format));
}

static void configure(void) {
    section(FORMAT_FLOAT16_B);
    cfg_write(THCON_SEC0_REG2_Disable_zero_compress_cntx0_ADDR32,
              CFG(THCON_SEC0_REG2_Disable_zero_compress_cntx0, 1));
    cfg_write(THCON_SEC1_REG2_Disable_zero_compress_cntx0_ADDR32,
              CFG(THCON_SEC1_REG2_Disable_zero_compress_cntx0, 1));
    cfg_write(THCON_SEC0_REG5_Dest_cntx0_address_ADDR32,
              CFG(THCON_SEC0_REG5_Dest_cntx0_address, 64));
    cfg_write(THCON_SEC0_REG5_Tile_x_dim_cntx0_ADDR32,
              CFG(THCON_SEC0_REG5_Tile_x_dim_cntx0, 256));
    cfg_write(THCON_SEC0_REG7_Offset_address_ADDR32, 0);
    TTI_SETC16(UNPACK_MISC_CFG_CfgContextOffset_0_ADDR32, 0);
    TTI_SETC16(SRCA_SET_SetOvrdWithAddr_ADDR32, CFG(SRCA_SET_SetOvrdWithAddr, 1));
    TTI_SETADCXY(3, 0, 0, 0, 0, 0xF);
    TTI_SETADCZW(3, 0, 0, 0, 0, 0xF);
    TTI_SETADCXX(3, 255, 0);
}

static void face(uint32_t address) {
    tensix_sync();
    cfg_write(THCON_SEC0_REG3_Base_address_ADDR32, address / 16 - 1);
    cfg_write(THCON_SEC1_REG3_Base_address_ADDR32, WEIGHTS / 16 - 1);
    TTI_STALLWAIT(STALL_UNPACK, WAIT_TRISC_CFG);
    TTI_UNPACR(1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1);
    TTI_UNPACR(0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1);
}

int main(void) {
    configure();
    for (uint32_t side = 0; side < 2; side++) {
        for (uint32_t i = 0; i < TILES; i++) {
            face(DATA + i * TILE + side * FACE);
            face(DATA + i * TILE + (side + 2) * FACE);
        }
    }
    tensix_sync();
    done_words[1] = DONE_TRISC(0);
    return 0;
}
