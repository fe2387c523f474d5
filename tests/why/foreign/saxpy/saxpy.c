// Y = a * X + Y, fp32, straight through Dst. One source for all four cores: -DCORE_x picks the part.
typedef unsigned int u32;
#define REG(a) (*(volatile u32 *)(a))
#define CFGW(n) REG(0xFFEF0000 + 4 * (n))
#define TTI(w) __asm__ volatile(".word %0" ::"i"(((u32)(w) << 2) | ((u32)(w) >> 30)))
#define TT(w) (REG(0xFFE40000) = (w))

#define TT_SETC16(reg, v) (0xB2000000 | (reg) << 16 | (v))
#define TT_STALL(block, wait) (0xA2000000 | (block) << 15 | (wait))
#define TT_SEMINIT(max, init, s) (0xA3000000 | (max) << 20 | (init) << 16 | 4 << (s))
#define TT_SEMPOST(s) (0xA4000000 | 4 << (s))
#define TT_SEMGET(s) (0xA5000000 | 4 << (s))
#define TT_SEMWAIT0(block, s) (0xA6000000 | (block) << 15 | 4 << (s) | 1) // while it is 0

struct arg {
    u32 tiles, x, y;
    u32 a;
};
#define ARG ((volatile struct arg *)0x900)
#define FLAG(n) REG(0x800 + 4 * (n))
enum { DST_FREE = 2, DST_LOADED = 3, DST_READY = 6 };

#if defined(CORE_BRISC)
static void launch(void) {
    REG(0xFFB12228) = 0x8000;
    REG(0xFFB1222C) = 0xA000;
    REG(0xFFB12230) = 0xC000;
    REG(0xFFB12234) = 7;
    REG(0xFFB121B0) &= ~0x7000u;
}

int main(void) {
    for (int n = 0; n < 4; n++)
        FLAG(n) = 0;
    TT(TT_SEMINIT(1, 1, DST_FREE));
    TT(TT_SEMINIT(1, 0, DST_LOADED));
    TT(TT_SEMINIT(1, 0, DST_READY));
    launch();
    u32 left = 7;
    while (left) {
        __asm__ volatile("fence" ::: "memory");
        for (u32 n = 1; n < 4; n++)
            if (FLAG(n) == 0xFACE)
                left &= ~(1u << (n - 1));
    }
    FLAG(0) = 0xFACE;
    return 0;
}
#elif defined(CORE_TRISC0)
static void setup(void) {
    CFGW(64) = 0x01000010; // tile descriptor: fp32, 256 wide
    CFGW(65) = 0x00040001;
    CFGW(72) = 0x20;
    CFGW(73) = 0x33;       // to Dst, both contexts
    CFGW(84) = 0x04400040; // row 0, row 64
    CFGW(86) = 0x01000100;
    CFGW(92) = 0;
    CFGW(1) = 0x60000000; // 32-bit Dst
    TTI(TT_SETC16(5, 0));
    TTI(0x5160000F);
    TTI(0x5460000F);
    TTI(0x5E200000 | 1023 << 10);
}

static void load(u32 x, u32 y) {
    CFGW(76) = (x >> 4) - 1;
    CFGW(77) = (y >> 4) - 1;
    TTI(TT_STALL(0x08, 0x400));
    TTI(TT_SEMWAIT0(0x0A, DST_FREE));
    TTI(TT_SEMGET(DST_FREE));
    TTI(TT_SETC16(41, 0));
    TTI(0x42000081);
    TTI(TT_SETC16(41, 1));
    TTI(0x42000081);
    TTI(TT_STALL(0x02, 0x02));
    TTI(TT_SEMPOST(DST_LOADED));
    REG(0xFFE80004) = 0;
    (void)REG(0xFFE80004);
}

int main(void) {
    setup();
    for (u32 i = 0, n = ARG->tiles; i < n; i++)
        load(ARG->x + (i << 12), ARG->y + (i << 12));
    FLAG(1) = 0xFACE;
    return 0;
}
#elif defined(CORE_TRISC1)
#define SFPLOAD(l, mod, row, am) (0x70000000 | (l) << 20 | (mod) << 16 | (am) << 13 | (row))
#define SFPSTORE(l, mod, row, am) (0x72000000 | (l) << 20 | (mod) << 16 | (am) << 13 | (row))
#define SFPMAD(d, a, b, c) (0x84000000 | (a) << 16 | (b) << 12 | (c) << 8 | (d) << 4)
#define SFPLOADI(l, mod, v) (0x71000000 | (l) << 20 | (mod) << 16 | ((v) & 0xFFFF))

static void setup(void) {
    TTI(TT_SETC16(28 + 7, 0));
    TTI(TT_SETC16(28 + 6, 2));
    TTI(0x8A00300A); // SFPENCC: all lanes
    u32 a = ARG->a;
    TT(SFPLOADI(5, 10, a));
    TT(SFPLOADI(5, 8, a >> 16));
}

static void tile(void) {
    TTI(TT_SEMWAIT0(0x102, DST_LOADED));
    TTI(TT_SEMGET(DST_LOADED));
    TTI(0x3700000F);
#pragma clang loop unroll(disable)
    for (int k = 0; k < 32; k++) {
        TTI(SFPLOAD(0, 3, 0, 7));
        TTI(SFPLOAD(1, 3, 64, 7));
        TTI(SFPMAD(2, 0, 5, 1));
        TTI(0x8F000000);
        TTI(SFPSTORE(2, 3, 64, 6));
    }
    TTI(TT_STALL(0x02, 0x800));
    TTI(TT_SEMPOST(DST_READY));
}

int main(void) {
    setup();
    for (u32 n = ARG->tiles; n--;)
        tile();
    REG(0xFFE80004) = 0;
    (void)REG(0xFFE80004);
    FLAG(2) = 0xFACE;
    return 0;
}
#else
static void setup(void) {
    CFGW(2) = 0;
    CFGW(12) = 0x400000;
    CFGW(13) = 0x10000400;
    CFGW(18) = 1;
    CFGW(20) = 0;
    CFGW(24) = 0xFFFF;
    CFGW(28) = 0x1000;
    CFGW(68) = 0;
    CFGW(70) = 1;
    CFGW(71) = 0;
    CFGW(180) = 64; // y's rows
    TTI(0x5180000F);
    TTI(0x5480000F);
    TTI(0x5E800000 | 15 << 10);
    TTI(TT_SETC16(37, 0x0104));
    TTI(TT_SETC16(38, 0x2820));
    TTI(TT_SETC16(39, 0x1120));
}

static void out(u32 y) {
    CFGW(69) = (y >> 4) - 1;
    TTI(TT_STALL(0x81, 0x400));
    TTI(TT_SEMWAIT0(0x03, DST_READY));
    TTI(TT_SEMGET(DST_READY));
    for (int k = 1; k < 16; k++)
        TT(0x41000000 | (k % 4 == 0) << 16);
    TTI(0x41008001);
    TTI(TT_STALL(0x02, 0x08));
    TTI(TT_SEMPOST(DST_FREE));
    REG(0xFFE80004) = 0;
    (void)REG(0xFFE80004);
}

int main(void) {
    setup();
    u32 y = ARG->y;
    for (u32 i = 0; i < ARG->tiles; i++, y += 4096)
        out(y);
    FLAG(3) = 0xFACE;
    return 0;
}
#endif
