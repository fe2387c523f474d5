#include "mm.h"
#define MVMUL(mod) ckernel_insn(0x26000000u | (mod) << 14)

static void addr_mod(void) {
    static const uint32_t ab[5] = {0x0800, 0x4010, 0x6040, 0x7060, 0xC0C0};
    static const uint32_t dst[5] = {8, 8, 8, 0x0400, 0x2C00};
    for (uint32_t i = 0; i < 5; i++) {
        uint32_t slot = i < 3 ? i : i + 1;
        *instrn_buffer = 0xB2000000u | (12 + slot) << 16 | ab[i];
        *instrn_buffer = 0xB2000000u | (28 + slot) << 16 | dst[i];
    }
}

static void record(void) {
    ckernel_insn(0x04000001u | 16 << 4);
    MVMUL(0);
    MVMUL(1);
    MVMUL(0);
    MVMUL(2);
    MVMUL(0);
    MVMUL(1);
    MVMUL(0);
    MVMUL(4);
    MVMUL(0);
    MVMUL(1);
    MVMUL(0);
    MVMUL(2);
    MVMUL(0);
    MVMUL(1);
    MVMUL(0);
    MVMUL(5);
}

static void mop(void) {
    const reg_t m = (reg_t)0xFFB80000;
    *(reg_t)0xFFE80008 = 0;
    uint32_t idle = *(reg_t)0xFFE80008;
    __asm__ volatile("" : : "r"(idle));
    m[0] = 2;           /* K */
    m[1] = 4;           /* phases */
    m[2] = 0x02000000u;
    m[3] = 0x37C0000Fu; /* banks back */
    m[4] = 0x02000000u;
    m[5] = 0x04000000u | 16 << 4;
    m[6] = 0x02000000u;
    m[7] = 0x04000000u | 16 << 4;
    m[8] = 0x04000000u | 16 << 4;
}

int main(void) {
    addr_mod();
    record();
    mop();
    ckernel_insn(0xB2010000u);
    for (uint32_t row = 0; row < 2; row++) {
        ckernel_insn(0x10180000u);
        ckernel_insn(0x3700000Fu);
        ckernel_insn(0x01800000u);
        wait_for_tensix();
        tell(T2, 0xC0DE);
        while (ask(T2) != 0xF4EE) {
        }
    }
    *(reg_t)0x3020 = 0xB02;
    return 0;
}
