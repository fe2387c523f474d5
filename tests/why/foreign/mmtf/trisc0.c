#include "mm.h"

static void init(void) {
    cfg_regs[64] = 0x1000010;
    cfg_regs[65] = 0x40001;
    cfg_regs[72] = 0x24;
    cfg_regs[73] = 3;
    cfg_regs[84] = 0x400040;
    cfg_regs[86] = 0x1000100;
    cfg_regs[92] = 0;
    cfg_regs[112] = 0x1000010;
    cfg_regs[113] = 0x40001;
    cfg_regs[120] = 0x24;
    cfg_regs[121] = 3;
    cfg_regs[1] = 0x60880000;
    ckernel_insn(0xB2050004u);
    ckernel_insn(0xB2290000u);
    ckernel_insn(0x5160000Fu);
    ckernel_insn(0x5460000Fu);
    ckernel_insn(0x5E600000u | 1023 << 10);
}

int main(void) {
    init();
    for (;;) {
        uint32_t a = ask(BRISC);
        if (!a)
            break;
        uint32_t b = ask(BRISC);
        cfg_regs[76] = (b >> 4) - 1;
        cfg_regs[124] = (a >> 4) - 1;
        ckernel_insn(0xA2040400u);
        ckernel_insn(0x420000C1u);
        ckernel_insn(0x428000C1u);
        wait_for_tensix();
    }
    *(reg_t)0x3010 = 0xB01;
    return 0;
}
