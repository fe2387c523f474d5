#include "tile.hpp"
using namespace tt;

namespace sfpu {
enum Reg : u32 { X = 0, Diff = 1, Slope = 3, Top = 4, MinusTop = 5, Zero = 9, One = 10 };
template <Reg r, u32 step> void load() { insn<0x70000000u | r << 20 | step << 13>(); }
template <Reg r, u32 step> void store() { insn<0x72000000u | r << 20 | step << 13>(); }
template <Reg d, Reg a, Reg b, Reg c> void mad() { insn<0x84000000u | a << 16 | b << 12 | c << 8 | d << 4>(); }
template <Reg d, Reg s> void mov() { insn<0x7C000000u | s << 8 | d << 4>(); }
template <Reg r> void loadi(u32 bits) {
    push(0x710A0000u | r << 20 | (bits & 0xFFFF));
    push(0x71080000u | r << 20 | bits >> 16);
}
inline void nop() { insn<0x8F000000>(); }
inline void all_lanes() { insn<0x8A00300A>(); }
template <Reg r, u32 how> void setcc() { insn<0x7B000000u | r << 8 | how>(); }

template <Reg r, class Then, class Else> void if_negative(Then &&t, Else &&e) {
    insn<0x87000000>(); // SFPPUSHC
    setcc<r, 0>();
    t();
    insn<0x8B000000>(); // SFPCOMPC
    e();
    insn<0x88000000>(); // SFPPOPC
}
} // namespace sfpu

using namespace sfpu;

static u32 bits(float f) {
    u32 b;
    __builtin_memcpy(&b, &f, 4);
    return b;
}

template <u32 step> static void vector() {
    load<X, 1>();
    if_negative<X>(
        [] {
            mad<X, X, Slope, Zero>();
            nop();
        },
        [] {
            mad<Diff, X, One, MinusTop>();
            nop();
            setcc<Diff, 4>();
            mov<X, Top>();
        });
    store<X, step>();
}

extern "C" int main() {
    Filled::init<2>();
    setc16<12, 0>();
    setc16<28, 0>();
    setc16<13, 0>();
    setc16<29, 0>();
    setc16<14, 8>();
    setc16<30, 8>();
    setc16<15, 0>();
    setc16<31, 2>();
    all_lanes();
    loadi<Slope>(bits(0.125f));
    loadi<Top>(bits(3.0f));
    loadi<MinusTop>(bits(-3.0f));
    for_tiles(kTiles, [](u32 i) {
        Filled::while_max<0x142>();
        push(0xB2010000 | (i & 1) << 9);
        insn<0x3700000F>();
        for (int k = 0; k < 8; k++)
            insn<0x12000000 | 2 << 12 | 2 << 14>(); // MOVA2D, 8 rows
        insn<0x3740000F>();
        stall<0x100, 0x10>();
        for (int k = 0; k < 32; k++)
            vector<3>();
        stall<2, 0x810>();
        Filled::post();
    });
    drain();
    at(kDone + 4) = 'b';
    return 0;
}
