/* TRISC0: every face of the input to SrcA, each with the scaler's face to SrcB. */
#include "lib/unpack_pair.h"
#include "reduce/args.h"

uint32_t faces_done; /* in local RAM, for a debugger */

/* A pool adds up columns of SrcA: for the sums of rows the faces are transposed on their way. */
static void configure(void) {
    configure_unpack();
    TTI_SETADCXX(BOTH_UNPACKERS, FACE_DATUMS - 1, 0);
    cfg_write(THCON_SEC0_REG2_Out_data_format_ADDR32,
              CFG(THCON_SEC0_REG2_Out_data_format, FORMAT_FLOAT16_B) |
                  CFG(THCON_SEC0_REG2_Throttle_mode, 2) |
                  CFG(THCON_SEC0_REG2_Haloize_mode, runtime_args.dim == DIM_ROW));
}

/* Tile `i` of those that output `output` is made from. */
static uint32_t tile_at(uint32_t output, uint32_t i) {
    uint32_t n = runtime_args.n, dim = runtime_args.dim;
    return dim == DIM_ROW ? output * n + i : dim == DIM_COLUMN ? i * n + output : i;
}

/* Face `i` of part `part`: 0 1 and 2 3 lie side by side, 0 2 and 1 3 below each other. */
static uint32_t face_at(uint32_t part, uint32_t i) {
    uint32_t dim = runtime_args.dim;
    return dim == DIM_ROW ? 2 * part + i : dim == DIM_COLUMN ? part + 2 * i : i;
}

static void unpack_part(uint32_t output, uint32_t part) {
    for (uint32_t i = 0; i < inputs(); i++) {
        uint32_t tile = runtime_args.src + tile_at(output, i) * TILE_BYTES;
        for (uint32_t j = 0; j < faces_of_part(); j++) {
            uint32_t face = tile + face_at(part, j) * FACE_BYTES;
            unpack_pair(face, runtime_args.scaler, faces_done % UNPACK_CONTEXTS);
            faces_done++;
        }
    }
}

int main(void) {
    configure();
    for (uint32_t output = 0; output < outputs(); output++) {
        for (uint32_t part = 0; part < parts(); part++) {
            unpack_part(output, part);
        }
    }
    tensix_sync();
    done_words[1] = DONE_TRISC(0);
    return 0;
}
