// The constants that kernels without vector code take from sfpi's header of this name.
#pragma once

#include <cstdint>

namespace sfpi {

constexpr unsigned SFP_DESTREG_STRIDE = 2;

// How SFPLOADI takes its immediate.
constexpr unsigned SFPLOADI_MOD0_FLOATB = 0;
constexpr unsigned SFPLOADI_MOD0_FLOATA = 1;
constexpr unsigned SFPLOADI_MOD0_USHORT = 2;
constexpr unsigned SFPLOADI_MOD0_SHORT = 4;
constexpr unsigned SFPLOADI_MOD0_UPPER = 8;
constexpr unsigned SFPLOADI_MOD0_LOWER = 10;

}  // namespace sfpi
