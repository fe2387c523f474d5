/* T0 of rectify: a to SrcA, b to SrcB, a whole tile each. */
#include "rectify/rectify.h"

#define UNP0 1u
#define UNP1 2u
#define BOTH 3u
#define WAIT_UNP1 4u

static void formats(void) {
    uint32_t first = FORMAT_FLOAT16_B | 1u << 4 | 256u << 16, second = 1u | 4u << 16;
    cfg_write(ALU_FORMAT_SPEC_REG0_SrcA_ADDR32,
              CFG(ALU_FORMAT_SPEC_REG0_SrcA, FORMAT_FLOAT16_B) |
                  CFG(ALU_FORMAT_SPEC_REG1_SrcB, FORMAT_FLOAT16_B) |
                  CFG(ALU_FORMAT_SPEC_REG2_Dstacc, FORMAT_FLOAT16_B));
    cfg_write(THCON_SEC0_REG0_TileDescriptor_ADDR32, first);
    cfg_write(THCON_SEC0_REG0_TileDescriptor_ADDR32 + 1, second);
    cfg_write(THCON_SEC1_REG0_TileDescriptor_ADDR32, first);
    cfg_write(THCON_SEC1_REG0_TileDescriptor_ADDR32 + 1, second);
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

static void addresses(void) {
    cfg_write(THCON_SEC0_REG5_Dest_cntx0_address_ADDR32,
              CFG(THCON_SEC0_REG5_Dest_cntx0_address, 4 * 16) |
                  CFG(THCON_SEC0_REG5_Dest_cntx1_address, 4 * 16));
    cfg_write(THCON_SEC0_REG5_Tile_x_dim_cntx0_ADDR32,
              CFG(THCON_SEC0_REG5_Tile_x_dim_cntx0, 256) |
                  CFG(THCON_SEC0_REG5_Tile_x_dim_cntx1, 256));
    cfg_write(THCON_SEC0_REG7_Offset_address_ADDR32, 0);
    TTI_SETC16(SRCA_SET_SetOvrdWithAddr_ADDR32, CFG(SRCA_SET_SetOvrdWithAddr, 1));
    TTI_SETADCXY(BOTH, 0, 0, 0, 0, 0xF);
    TTI_SETADCZW(BOTH, 0, 0, 0, 0, 0xF);
    TTI_SETADCXX(UNP0, 1023, 0);
    TTI_SETADCXX(UNP1, 1023, 0);
}

static void unpack(uint32_t a, uint32_t b, uint32_t context) {
    while (semaphore_read(SEM_UNPACK) == 2) {
    }
    if (context) {
        cfg_write(THCON_SEC0_REG3_Base_cntx1_address_ADDR32, a / 16 - 1);
        cfg_write(THCON_SEC1_REG3_Base_cntx1_address_ADDR32, b / 16 - 1);
    } else {
        cfg_write(THCON_SEC0_REG3_Base_address_ADDR32, a / 16 - 1);
        cfg_write(THCON_SEC1_REG3_Base_address_ADDR32, b / 16 - 1);
    }
    semaphore_post(SEM_UNPACK);
    TT_SETC16(UNPACK_MISC_CFG_CfgContextOffset_0_ADDR32,
              CFG(UNPACK_MISC_CFG_CfgContextOffset_0, context) |
                  CFG(UNPACK_MISC_CFG_CfgContextOffset_1, context));
    TTI_STALLWAIT(STALL_UNPACK, WAIT_TRISC_CFG);
    TTI_UNPACR(0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1);
    TTI_UNPACR(1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1);
    TTI_STALLWAIT(STALL_SYNC, WAIT_UNPACK0 | WAIT_UNP1);
    TTI_SEMGET(SEM_SEL(SEM_UNPACK));
}

int main(void) {
    tensix_sync(); /* stores to semaphores do not wait for the SEMINITs that BRISC has pushed */
    formats();
    addresses();
    for (uint32_t i = 0; i < runtime_args.pairs; i++) {
        unpack(TURNS[i].a, TURNS[i].b, i % 2);
    }
    tensix_sync();
    done_words[1] = DONE_TRISC(0);
    return 0;
}
