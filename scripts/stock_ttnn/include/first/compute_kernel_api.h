/* In front of tt-metal's header of this name. A kernel of fast dispatch includes it for the core's
 * types and uses none of its vector functions, which the stand-in's compiler does not know. */
#ifdef DISPATCH_TELEMETRY_ADDR
#pragma once
#include <cstdint>
#include "api/debug/kernel_profiler.hpp"
#include "ckernel.h"
#include "ckernel_globals.h"
#include "ckernel_debug.h"
#include "ckernel_include.h"
#include "hostdevcommon/kernel_structs.h"
#include "internal/risc_attribs.h"
#define ALWI inline __attribute__((always_inline))
#else
#include_next "api/compute/compute_kernel_api.h"
#endif
