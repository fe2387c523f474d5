#pragma once
namespace tt {
using u32 = unsigned;
inline volatile u32 &at(u32 a) { return *reinterpret_cast<volatile u32 *>(a); }
inline volatile u32 &cfg(u32 n) { return at(0xFFEF0000 + 4 * n); }

template <u32 W> inline void insn() { __asm__ volatile(".word %0" ::"i"(W << 2 | W >> 30)); }
inline void push(u32 w) { at(0xFFE40000) = w; }

template <u32 reg, u32 value> inline void setc16() { insn<0xB2000000u | reg << 16 | value>(); }
template <u32 block, u32 wait> inline void stall() { insn<0xA2000000u | block << 15 | wait>(); }

template <u32 index> struct Semaphore {
    template <u32 max, u32 first = 0> static void init() { insn<0xA3000000u | max << 20 | first << 16 | 4u << index>(); }
    static void post() { insn<0xA4000000u | 4u << index>(); }
    static void get() { insn<0xA5000000u | 4u << index>(); }
    template <u32 block> static void while_zero() { insn<0xA6000000u | block << 15 | 4u << index | 1>(); }
    template <u32 block> static void while_max() { insn<0xA6000000u | block << 15 | 4u << index | 2>(); }
};

inline void drain() {
    at(0xFFE80004) = 0;
    const u32 idle = at(0xFFE80004);
    __asm__ volatile("" : : "r"(idle));
}

template <class F> inline void for_tiles(u32 n, F &&f) {
    for (u32 i = 0; i < n; i++)
        f(i);
}

using Filled = Semaphore<7>;
constexpr u32 kTiles = 6;
constexpr u32 kIn = 0x20000, kOut = 0x28000, kTileBytes = 2048;
constexpr u32 kDone = 0x1F00;
} // namespace tt
