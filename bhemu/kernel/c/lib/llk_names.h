/* p_stall, p_sfpu, p_setrwc and the like of a tt-llk checkout: included after all headers of lib,
 * whose macros of the same names end here. */
#pragma once

#undef STALL_TDMA
#undef STALL_SYNC
#undef STALL_UNPACK
#undef STALL_MATH
#undef STALL_CFG
#undef STALL_SFPU
#undef WAIT_SFPU

#ifndef THCON_CFGREG_BASE_ADDR32 /* of tt-metal's cfg_defines.h */
#define THCON_CFGREG_BASE_ADDR32 THCON_SEC0_REG0_TileDescriptor_ADDR32
#endif

#include "ckernel_instr_params.h"
