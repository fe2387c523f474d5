"""Debug access to the instruction FIFOs: INSTRN_BUF_CTRL0, CTRL1 and STATUS, 0xFFB120A0.

Source: PushTensixInstruction, "Debug registers", Blackhole ISA.  bhemu has one FIFO per thread,
which stands for those before the MOP and the Replay expander.
"""

from typing import Any

import numpy as np

from bhemu import memmap as mm
from bhemu.devices.rules import access_error
from bhemu.jit.subset import njit
from bhemu.tensix.frontend import put, queued
from bhemu.tensix.rules import DONE, UB
from bhemu.tensix.state import FIFO_DEPTH, THREADS

CONTROLLED = access_error(
    "PUSH-DEBUG",
    UB,
    "push to {address:#010x} while the debug bus controls the FIFO: the word is likely to be lost",
    "clear the thread's bit of INSTRN_BUF_CTRL0 first",
)
FULL = access_error(
    "PUSH-DEBUG-FULL",
    UB,
    "INSTRN_BUF_CTRL0 = {value:#x} pushes on a FIFO that is full",
    "wait until INSTRN_BUF_STATUS shows room",
)

_CTRL0, _CTRL1 = mm.RISCV_DEBUG_REG_INSTRN_BUF_CTRL0, mm.RISCV_DEBUG_REG_INSTRN_BUF_CTRL1
_PUSH = 4  # first push bit
_AFTER_MOP = 0  # as a word from brisc
_KEPT = 0xFF


@njit
def controlled(s: Any, t: Any) -> Any:
    """True while the debug bus has control of the FIFO of thread `t`."""
    return (np.int64(s.debug[_CTRL0 >> 2]) >> t) & 1 != 0


@njit
def load_status(s: Any) -> Any:
    """INSTRN_BUF_STATUS: bit t = not full, bit 4 + t = empty."""
    status = np.int64(0)
    for t in range(THREADS):
        if queued(s, t) < FIFO_DEPTH:
            status |= 1 << t
        if queued(s, t) == 0 and s.mop_on[t] == 0:
            status |= 16 << t
    s.loaded[0] = status
    return DONE


@njit
def store_control(s: Any, value: Any) -> Any:
    """INSTRN_BUF_CTRL0: a push bit that rises puts CTRL1 on the FIFO of a controlled thread."""
    rising = value & ~np.int64(s.debug[_CTRL0 >> 2]) & (value << _PUSH)
    for t in range(THREADS):
        if (rising >> (_PUSH + t)) & 1 and queued(s, t) >= FIFO_DEPTH:
            return FULL
    for t in range(THREADS):
        if (rising >> (_PUSH + t)) & 1:
            put(s, t, np.int64(_AFTER_MOP), s.debug[_CTRL1 >> 2], np.uint32(0))
    s.debug[_CTRL0 >> 2] = np.uint32(value & _KEPT)
    return DONE
