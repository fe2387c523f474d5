/* z = x * y element by element in fp32 Dst; z leaves twice: as fp32 and as bf16.
 * Addresses live in GPRs and are moved on by the threads themselves. */
#define MEM(a) *(volatile unsigned *)(a)
#define TTINSN(op, rest) __asm__ volatile(".word %0" ::"i"(((((op) << 24) | (rest)) << 2) | ((unsigned)(op) >> 6)))
#define TTPUSH(op, rest) (MEM(0xFFE40000) = (unsigned)(op) << 24 | (rest))
#define CFG32(n, v) (MEM(0xFFEF0000 + (n) * 4) = (v))
#define GPR(n, v) (MEM(0xFFE00000 + (n) * 4) = (v))
#define SETC16(r, v) TTINSN(0xB2u, (r) << 16 | (v))
#define WRCFG(gpr, word) TTINSN(0xB0u, (gpr) << 16 | (word))
#define ADDGPR(d, a, b) TTINSN(0x58u, (d) << 12 | (b) << 6 | (a))
#define STALL(b, w) TTINSN(0xA2u, (b) << 15 | (w))
#define WAIT0(b, s) TTINSN(0xA6u, (b) << 15 | (s) << 2 | 1)
#define WAITMAX(b, s) TTINSN(0xA6u, (b) << 15 | (s) << 2 | 2)
#define POST(s) TTINSN(0xA4u, (s) << 2)
#define TAKE(s) TTINSN(0xA5u, (s) << 2)
#define IDLE() (MEM(0xFFE80004) = 0, (void)MEM(0xFFE80004))

#define N 3
#define X 0x40000
#define Y 0x42000
#define Z32 0x50000
#define Z16 0x60000
#define FULL 0x10u

#ifdef CORE_TRISC0
enum { G_X = 12, G_Y = 13, G_STEP = 14 };

static void once(void) {
    static const unsigned char word[] = {64, 65, 72, 73, 84, 86, 92, 112, 113, 120, 121};
    static const unsigned value[] = {0x1000015, 0x40001, 0x25, 1, 0x40, 0x100, 0,
                                     0x1000015, 0x40001, 0x25, 1};
    for (unsigned i = 0; i < sizeof word; i++)
        CFG32(word[i], value[i]);
    CFG32(1, 0x20000000 | 5 << 17 | 5 << 21);
    SETC16(5, 4);
    SETC16(41, 0);
    TTINSN(0x51u, 0x60000F);
    TTINSN(0x54u, 0x60000F);
    TTINSN(0x5Eu, 0x600000 | 1023 << 10);
    GPR(G_X, X / 16 - 1);
    GPR(G_Y, Y / 16 - 1);
    GPR(G_STEP, 2048 / 16);
    IDLE();
}

int main(void) {
    once();
    for (int i = 0; i < N; i++) {
        STALL(0x80, 7);
        WRCFG(G_X, 76);
        WRCFG(G_Y, 124);
        TTINSN(0x60u, 0);
        TTINSN(0x42u, 0x0000C1);
        TTINSN(0x42u, 0x8000C1);
        ADDGPR(G_X, G_X, G_STEP);
        ADDGPR(G_Y, G_Y, G_STEP);
    }
    IDLE();
    MEM(0x120) = 0x1111;
    return 0;
}
#endif

#ifdef CORE_TRISC1
#define MUL(mode) TTINSN(0x27u, (mode) << 14)
#define REPLAY(start, len, load) TTINSN(0x04u, (start) << 14 | (len) << 4 | (load))

static void modes(void) {
    SETC16(12, 8 | 8 << 8);
    SETC16(28, 8);
    SETC16(13, 0x8080);         /* both back to row 0 */
    SETC16(29, 0x2000 | 0x800); /* Dst too, next phase */
    SETC16(14, 0x8080);
    SETC16(30, 0x8000 | 0x800); /* phase 0 */
}

static void record(void) {
    REPLAY(4, 8, 1);
    MUL(0);
    MUL(0);
    MUL(0);
    MUL(0);
    MUL(0);
    MUL(0);
    MUL(0);
    MUL(1);
}

int main(void) {
    modes();
    TTINSN(0xA3u, 2 << 20 | FULL << 2);
    record();
    for (int i = 0; i < N; i++) {
        WAITMAX(0x42, FULL);
        TTPUSH(0xB2, 1 << 16 | (i & 1) << 9);
        TTPUSH(0x10, 2 << 19 | (i & 1));
        TTINSN(0x37u, 0xF);
        for (int phase = 0; phase < 4; phase++)
            REPLAY(4, 8, 0);
        TTINSN(0x37u, 3 << 22 | 0xF);
        STALL(2, 0x10);
        POST(FULL);
    }
    IDLE();
    MEM(0x124) = 0x2222;
    return 0;
}
#endif

#ifdef CORE_TRISC2
enum { G_TO32 = 4, G_TO16, G_STEP32, G_STEP16, G_FMT32, G_FMT16, G_XY32, G_XY16, G_DST };

static void fixed(void) {
    CFG32(2, 0);
    CFG32(12, 0x400000);
    CFG32(13, 0x10000400);
    CFG32(18, 1);
    CFG32(20, 0);
    CFG32(24, 0xFFFF);
    CFG32(28, 0x1000);
    CFG32(68, 0);
    CFG32(71, 0);
    TTINSN(0x51u, 0x80000F);
    TTINSN(0x54u, 0x80000F);
    TTINSN(0x5Eu, 0x800000 | 15 << 10);
    SETC16(37, 0x0104);
    SETC16(38, 0x2820);
    SETC16(39, 0x1120);
}

static void gprs(void) {
    GPR(G_TO32, Z32 / 16 - 1);
    GPR(G_TO16, Z16 / 16 - 1);
    GPR(G_STEP32, 4096 / 16);
    GPR(G_STEP16, 2048 / 16);
    GPR(G_FMT32, 0x001);
    GPR(G_FMT16, 0x051);
    GPR(G_DST, 0);
    IDLE();
}

static void sixteen(void) {
    for (int k = 1; k < 16; k++)
        TTPUSH(0x41, (k & 3 ? 0u : 2u) << 15);
    TTINSN(0x41u, 0x8001);
}

int main(void) {
    fixed();
    gprs();
    STALL(0x81, 0x400);
    for (int i = 0; i < N; i++) {
        WAIT0(0x81, FULL);
        WRCFG(G_TO32, 69);
        WRCFG(G_FMT32, 70);
        WRCFG(G_DST, 180);
        TTINSN(0x60u, 0);
        sixteen();
        STALL(0x80, 8);
        WRCFG(G_TO16, 69);
        WRCFG(G_FMT16, 70);
        TTINSN(0x60u, 0);
        sixteen();
        ADDGPR(G_TO32, G_TO32, G_STEP32);
        ADDGPR(G_TO16, G_TO16, G_STEP16);
        TTPUSH(0x45, (2 * G_DST) | (i & 1 ? 0 : 512) << 8);
        STALL(0x82, 9);
        TAKE(FULL);
    }
    IDLE();
    MEM(0x128) = 0x3333;
    return 0;
}
#endif
