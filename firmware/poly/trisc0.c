/* T0 of poly: a whole tile to SrcA by one UNPACR; the base in a context of its own per tile. */
#include "poly/poly.h"

#define SEM_CONTEXT 5u

static void configure(void) {
    cfg_write(ALU_FORMAT_SPEC_REG0_SrcA_ADDR32,
              CFG(ALU_FORMAT_SPEC_REG0_SrcA, FORMAT_FLOAT16_B) |
                  CFG(ALU_FORMAT_SPEC_REG1_SrcB, FORMAT_FLOAT16_B) |
                  CFG(ALU_FORMAT_SPEC_REG2_Dstacc, FORMAT_FLOAT16_B));
    cfg_write(THCON_SEC0_REG0_TileDescriptor_ADDR32, FORMAT_FLOAT16_B | 1u << 4 | 256u << 16);
    cfg_write(THCON_SEC0_REG0_TileDescriptor_ADDR32 + 1, 1u | 4u << 16);
    cfg_write(THCON_SEC0_REG2_Out_data_format_ADDR32,
              CFG(THCON_SEC0_REG2_Out_data_format, FORMAT_FLOAT16_B) |
                  CFG(THCON_SEC0_REG2_Throttle_mode, 2));
    cfg_write(THCON_SEC0_REG2_Disable_zero_compress_cntx0_ADDR32,
              CFG(THCON_SEC0_REG2_Disable_zero_compress_cntx0, 1) |
                  CFG(THCON_SEC0_REG2_Disable_zero_compress_cntx1, 1));
    cfg_write(THCON_SEC0_REG5_Dest_cntx0_address_ADDR32,
              CFG(THCON_SEC0_REG5_Dest_cntx0_address, 64) |
                  CFG(THCON_SEC0_REG5_Dest_cntx1_address, 64));
    cfg_write(THCON_SEC0_REG5_Tile_x_dim_cntx0_ADDR32,
              CFG(THCON_SEC0_REG5_Tile_x_dim_cntx0, 256) |
                  CFG(THCON_SEC0_REG5_Tile_x_dim_cntx1, 256));
    cfg_write(THCON_SEC0_REG7_Offset_address_ADDR32, 0);
    TTI_SETC16(SRCA_SET_SetOvrdWithAddr_ADDR32, CFG(SRCA_SET_SetOvrdWithAddr, 1));
    TTI_SETADCXY(1, 0, 0, 0, 0, 0xF);
    TTI_SETADCZW(1, 0, 0, 0, 0, 0xF);
    TTI_SETADCXX(1, 1023, 0);
}

static void tile(uint32_t address, uint32_t context) {
    while (semaphore_read(SEM_CONTEXT) > 1) {
    }
    if (context) {
        cfg_write(THCON_SEC0_REG3_Base_cntx1_address_ADDR32, address / 16 - 1);
    } else {
        cfg_write(THCON_SEC0_REG3_Base_address_ADDR32, address / 16 - 1);
    }
    semaphore_post(SEM_CONTEXT);
    TT_SETC16(UNPACK_MISC_CFG_CfgContextOffset_0_ADDR32,
              CFG(UNPACK_MISC_CFG_CfgContextOffset_0, context));
    TTI_STALLWAIT(STALL_UNPACK, WAIT_TRISC_CFG);
    TTI_UNPACR(0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1);
    TTI_STALLWAIT(STALL_SYNC, WAIT_UNPACK0);
    TTI_SEMGET(SEM_SEL(SEM_CONTEXT));
}

int main(void) {
    configure();
    uint32_t from = runtime_args.from;
    for (uint32_t i = runtime_args.count; i > 0; i--) {
        tile(from, i & 1);
        from += BYTES;
    }
    tensix_sync();
    done_words[1] = DONE_TRISC(0);
    return 0;
}
