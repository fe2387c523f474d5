#include "tilz.h"

static const uint regs[][2] = {
    {64, 0x01000011}, {65, 0x00040001}, {72, 0x00080221}, {73, 3},
    {84, 0x00400040}, {86, 0x01000100}, {92, 0},
    {112, 0x01000011}, {113, 0x00040001}, {120, 0x21}, {121, 3},
    {1, 0x02220000},
};

static inline void llk_unpack_tilize_init(void) {
    for (uint i = 0; i < sizeof regs / sizeof *regs; i++)
        poke(p_cfg + 4 * regs[i][0], regs[i][1]);
    TTI_SETC16(5, 4);
    TTI_SETC16(41, 0);
    TTI_SETADCXY(3, 0, 0, 0, 0, 0xF);
    TTI_SETADCZW(3, 0, 0, 0, 0, 0xF);
    TTI_SETADCXX(3, 1023, 0);
}

static inline void llk_unpack_tilize(uint tile_index) {
    tensix_sync();
    poke(p_cfg + 4 * 76, (ROWS_AT + tile_index * 64) / 16 - 1);
    poke(p_cfg + 4 * 124, COLUMN_AT / 16 - 1);
    TTI_STALLWAIT(8, 0x400);
    TTI_UNPACR(0, 0, 1);
    TTI_UNPACR(1, 0, 1);
}

void run_kernel(void) {
    llk_unpack_tilize_init();
    llk_unpack_tilize(0);
    llk_unpack_tilize(1);
    tensix_sync();
}

int main(void) {
    run_kernel();
    finish(0);
    return 0;
}
