"""Debug access to the instruction FIFOs: INSTRN_BUF_CTRL0, CTRL1 and STATUS, 0xFFB120A0.

Source: PushTensixInstruction, "Debug registers", Blackhole ISA.  bhemu has one FIFO per thread,
which stands for those before the MOP and the Replay expander.
"""

from typing import Any

import numpy as np

from bhemu import memmap as mm
from bhemu.devices import rules
from bhemu.jit.subset import njit
from bhemu.tensix.frontend import put, queued
from bhemu.tensix.state import FIFO_DEPTH, THREADS
from bhemu.tensix.status import UB, error

CONTROLLED = error(
    "PUSH-DEBUG",
    UB,
    "push to {0:#010x} while the debug bus controls the FIFO: the word is likely to be lost",
    "clear the thread's bit of INSTRN_BUF_CTRL0 first",
)
FULL = error(
    "PUSH-DEBUG-FULL",
    UB,
    "INSTRN_BUF_CTRL0 = {1:#x} pushes on a FIFO that is full",
    "wait until INSTRN_BUF_STATUS shows room",
)

_CTRL0, _CTRL1 = mm.RISCV_DEBUG_REG_INSTRN_BUF_CTRL0, mm.RISCV_DEBUG_REG_INSTRN_BUF_CTRL1
_STATUS = mm.RISCV_DEBUG_REG_INSTRN_BUF_STATUS
_PUSH = 4  # first push bit
_AFTER_MOP = 0  # as a word from brisc
_KEPT = 0xFF


@njit
def controlled(s: Any, t: Any) -> Any:
    """True while the debug bus has control of the FIFO of thread `t`."""
    return (np.int64(s.debug[_CTRL0 >> 2]) >> t) & 1 != 0


@njit
def ours(offset: Any) -> Any:
    """True for the three registers of this file."""
    return _CTRL0 <= offset <= _STATUS


@njit
def read(s: Any, offset: Any) -> Any:
    """CTRL0 and CTRL1 as stored; STATUS: bit t = not full, bit 4 + t = empty."""
    if offset != _STATUS:
        return np.int64(s.debug[offset >> 2])
    status = np.int64(0)
    for t in range(THREADS):
        if queued(s, t) < FIFO_DEPTH:
            status |= 1 << t
        if queued(s, t) == 0 and s.mop_on[t] == 0:
            status |= 16 << t
    return status


@njit
def write(s: Any, offset: Any, value: Any) -> None:
    """A push bit that rises puts CTRL1 on the FIFO of a thread that the debug bus controls."""
    if offset == _STATUS:
        s.access[0] = rules.READ_ONLY
        return
    if offset == _CTRL0:
        rising = value & ~np.int64(s.debug[_CTRL0 >> 2]) & (value << _PUSH)
        for t in range(THREADS):
            if (rising >> (_PUSH + t)) & 1 and queued(s, t) >= FIFO_DEPTH:
                s.access[0] = FULL
                return
        for t in range(THREADS):
            if (rising >> (_PUSH + t)) & 1:
                put(s, t, np.int64(_AFTER_MOP), s.debug[_CTRL1 >> 2], np.uint32(0))
        value &= _KEPT
    s.debug[offset >> 2] = np.uint32(value)
