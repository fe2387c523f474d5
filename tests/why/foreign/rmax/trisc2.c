#include "ops.h"

struct setting { unsigned word, value; };

static void apply(const struct setting *s, int n)
{
    while (n--) {
        CONFIG(s->word, s->value);
        s++;
    }
}

static const struct setting settings[] = {
    {2, 0},      {12, 0x200000}, {13, 0x8000200}, {18, 0}, {20, 0},      {24, 0xFFFF},
    {28, 0x1000}, {68, 0},        {69, OUT / 16 - 1}, {70, 0x551}, {71, 0}, {180, 0},
};

int main(void)
{
    apply(settings, sizeof settings / sizeof settings[0]);
    EMIT(0x5180000F);
    EMIT(0x5480000F);
    EMIT(0x5E800000 | 15 << 10);
    THREADCONFIG(37, 0x1000); /* the face to the right */
    THREADCONFIG(38, 0x2000);
    STALLWAIT(0x81, 0x400);
    EMIT(_OP(0xA6, 0x81 << 15 | 1 << 2 << 6 | 1));
    EMIT(_OP(0x41, 1 << 8));
    EMIT(_OP(0x41, 1 << 15 | 1 << 8 | 1));
    STALLWAIT(2, 8);
    EMIT(_OP(0xA5, 1 << 2 << 6));
    WAIT_IDLE();
    WR(0x108, 0xD2);
    return 0;
}
