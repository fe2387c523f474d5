/* T0 of widen: the faces of each tile to SrcA, zeros to SrcB. */
#include "widen/widen.h"

#define GPR_BASE_ADDRESS 20u
#define UNP0 1u

static void formats(void) {
    cfg_write(ALU_FORMAT_SPEC_REG0_SrcA_ADDR32,
              CFG(ALU_FORMAT_SPEC_REG0_SrcA, FORMAT_FLOAT16_B) |
                  CFG(ALU_FORMAT_SPEC_REG1_SrcB, FORMAT_FLOAT16_B) |
                  CFG(ALU_FORMAT_SPEC_REG2_Dstacc, FORMAT_FLOAT32) |
                  CFG(ALU_ACC_CTRL_Fp32_enabled, 1));
    cfg_write(THCON_SEC0_REG0_TileDescriptor_ADDR32, FORMAT_FLOAT16_B | 1u << 4 | 256u << 16);
    cfg_write(THCON_SEC0_REG0_TileDescriptor_ADDR32 + 1, 1u | 4u << 16);
    cfg_write(THCON_SEC0_REG2_Out_data_format_ADDR32,
              CFG(THCON_SEC0_REG2_Out_data_format, FORMAT_FLOAT16_B) |
                  CFG(THCON_SEC0_REG2_Throttle_mode, 2));
    cfg_write(THCON_SEC1_REG2_Out_data_format_ADDR32,
              CFG(THCON_SEC1_REG2_Out_data_format, FORMAT_FLOAT16_B) |
                  CFG(THCON_SEC1_REG2_Throttle_mode, 2));
    cfg_write(THCON_SEC0_REG2_Disable_zero_compress_cntx0_ADDR32,
              CFG(THCON_SEC0_REG2_Disable_zero_compress_cntx0, 1));
}

static void addresses(void) {
    cfg_write(THCON_SEC0_REG5_Dest_cntx0_address_ADDR32,
              CFG(THCON_SEC0_REG5_Dest_cntx0_address, 4 * 16));
    cfg_write(THCON_SEC0_REG5_Tile_x_dim_cntx0_ADDR32,
              CFG(THCON_SEC0_REG5_Tile_x_dim_cntx0, 256));
    cfg_write(THCON_SEC0_REG7_Offset_address_ADDR32, 0);
    TTI_SETC16(UNPACK_MISC_CFG_CfgContextOffset_0_ADDR32, 0);
    TTI_SETC16(SRCA_SET_SetOvrdWithAddr_ADDR32, CFG(SRCA_SET_SetOvrdWithAddr, 1));
    TTI_SETADCXY(UNP0, 0, 0, 0, 0, 0xF);
    TTI_SETADCXX(UNP0, 255, 0);
}

static void tile(uint32_t address) {
    uint32_t value = address / 16 - 1;
    TT_SETDMAREG(value >> 14 & 3, value & 0x3FFF, 0, 2 * GPR_BASE_ADDRESS);
    TT_SETDMAREG(0, 0, 0, 2 * GPR_BASE_ADDRESS + 1);
    TTI_STALLWAIT(STALL_CFG, WAIT_THCON | WAIT_UNPACK0);
    TTI_WRCFG(GPR_BASE_ADDRESS, 0, THCON_SEC0_REG3_Base_address_ADDR32);
    TTI_DMANOP;
    TTI_SETADCZW(UNP0, 0, 0, 0, 0, 0xF);
    for (uint32_t face = 0; face < 4; face++) {
        TT_PUSH(TTO_UNPACR_NOP | TTF_UNPACR_NOP_unpack_pop(1) | TTF_UNPACR_NOP_set_dvalid(1) |
                TTF_UNPACR_NOP_unpacker_select(1));
        TT_PUSH(TTO_UNPACR | TTF_UNPACR_last(1) | TTF_UNPACR_set_dat_valid(1) |
                TTF_UNPACR_ovrd_thread_id(1) | TTF_UNPACR_addr_mode(1));
    }
}

int main(void) {
    done_words[1] = 0;
    formats();
    addresses();
    TTI_STALLWAIT(STALL_UNPACK | STALL_CFG, WAIT_TRISC_CFG);
    for (uint32_t i = 0; i < NTILES; i++) {
        tile(IN + i * IN_TILE);
    }
    tensix_sync();
    done_words[1] = DONE_TRISC(0);
    return 0;
}
