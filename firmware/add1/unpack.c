/* TRISC0: unpacks one tile after the other, face by face, into SrcA. */
#include "add1/args.h"
#include "lib/tensix.h"

#define BOTH_UNPACKERS 3u
#define UNPACKER0 1u

uint32_t tiles_done; /* in local RAM, for a debugger */

static void configure_formats(void) {
    cfg_write(ALU_FORMAT_SPEC_REG0_SrcA_ADDR32,
              CFG(ALU_FORMAT_SPEC_REG0_SrcA, FORMAT_FLOAT16_B) |
                  CFG(ALU_FORMAT_SPEC_REG1_SrcB, FORMAT_FLOAT16_B) |
                  CFG(ALU_FORMAT_SPEC_REG2_Dstacc, FORMAT_FLOAT16_B));
    /* Tile descriptor: format, uncompressed, x dimension; then y and z dimension. */
    cfg_write(THCON_SEC0_REG0_TileDescriptor_ADDR32,
              FORMAT_FLOAT16_B | 1u << 4 | FACE_DATUMS << 16);
    cfg_write(THCON_SEC0_REG0_TileDescriptor_ADDR32 + 1, 1u | FACES << 16);
    cfg_write(THCON_SEC0_REG2_Out_data_format_ADDR32,
              CFG(THCON_SEC0_REG2_Out_data_format, FORMAT_FLOAT16_B) |
                  CFG(THCON_SEC0_REG2_Throttle_mode, 2));
    cfg_write(THCON_SEC0_REG2_Disable_zero_compress_cntx0_ADDR32,
              CFG(THCON_SEC0_REG2_Disable_zero_compress_cntx0, 1) |
                  CFG(THCON_SEC0_REG2_Disable_zero_compress_cntx1, 1));
    /* SrcB receives zeros only, but its bank takes over this format. */
    cfg_write(THCON_SEC1_REG2_Out_data_format_ADDR32,
              CFG(THCON_SEC1_REG2_Out_data_format, FORMAT_FLOAT16_B) |
                  CFG(THCON_SEC1_REG2_Throttle_mode, 2));
}

static void configure_addresses(void) {
    /* The destination index counts from four rows before SrcA. */
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
    TTI_SETADCXX(UNPACKER0, FACE_DATUMS - 1, 0);
}

/* SrcB is validated before SrcA: math waits for SrcA alone and then clears both. */
static void program_mop(void) {
    uint32_t srcb_zeros = TTO_UNPACR_NOP | TTF_UNPACR_NOP_unpack_pop(1) |
                          TTF_UNPACR_NOP_set_dvalid(1) | TTF_UNPACR_NOP_unpacker_select(1);
    uint32_t face = TTO_UNPACR | TTF_UNPACR_last(1) | TTF_UNPACR_set_dat_valid(1) |
                    TTF_UNPACR_ovrd_thread_id(1) | TTF_UNPACR_addr_mode(1); /* next input z */
    mop_loop_program(FACES, 1, srcb_zeros, face, TT_OP_NOP, face, face);
}

/* Selects the configuration context that the next unpacks use. */
static void select_context(uint32_t context) {
    THREAD_CFG(CFG(UNPACK_MISC_CFG_CfgContextOffset_0, context) |
                   CFG(UNPACK_MISC_CFG_CfgContextOffset_1, context),
               UNPACK_MISC_CFG_CfgContextOffset_0_ADDR32);
}

static void unpack_tile(uint32_t address, uint32_t context) {
    while (semaphore_read(SEMAPHORE_UNPACK_SYNC) >= 2) {
    }
    cfg_write(context ? THCON_SEC0_REG3_Base_cntx1_address_ADDR32
                      : THCON_SEC0_REG3_Base_address_ADDR32,
              (address >> 4) - 1); /* the unpacker adds 1 for a tile header */
    semaphore_post(SEMAPHORE_UNPACK_SYNC);
    TTI_STALLWAIT(STALL_UNPACK, WAIT_TRISC_CFG);
    TTI_SETADCZW(UNPACKER0, 0, 0, 0, 0, 0xF);
    MOP_LOOP_RUN();
    TTI_STALLWAIT(STALL_SYNC, WAIT_UNPACK0);
    TTI_SEMGET(SEM_SEL(SEMAPHORE_UNPACK_SYNC));
}

int main(void) {
    configure_formats();
    configure_addresses();
    program_mop();
    uint32_t context = 0;
    for (uint32_t i = 0; i < runtime_args.n_tiles; i++) {
        select_context(context);
        unpack_tile(runtime_args.src + i * TILE_BYTES, context);
        context ^= 1;
        tiles_done = i + 1;
    }
    tensix_sync();
    done_words[1] = DONE_TRISC(0);
    return 0;
}
