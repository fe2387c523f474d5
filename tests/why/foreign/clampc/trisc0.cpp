#include "tile.hpp"
using namespace tt;

struct Unpacker {
    u32 format;

    void descriptor() const {
        cfg(64) = format | 0x10 | 256u << 16;
        cfg(65) = 1 | 4u << 16;
        cfg(72) = format | 0x20;
        cfg(73) = 3;
    }
    void place() const {
        cfg(84) = 0x00400040;
        cfg(86) = 0x01000100;
        cfg(92) = 0;
        cfg(1) = format << 17 | format << 21 | format << 25;
    }
    template <u32 context> void base(u32 address) const { cfg(76 + context) = address / 16 - 1; }
};

extern "C" int main() {
    const Unpacker u{5};
    u.descriptor();
    u.place();
    setc16<5, 4>();
    insn<0x5120000F>();
    insn<0x5420000F>();
    insn<0x5E200000 | 1023 << 10>();
    const auto one = [&](u32 i) {
        const u32 from = kIn + i * kTileBytes;
        if (i & 1) {
            while (at(0xFFE80030) >= 2) {
            }
            u.base<1>(from);
            at(0xFFE80030) = 0;
            setc16<41, 0x101>();
        } else {
            while (at(0xFFE80030) >= 2) {
            }
            u.base<0>(from);
            at(0xFFE80030) = 0;
            setc16<41, 0>();
        }
        stall<8, 0x400>();
        insn<0x420000C1>();
        stall<2, 2>();
        Semaphore<4>::get();
    };
    for_tiles(kTiles, one);
    drain();
    at(kDone) = 'a';
    return 0;
}
