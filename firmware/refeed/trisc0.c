/* T0 of refeed: both bases by WRCFG, then a whole tile to SrcB and to SrcA. */
#include "refeed/refeed.h"

#define GPR_A 8u
#define GPR_B 9u
#define WAIT_UNPACK1 0x004u

static void configure(void) {
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
    TTI_SETADCXX(3, 1023, 0);
}

static void set_gpr(uint32_t gpr, uint32_t value) {
    TT_SETDMAREG(value >> 14 & 3, value & 0x3FFF, 0, 2 * gpr);
    TT_SETDMAREG(0, value >> 16, 0, 2 * gpr + 1);
}

static void unpack(uint32_t a, uint32_t b) {
    set_gpr(GPR_A, a / 16 - 1);
    set_gpr(GPR_B, b / 16 - 1);
    TTI_STALLWAIT(STALL_CFG, WAIT_THCON | WAIT_UNPACK0 | WAIT_UNPACK1);
    TTI_WRCFG(GPR_A, 0, THCON_SEC0_REG3_Base_address_ADDR32);
    TTI_WRCFG(GPR_B, 0, THCON_SEC1_REG3_Base_address_ADDR32);
    TTI_DMANOP;
    TTI_UNPACR(1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1);
    TTI_UNPACR(0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1);
}

int main(void) {
    configure();
    TTI_STALLWAIT(STALL_UNPACK, WAIT_TRISC_CFG);
    for (uint32_t i = 0; i < runtime_args.tiles; i++) {
        volatile struct job *job = JOB(i);
        while (ISSUED <= i) {
            fence();
        }
        unpack(job->a, job->b);
        fence();
        TAKEN_0 = i + 1;
    }
    tensix_sync();
    done_words[1] = DONE_TRISC(0);
    return 0;
}
