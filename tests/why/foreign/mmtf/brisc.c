#include "mm.h"

struct plan {
    uint32_t a, b;
};

static void plan_row(struct plan *plan, uint32_t row) {
    for (uint32_t k = 0; k < 2; k++) {
        plan[k].a = A + (2 * row + k) * BYTES;
        plan[k].b = B + k * BYTES;
    }
}

int main(void) {
    for (uint32_t row = 0; row < 2; row++) {
        struct plan plan[2];
        plan_row(plan, row);
        tell(T2, C + row * BYTES);
        for (uint32_t k = 0; k < 2; k++) {
            tell(T0, plan[k].a);
            tell(T0, plan[k].b);
        }
        while (ask(T2) != row + 1) {
        }
    }
    tell(T0, 0);
    tell(T2, 0);
    *(reg_t)0x3000 = 0xB00;
    return 0;
}
