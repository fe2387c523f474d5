"""The performance counters, 0xFFB12000: in modelled time they count what the model counts.

Each of the five banks has a reference period, a mode and a control register, of which bit 0 starts
(and clears) and bit 1 stops, where it rises; PERF_CNT_ALL does so for FPU and INSTRN_THREAD. The
low output holds the cycles, the high one the event that the mode register selects (tt-metal:
tt_metal/tt-llk/tools/include/perf_counters/hw.h, docs/tests/perf_counters.md). Without modelled
times they can be configured and stopped, as firmware does at boot, not started or read.
"""

from typing import Any

import numpy as np

from bhemu import memmap as mm
from bhemu.devices import rules
from bhemu.devices.bus.window import KEPT, Effect, Register
from bhemu.devices.rules import access_error
from bhemu.jit.subset import njit
from bhemu.tensix.in_flight import MATRIX, VECTOR
from bhemu.tensix.rules import DONE, UNIMPLEMENTED
from bhemu.tensix.state import MODELLED, PERF_EVENTS

START, STOP = 1, 2

COUNTING = access_error("PERF-COUNTERS", UNIMPLEMENTED, "{value:#x} stored to {address:#010x} starts performance counters, which count in modelled time only, in mode 0", 'timing = "model" has them; else time is measured with RISCV_DEBUG_REG_WALL_CLOCK_0')  # fmt: skip
VALUE = access_error("PERF-VALUE", UNIMPLEMENTED, "the load of {address:#010x} reads a performance counter that is not modelled", "in modelled time: the cycles of each bank; FPU 0 (matrix unit) and 1 (vector unit), INSTRN_THREAD 256 (words of T0)")  # fmt: skip

_PREFIX = "RISCV_DEBUG_REG_"
_BANKS = ("INSTRN_THREAD", "TDMA_UNPACK", "FPU", "L1_", "TDMA_PACK")
_THREAD, _FPU = _BANKS.index("INSTRN_THREAD"), _BANKS.index("FPU")
_OUTPUTS = ("INSTRN_THREAD", "TDMA_UNPACK", "TDMA_PACK", "L1_", "FPU")  # their order from 0x100 on
_FIRST: tuple[int, ...] = tuple(getattr(mm, f"{_PREFIX}PERF_CNT_{name}0") for name in _BANKS)
_ALL = mm.RISCV_DEBUG_REG_PERF_CNT_ALL
_OF_OUTPUT = tuple(_BANKS.index(name) for name in _OUTPUTS)
_OUT = 0x100
_CYCLES, _MATRIX_WORKS, _VECTOR_WORKS, _WORDS = range(4)  # events; the words of the threads follow
_SELECT, _MODE = 8, 0xFF  # counter_sel begins at bit 8 of the mode register
_THREAD_WORDS = 256


@njit
def _event(s: Any, event: Any) -> Any:
    """How often something has happened so far."""
    if event == _CYCLES:
        return s.clock[0]
    if event == _MATRIX_WORKS:
        return s.unit_cycles[MATRIX]
    if event == _VECTOR_WORKS:
        return s.unit_cycles[VECTOR]
    return s.executed[event - _WORDS]


@njit
def _rises(s: Any, bank: Any, rising: Any) -> None:
    """Start or stop a bank."""
    if rising & STOP and s.perf_on[bank]:
        s.perf_on[bank] = 0
        for i in range(PERF_EVENTS):
            s.perf_taken[bank, i] = _event(s, np.int64(i)) - s.perf_since[bank, i]
    if rising & START:
        s.perf_on[bank] = 1
        for i in range(PERF_EVENTS):
            s.perf_since[bank, i] = _event(s, np.int64(i))


@njit
def _store_control(s: Any, offset: Any, value: Any) -> Any:
    """A control register, of one bank or of two."""
    if value & ~(START | STOP):
        return rules.FIELD
    rising = value & ~np.int64(s.debug[offset >> 2])
    for bank in range(len(_FIRST)):
        named = offset == _FIRST[bank] + 8 or (offset == _ALL and (bank == _FPU or bank == _THREAD))
        mode = np.int64(s.debug[(_FIRST[bank] + 4) >> 2]) & _MODE
        if named and value & START and (s.timed[0] != MODELLED or mode != 0):
            return COUNTING
    s.debug[offset >> 2] = np.uint32(value)
    for bank in range(len(_FIRST)):
        if offset == _FIRST[bank] + 8 or (offset == _ALL and (bank == _FPU or bank == _THREAD)):
            _rises(s, np.int64(bank), rising)
    return DONE


@njit
def _selected(s: Any, bank: Any) -> Any:
    """The event that the mode register of a bank selects; -1: it is not modelled."""
    select = np.int64(s.debug[(_FIRST[bank] + 4) >> 2]) >> _SELECT
    if bank == _FPU and select <= 1:
        return np.int64(_MATRIX_WORKS) + select
    if bank == _THREAD and select == _THREAD_WORDS:
        return np.int64(_WORDS)
    return np.int64(-1)


@njit
def _load_value(s: Any, offset: Any) -> Any:
    """An output of a bank: cycles, or the selected event."""
    bank, event = np.int64(_OF_OUTPUT[(offset - _OUT) >> 3]), np.int64(_CYCLES)
    if offset & 4:
        event = _selected(s, bank)
    if s.timed[0] != MODELLED or event < 0:
        return VALUE
    count = s.perf_taken[bank, event]
    if s.perf_on[bank]:
        count = _event(s, event) - s.perf_since[bank, event]
    s.loaded[0] = count & 0xFFFFFFFF
    return DONE


def _bank(name: str) -> tuple[Register, ...]:
    """Reference period, mode and control of a bank, and its outputs."""
    first = _FIRST[_BANKS.index(name)]
    ways = (KEPT, KEPT, _store_control)
    out, shown = _OUT + 8 * _OUTPUTS.index(name), name.replace("L1_", "DBG_L1")
    clock = Effect.CLOCK
    return (
        *(
            Register(f"{_PREFIX}PERF_CNT_{name}{i}", first + 4 * i, KEPT, way)
            for i, way in enumerate(ways)
        ),
        Register(f"{_PREFIX}PERF_CNT_OUT_L_{shown}", out, _load_value, None, effect=clock),
        Register(f"{_PREFIX}PERF_CNT_OUT_H_{shown}", out + 4, _load_value, None, effect=clock),
    )


REGISTERS = (
    *(register for name in _BANKS for register in _bank(name)),
    Register(_PREFIX + "PERF_CNT_ALL", _ALL, KEPT, _store_control),
    Register(_PREFIX + "PERF_CNT_MUX_CTRL", mm.RISCV_DEBUG_REG_PERF_CNT_MUX_CTRL),
)
