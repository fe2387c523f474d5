"""The debug daisychain, 0xFFB12048: what it presents is loaded, or written to L1 at a trigger.

Source: DebugDaisychain (Wormhole ISA). Signals that are not modelled are refused by their numbers,
and so are samples at intervals.
"""

from typing import Any

import numpy as np

from bhemu import memmap as mm
from bhemu.devices import debug_port
from bhemu.devices.bus.window import KEPT, Effect, Register
from bhemu.devices.debug_signals import UNKNOWN, present
from bhemu.jit.subset import njit
from bhemu.tensix import state
from bhemu.tensix.rules import DONE, UNIMPLEMENTED, error, refuse

SIGNAL = error(
    "DEBUG-BUS",
    UNIMPLEMENTED,
    "signals {signal} of debug daisychain {chain} are not modelled (control {control:#010x})",
    "where the cores stand, RWC and ADC counters are: chains 7, 3 and 6",
)
SAMPLES = error(
    "DEBUG-BUS-SAMPLES",
    UNIMPLEMENTED,
    "DBG_L1_MEM_REG2 = {value:#x} asks the debug daisychain for samples at intervals",
    "write mode 0 or 1 writes one sample for each trigger",
)
_CONTROL = mm.RISCV_DEBUG_REG_DBG_BUS_CNTL_REG >> 2
_TARGET = mm.RISCV_DEBUG_REG_DBG_L1_MEM_REG0 >> 2  # L1 address >> 4
_WRITING = mm.RISCV_DEBUG_REG_DBG_L1_MEM_REG2 >> 2
_ENABLED = 1 << 29
_TRIGGER, _MODE, _NEXT = 1 << 12, 15, 1
_REACH = 1 << 16  # targets in the low 1 MiB


@njit
def _word(s: Any, control: Any, part: Any) -> Any:
    """One of the four words that are presented, or UNKNOWN."""
    if control & _ENABLED == 0:
        return np.int64(UNKNOWN)
    return present(s, (control >> 16) & 0xFF, control & 0xFFFF, part)


@njit
def _refused(s: Any, control: Any) -> Any:
    return refuse(s, SIGNAL, signal=control & 0xFFFF, chain=(control >> 16) & 0xFF, control=control)


@njit
def _store_control(s: Any, value: Any) -> Any:
    """What is presented; who asks is a debugger."""
    debug_port.adopt(s)
    s.debug[_CONTROL] = np.uint32(value)
    return DONE


@njit
def _load(s: Any) -> Any:
    """The selected 32 of 128 bits."""
    control = np.int64(s.debug[_CONTROL])
    word = _word(s, control, (control >> 25) & 3)
    if word == UNKNOWN:
        return _refused(s, control)
    s.loaded[0] = word
    return DONE


@njit
def _store_writing(s: Any, value: Any) -> Any:
    """A trigger that rises writes all 128 bits to L1."""
    if value & _TRIGGER and not s.debug[_WRITING] & np.uint32(_TRIGGER):
        control, target = np.int64(s.debug[_CONTROL]), np.int64(s.debug[_TARGET])
        if value & _MODE > _NEXT or target >= _REACH:
            return refuse(s, SAMPLES, value=value)
        if _word(s, control, np.int64(0)) == UNKNOWN:
            return _refused(s, control)
        words = s.l1.view(np.uint32)
        for part in range(4):
            words[4 * target + part] = np.uint32(_word(s, control, np.int64(part)))
        state.written(s, 16 * target, np.int64(16))
        s.debug[_TARGET] += np.uint32(value & _MODE)
    s.debug[_WRITING] = np.uint32(value)
    return DONE


def _register(name: str, *ways: Any, effect: Effect = Effect.NONE) -> Register:
    """A register that memmap names."""
    name = f"RISCV_DEBUG_REG_DBG_{name}"
    return Register(name, getattr(mm, name), *ways, effect=effect)


REGISTERS = (
    _register("L1_MEM_REG0"),
    _register("L1_MEM_REG1"),
    _register("L1_MEM_REG2", KEPT, _store_writing),
    _register("BUS_CNTL_REG", KEPT, _store_control),
    _register("RD_DATA", _load, None, effect=Effect.VARIES),
)
