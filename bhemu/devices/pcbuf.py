"""PCBuf, Manual TTSync and the semaphore window, 0xFFE80000 (PCBufs, ManualTTSync, SyncUnit)."""

from typing import Any

import numpy as np

from bhemu import memmap as mm
from bhemu.devices import rules
from bhemu.devices.bus.window import TENSIX_CORES, Effect, Window
from bhemu.jit.subset import njit
from bhemu.tensix import semaphores
from bhemu.tensix.frontend import drained, mop_drained
from bhemu.tensix.rules import DONE, condition
from bhemu.tensix.state import BLOCKED

DRAIN = condition("its Tensix thread to execute every queued word (TTSync)")
MOP_DRAIN = condition("the MOP expander of its thread to finish (TTSync)")
PCBUF_EMPTY = condition("a PCBuf entry from brisc")
PCBUF_FULL = condition("room in the PCBuf")
PCBUF_BUSY = condition("the TRISC to empty its PCBuf and its Tensix thread to become idle")

_DEPTH = 16
_OVERRIDE = mm.RISCV_DEBUG_REG_TRISC_PC_BUF_OVERRIDE
_ENABLED_BUSY = 3
_DISCARDED = (
    0,
    mm.PC_BUF_TTSYNC_OFFSET,
    mm.PC_BUF_MOP_SYNC_OFFSET,
)  # stores of a TRISC to PCBuf and TTSync


@njit
def _override(s: Any, t: Any) -> Any:
    """TRISC_PC_BUF_OVERRIDE of thread `t`: OverrideEn, OverrideBusy, OverrideValue (8 bits)."""
    return (np.int64(s.debug[_OVERRIDE >> 2]) >> (10 * t)) & 0x3FF


@njit
def _load_trisc(s: Any, t: Any, offset: Any) -> Any:
    if offset == 0:
        if s.pcbuf_write[t] == s.pcbuf_read[t]:
            s.loaded[0] = _override(s, t) >> 2
            return DONE if _override(s, t) & 1 else PCBUF_EMPTY
        s.load_acted[0] = 1
        s.loaded[0] = s.pcbuf[t, s.pcbuf_read[t] % _DEPTH]
        s.pcbuf_read[t] += 1
        return DONE
    if mm.PC_BUF_SEMAPHORES_OFFSET <= offset < mm.PC_BUF_SEMAPHORES_END_OFFSET:
        s.loaded[0] = s.sem[(offset - mm.PC_BUF_SEMAPHORES_OFFSET) >> 2]
        return DONE
    if offset != mm.PC_BUF_TTSYNC_OFFSET and offset != mm.PC_BUF_MOP_SYNC_OFFSET:
        return rules.UNMAPPED
    s.loaded[0] = 0
    if _override(s, t) & 3 == _ENABLED_BUSY:
        return DONE
    if offset == mm.PC_BUF_TTSYNC_OFFSET:
        return DONE if drained(s, t) else DRAIN
    return DONE if mop_drained(s, t) else MOP_DRAIN


@njit
def load(s: Any, c: Any, offset: Any) -> Any:
    """A TRISC pops, syncs or reads a semaphore; for brisc a load is a barrier."""
    if c == 0:
        t = offset >> 16
        s.loaded[0] = 0
        if _override(s, t) & 3 == _ENABLED_BUSY:
            return DONE
        waits = s.core_state[t + 1] == BLOCKED and s.core_wait[t + 1] == PCBUF_EMPTY
        if s.pcbuf_write[t] != s.pcbuf_read[t] or not waits or not drained(s, t):
            return PCBUF_BUSY
        return DONE
    return _load_trisc(s, c - 1, offset) if offset < mm.PC_BUF_OTHERS else rules.WRONG_CORE


@njit
def store(s: Any, c: Any, offset: Any, value: Any) -> Any:
    """brisc pushes; a TRISC's store posts (even) or takes (odd) a semaphore, else is discarded."""
    if c == 0:
        t = offset >> 16
        if s.pcbuf_write[t] - s.pcbuf_read[t] >= _DEPTH:
            return PCBUF_FULL
        s.pcbuf[t, s.pcbuf_write[t] % _DEPTH] = np.uint32(value)
        s.pcbuf_write[t] += 1
        return DONE
    if offset >= mm.PC_BUF_OTHERS:
        return rules.WRONG_CORE
    if mm.PC_BUF_SEMAPHORES_OFFSET <= offset < mm.PC_BUF_SEMAPHORES_END_OFFSET:
        i = (offset - mm.PC_BUF_SEMAPHORES_OFFSET) >> 2
        status = semaphores.store(s, i, value)
        if status == DONE:
            semaphores.note(s, i, value & 1, np.int64(3), c, s.pc[c])
        return status
    return DONE if offset <= _DISCARDED[-1] else rules.UNMAPPED


def _load_effect(s: Any, core: int, offset: int) -> Effect:
    """A load of a TRISC takes an entry where there is one."""
    takes = core > 0 and offset == 0 and s.pcbuf_write[core - 1] != s.pcbuf_read[core - 1]
    return Effect.CHANGES if takes else Effect.NONE


def _store_effect(s: Any, core: int, offset: int) -> Effect:
    return Effect.NONE if core > 0 and offset in _DISCARDED else Effect.CHANGES


WINDOW = Window(
    *("PCBuf, TTSync, semaphores", mm.PC_BUF_BASE, mm.PC_BUF_END, load, store),
    agents=TENSIX_CORES,
    load_effect=_load_effect,
    store_effect=_store_effect,
)
