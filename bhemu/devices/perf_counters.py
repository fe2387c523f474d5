"""The performance counters, 0xFFB12000: they can be configured and stopped, not started or read.

Each of the five banks has a reference period, a mode and a control register, of which bit 0 starts
and bit 1 stops (tt-metal: tt_metal/tt-llk/tools/include/perf_counters/hw.h).  Firmware stops all of
them at boot; as nothing here counts, that changes nothing.
"""

from typing import Any

import numpy as np

from bhemu import memmap as mm
from bhemu.devices import rules
from bhemu.devices.bus.window import KEPT, Register, not_modelled
from bhemu.devices.rules import access_error
from bhemu.jit.subset import njit
from bhemu.tensix.rules import DONE, UNIMPLEMENTED

START = 1
STOP = 2

COUNTING = access_error(
    "PERF-COUNTERS",
    UNIMPLEMENTED,
    "{value:#x} stored to {address:#010x} starts performance counters, which are not modelled",
    "they can be configured and stopped; time is measured with RISCV_DEBUG_REG_WALL_CLOCK_0",
)

_PREFIX = "RISCV_DEBUG_REG_"
_BANKS = ("INSTRN_THREAD", "TDMA_UNPACK", "FPU", "L1_", "TDMA_PACK")


@njit
def _store_control(s: Any, offset: Any, value: Any) -> Any:
    """A control register, of one bank or of all."""
    if value & START:
        return COUNTING
    if value & ~STOP:
        return rules.FIELD
    s.debug[offset >> 2] = np.uint32(value)
    return DONE


def _bank(name: str) -> tuple[Register, ...]:
    """Reference period, mode and control of a bank."""
    first: int = getattr(mm, f"{_PREFIX}PERF_CNT_{name}0")
    ways = (KEPT, KEPT, _store_control)
    return tuple(
        Register(f"{_PREFIX}PERF_CNT_{name}{i}", first + 4 * i, KEPT, way)
        for i, way in enumerate(ways)
    )


REGISTERS = (
    *(register for name in _BANKS for register in _bank(name)),
    Register(_PREFIX + "PERF_CNT_ALL", mm.RISCV_DEBUG_REG_PERF_CNT_ALL, KEPT, _store_control),
    Register(_PREFIX + "PERF_CNT_MUX_CTRL", mm.RISCV_DEBUG_REG_PERF_CNT_MUX_CTRL),
    not_modelled("values of performance counters", 0x100, 0x128),
)
