#include "tile.hpp"
using namespace tt;

static const struct {
    unsigned char word;
    u32 value;
} table[] = {
    {2, 0}, {12, 32u << 16}, {13, 0x08000200}, {18, 0}, {20, 0}, {24, 0xFFFF},
    {28, 0x1000}, {68, 0}, {70, 0x551}, {71, 0},
};

template <int k = 1> inline void rows() {
    if constexpr (k < 16) {
        insn<0x41000000u | (k % 4 == 0 ? 2u << 15 : 0u)>();
        rows<k + 1>();
    } else {
        insn<0x41008001>();
    }
}

extern "C" int main() {
    for (auto &t : table)
        cfg(t.word) = t.value;
    insn<0x5180000F>();
    insn<0x5480000F>();
    insn<0x5E800000 | 15 << 10>();
    setc16<37, 0x104>();
    setc16<38, 0x2820>();
    setc16<39, 0x1120>();
    stall<0x81, 0x400>();
    for_tiles(kTiles, [](u32 i) {
        const u32 to = (kOut + i * kTileBytes) / 16 - 1;
        push(0x45000000 | 20 | (to & 0x3FFF) << 8 | to >> 14 << 22);
        push(0x45000000 | 21);
        push(0x45000000 | 22 | (i % 2) << 17);
        push(0x45000000 | 23);
        Filled::while_zero<0x83>();
        stall<0x80, 9>();
        insn<0xB0000000 | 10 << 16 | 69>();
        insn<0xB0000000 | 11 << 16 | 180>();
        insn<0x60000000>();
        rows();
        stall<2, 8>();
        Filled::get();
    });
    drain();
    at(kDone + 8) = 'c';
    return 0;
}
