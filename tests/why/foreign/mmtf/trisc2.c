#include "mm.h"

static void init(void) {
    cfg_regs[2] = 0;
    cfg_regs[12] = 0x400000;
    cfg_regs[13] = 0x10000400;
    cfg_regs[18] = 1;
    cfg_regs[20] = 0;
    cfg_regs[24] = 0xFFFF;
    cfg_regs[28] = 0x1000;
    cfg_regs[68] = 0;
    cfg_regs[70] = 1;
    cfg_regs[71] = 0;
    cfg_regs[180] = 0;
    ckernel_insn(0x5180000Fu);
    ckernel_insn(0x5480000Fu);
    ckernel_insn(0x5E800000u | 15 << 10);
    ckernel_insn(0xB2250104u);
    ckernel_insn(0xB2262820u);
    ckernel_insn(0xB2271120u);
}

static void pack(uint32_t address) {
    cfg_regs[69] = (address >> 4) - 1;
    ckernel_insn(0xA2000000u | 0x81 << 15 | 0x400);
    for (uint32_t i = 0; i < 4; i++) {
        ckernel_insn(0x41000000u);
        ckernel_insn(0x41000000u);
        ckernel_insn(0x41000000u);
        *instrn_buffer = i < 3 ? 0x41010000u : 0x41008001u;
    }
    wait_for_tensix();
}

int main(void) {
    init();
    uint32_t done = 0, to;
    while ((to = ask(BRISC))) {
        ask(T1);
        pack(to);
        tell(T1, 0xF4EE);
        tell(BRISC, ++done);
    }
    *(reg_t)0x3030 = 0xB03;
    return 0;
}
