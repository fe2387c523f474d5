#include "tilz.h"

#define ADDR_MOD_0 0
#define ADDR_MOD_3 3
#define BCAST_COL 1

static inline void eltwise_binary_configure_addrmod(void) {
    TTI_SETC16(12 + ADDR_MOD_0, 8 | 8 << 8);
    TTI_SETC16(28 + ADDR_MOD_0, 8);
    TTI_SETC16(12 + ADDR_MOD_3, 0);
    TTI_SETC16(28 + ADDR_MOD_3, 0);
}

static inline void eltwise_binary_configure_mop(void) {
    const uint sub = TT_OP_ELWSUB(0, BCAST_COL, ADDR_MOD_0, 0);
    volatile uint *mop_cfg = (volatile uint *)0xFFB80000u;
    poke(0xFFE80008u, 0);
    (void)peek(0xFFE80008u);
    mop_cfg[0] = 1;
    mop_cfg[1] = 8;
    mop_cfg[2] = TT_OP_NOP;
    mop_cfg[3] = TT_OP_SETRWC(3, 0, 0, 0, 0, 3);
    mop_cfg[4] = TT_OP_NOP;
    mop_cfg[5] = sub;
    mop_cfg[6] = TT_OP_NOP;
    mop_cfg[7] = sub;
    mop_cfg[8] = sub;
}

void run_kernel(void) {
    TTI_(TT_OP_SEMINIT(1, 0, t6_sem(MATH_PACK)));
    TTI_SETC16(1, 0);
    eltwise_binary_configure_addrmod();
    eltwise_binary_configure_mop();
    TTI_SETRWC(0, 0, 0, 0, 0, 0xF);
    TTI_MOP(1, 0, 0);
    TTI_MOP(1, 0, 0);
    TTI_STALLWAIT(2, 0x10);
    TTI_SEMPOST(t6_sem(MATH_PACK));
    tensix_sync();
}

int main(void) {
    run_kernel();
    finish(1);
    return 0;
}
