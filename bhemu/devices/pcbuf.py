"""PCBuf, Manual TTSync and the semaphore window, 0xFFE80000 (PCBufs, ManualTTSync, SyncUnit)."""

from typing import Any

import numpy as np

from bhemu.devices import rules
from bhemu.jit.subset import njit
from bhemu.memmap import RISCV_DEBUG_REG_TRISC_PC_BUF_OVERRIDE
from bhemu.tensix import semaphores
from bhemu.tensix.frontend import drained, mop_drained
from bhemu.tensix.state import BLOCKED
from bhemu.tensix.status import condition

DRAIN = condition("its Tensix thread to execute every queued word (TTSync)")
MOP_DRAIN = condition("the MOP expander of its thread to finish (TTSync)")
PCBUF_EMPTY = condition("a PCBuf entry from brisc")
PCBUF_FULL = condition("room in the PCBuf")
PCBUF_BUSY = condition("the TRISC to empty its PCBuf and its Tensix thread to become idle")

_DEPTH = 16
_OVERRIDE = RISCV_DEBUG_REG_TRISC_PC_BUF_OVERRIDE
_ENABLED_BUSY = 3


@njit
def _override(s: Any, t: Any) -> Any:
    """TRISC_PC_BUF_OVERRIDE of thread `t`: OverrideEn, OverrideBusy, OverrideValue (8 bits)."""
    return (np.int64(s.debug[_OVERRIDE >> 2]) >> (10 * t)) & 0x3FF


@njit
def _read_brisc(s: Any, t: Any) -> Any:
    if _override(s, t) & 3 == _ENABLED_BUSY:
        return np.int64(0)
    waits = s.core_state[t + 1] == BLOCKED and s.core_wait[t + 1] == PCBUF_EMPTY
    if s.pcbuf_write[t] != s.pcbuf_read[t] or not waits or not drained(s, t):
        s.access[0] = PCBUF_BUSY
    return np.int64(0)


@njit
def _read_trisc(s: Any, t: Any, offset: Any) -> Any:
    if offset == 0:
        if s.pcbuf_write[t] == s.pcbuf_read[t]:
            if _override(s, t) & 1:
                return _override(s, t) >> 2
            s.access[0] = PCBUF_EMPTY
            return np.int64(0)
        value = np.int64(s.pcbuf[t, s.pcbuf_read[t] % _DEPTH])
        s.pcbuf_read[t] += 1
        return value
    if offset == 4 or offset == 8:
        if _override(s, t) & 3 == _ENABLED_BUSY:
            return np.int64(0)
        if offset == 4 and not drained(s, t):
            s.access[0] = DRAIN
        elif offset == 8 and not mop_drained(s, t):
            s.access[0] = MOP_DRAIN
    elif 0x20 <= offset < 0x40:
        return s.sem[(offset - 0x20) >> 2]
    else:
        s.access[0] = rules.UNMAPPED
    return np.int64(0)


@njit
def read(s: Any, c: Any, offset: Any) -> Any:
    """A TRISC pops, syncs or reads a semaphore; for brisc a load is a barrier."""
    if c == 0:
        return _read_brisc(s, offset >> 16)
    if c <= 3 and offset < 0x10000:
        return _read_trisc(s, c - 1, offset)
    s.access[0] = rules.WRONG_CORE
    return np.int64(0)


@njit
def _write_brisc(s: Any, t: Any, value: Any) -> None:
    if s.pcbuf_write[t] - s.pcbuf_read[t] >= _DEPTH:
        s.access[0] = PCBUF_FULL
        return
    s.pcbuf[t, s.pcbuf_write[t] % _DEPTH] = np.uint32(value)
    s.pcbuf_write[t] += 1


@njit
def write(s: Any, c: Any, offset: Any, value: Any) -> None:
    """brisc pushes; a TRISC's store posts (even) or takes (odd) a semaphore, else is discarded."""
    if c == 0:
        _write_brisc(s, offset >> 16, value)
    elif c > 3 or offset >= 0x10000:
        s.access[0] = rules.WRONG_CORE
    elif 0x20 <= offset < 0x40:
        i = (offset - 0x20) >> 2
        s.access[0] = semaphores.store(s, i, value)
        if s.access[0] == 0:
            semaphores.note(s, i, value & 1, np.int64(3), c, s.pc[c])
    elif offset > 8:
        s.access[0] = rules.UNMAPPED
