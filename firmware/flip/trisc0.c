/* T0 of flip: faces 0 2 1 3 of each tile, each transposed on its way to SrcA. */
#include "flip/flip.h"

static const uint32_t order[4] = {0, 2, 1, 3};

static void configure(void) {
    cfg_write(ALU_FORMAT_SPEC_REG0_SrcA_ADDR32,
              CFG(ALU_FORMAT_SPEC_REG0_SrcA, FORMAT_FLOAT16_B) |
                  CFG(ALU_FORMAT_SPEC_REG1_SrcB, FORMAT_FLOAT16_B) |
                  CFG(ALU_FORMAT_SPEC_REG2_Dstacc, FORMAT_FLOAT16_B));
    cfg_write(THCON_SEC0_REG0_TileDescriptor_ADDR32, FORMAT_FLOAT16_B | 1u << 4 | 256u << 16);
    cfg_write(THCON_SEC0_REG0_TileDescriptor_ADDR32 + 1, 1u | 1u << 16);
    cfg_write(THCON_SEC0_REG2_Out_data_format_ADDR32,
              CFG(THCON_SEC0_REG2_Out_data_format, FORMAT_FLOAT16_B) |
                  CFG(THCON_SEC0_REG2_Throttle_mode, 2) |
                  CFG(THCON_SEC0_REG2_Haloize_mode, 1));
    cfg_write(THCON_SEC0_REG2_Disable_zero_compress_cntx0_ADDR32,
              CFG(THCON_SEC0_REG2_Disable_zero_compress_cntx0, 1));
    cfg_write(THCON_SEC0_REG5_Dest_cntx0_address_ADDR32,
              CFG(THCON_SEC0_REG5_Dest_cntx0_address, 64));
    cfg_write(THCON_SEC0_REG5_Tile_x_dim_cntx0_ADDR32,
              CFG(THCON_SEC0_REG5_Tile_x_dim_cntx0, 256));
    cfg_write(THCON_SEC0_REG7_Offset_address_ADDR32, 0);
    TTI_SETC16(UNPACK_MISC_CFG_CfgContextOffset_0_ADDR32, 0);
    TTI_SETC16(SRCA_SET_SetOvrdWithAddr_ADDR32, CFG(SRCA_SET_SetOvrdWithAddr, 1));
    TTI_SETADCXY(1, 0, 0, 0, 0, 0xF);
    TTI_SETADCZW(1, 0, 0, 0, 0, 0xF);
    TTI_SETADCXX(1, 255, 0);
}

static void face(uint32_t address) {
    tensix_sync();
    cfg_write(THCON_SEC0_REG3_Base_address_ADDR32, address / 16 - 1);
    TTI_STALLWAIT(STALL_UNPACK, WAIT_TRISC_CFG);
    TTI_UNPACR(0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1);
}

int main(void) {
    configure();
    for (uint32_t i = 0; i < runtime_args.tiles; i++) {
        for (uint32_t k = 0; k < 4; k++) {
            face(runtime_args.source + i * TILE + order[k] * FACE);
        }
    }
    tensix_sync();
    done_words[1] = DONE_TRISC(0);
    return 0;
}
