"""Queues between cores and the coprocessor: pushed words, PCBuf, semaphores, mailboxes."""

from typing import Any

import numpy as np

from bhemu import memmap as mm
from bhemu.devices import debug_regs
from bhemu.devices.bus import window
from bhemu.devices.bus.window import access_error
from bhemu.jit.intrinsics import call_step
from bhemu.jit.subset import njit
from bhemu.tensix import semaphores
from bhemu.tensix.frontend import FIFO_FULL, drained, mop_drained, put, queued
from bhemu.tensix.rules import DONE, UB, condition
from bhemu.tensix.state import BLOCKED, FIFO_DEPTH

# Instruction push, 0xFFE40000 / 0xFFE50000 / 0xFFE60000 (PushTensixInstruction, Blackhole ISA).

TRISC_WINDOW = access_error("PUSH-TRISC", UB, "a TRISC store to {address:#010x} hangs the core: a TRISC pushes to its own thread at 0xFFE40000")  # fmt: skip
_DRAIN = 1 << 16


@njit
def push(s: Any, c: Any, offset: Any, value: Any) -> Any:
    """Push `value`; offset from 0xFFE40000. Waits, before any effect, while the FIFO is full.

    Without room the coprocessor runs as far as it can. An open sweep is one that a stop has cut
    short: the repeated push resumes it first.
    """
    t = offset >> 16
    if c > 0:
        if t != 0:
            return TRISC_WINDOW
        t = c - 1
    if debug_regs.controlled(s, t):
        return debug_regs.CONTROLLED
    if queued(s, t) >= FIFO_DEPTH or s.sweep_open[0]:
        call_step(s.run_tensix[0], s, np.int64(_DRAIN))
        if s.status[0] > 0:
            return window.RETRY
        if queued(s, t) >= FIFO_DEPTH:
            return FIFO_FULL
    put(s, t, c, value, s.pc[c])
    return DONE


def _push_effect(s: Any, core: int, offset: int) -> window.Effect | window.Waits:
    """A push waits while the FIFO is full."""
    t = offset >> 16 if core == 0 else core - 1
    full = s.fifo_write[t] - s.fifo_read[t] >= FIFO_DEPTH
    return FIFO_FULL if full else window.Effect.CHANGES


PUSH_WINDOW = window.Window(
    *("instruction push", mm.INSTRN_BUF_BASE, mm.INSTRN_BUF_END),
    store=push,
    agents=window.TENSIX_CORES,
    order=window.AT_ONCE,
    store_effect=_push_effect,
)


# MOP expander configuration, 0xFFB80000: nine write-only words, each TRISC its own.


@njit
def mop_cfg_store(s: Any, c: Any, offset: Any, value: Any) -> Any:
    """Store MOP word offset/4 of the core's own thread."""
    s.mop_cfg[c - 1, min(offset >> 2, 8)] = np.uint32(value)
    return DONE


MOP_CFG_WINDOW = window.Window(
    *("MOP expander configuration", mm.MOP_CFG_BASE, mm.MOP_CFG_END),
    store=mop_cfg_store,
    loads=window.WORD,
    agents=window.TRISCS,
)


# PCBuf, Manual TTSync and the semaphore window, 0xFFE80000 (PCBufs, ManualTTSync, SyncUnit).


DRAIN = condition("its Tensix thread to execute every queued word (TTSync)")
MOP_DRAIN = condition("the MOP expander of its thread to finish (TTSync)")
PCBUF_EMPTY = condition("a PCBuf entry from brisc")
PCBUF_FULL = condition("room in the PCBuf")
PCBUF_BUSY = condition("the TRISC to empty its PCBuf and its Tensix thread to become idle")

_PCBUF_DEPTH = 16
_OVERRIDE = mm.RISCV_DEBUG_REG_TRISC_PC_BUF_OVERRIDE
_ENABLED_BUSY = 3
# Stores of a TRISC to PCBuf and TTSync.
_DISCARDED = (0, mm.PC_BUF_TTSYNC_OFFSET, mm.PC_BUF_MOP_SYNC_OFFSET)


@njit
def _override(s: Any, t: Any) -> Any:
    """TRISC_PC_BUF_OVERRIDE of thread `t`: OverrideEn, OverrideBusy, OverrideValue (8 bits)."""
    return (np.int64(s.debug[_OVERRIDE >> 2]) >> (10 * t)) & 0x3FF


@njit
def pcbuf_load(s: Any, c: Any, offset: Any) -> Any:
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
    if offset >= mm.PC_BUF_OTHERS:
        return window.WRONG_CORE
    t = c - 1
    if offset == 0:
        if s.pcbuf_write[t] == s.pcbuf_read[t]:
            s.loaded[0] = _override(s, t) >> 2
            return DONE if _override(s, t) & 1 else PCBUF_EMPTY
        s.load_acted[0] = 1
        s.loaded[0] = s.pcbuf[t, s.pcbuf_read[t] % _PCBUF_DEPTH]
        s.pcbuf_read[t] += 1
        return DONE
    if mm.PC_BUF_SEMAPHORES_OFFSET <= offset < mm.PC_BUF_SEMAPHORES_END_OFFSET:
        s.loaded[0] = s.sem[(offset - mm.PC_BUF_SEMAPHORES_OFFSET) >> 2]
        return DONE
    if offset != mm.PC_BUF_TTSYNC_OFFSET and offset != mm.PC_BUF_MOP_SYNC_OFFSET:
        return window.UNMAPPED
    s.loaded[0] = 0
    if _override(s, t) & 3 == _ENABLED_BUSY:
        return DONE
    if offset == mm.PC_BUF_TTSYNC_OFFSET:
        return DONE if drained(s, t) else DRAIN
    return DONE if mop_drained(s, t) else MOP_DRAIN


@njit
def pcbuf_store(s: Any, c: Any, offset: Any, value: Any) -> Any:
    """brisc pushes; a TRISC's store posts (even) or takes (odd) a semaphore, else is discarded."""
    if c == 0:
        t = offset >> 16
        if s.pcbuf_write[t] - s.pcbuf_read[t] >= _PCBUF_DEPTH:
            return PCBUF_FULL
        s.pcbuf[t, s.pcbuf_write[t] % _PCBUF_DEPTH] = np.uint32(value)
        s.pcbuf_write[t] += 1
        return DONE
    if offset >= mm.PC_BUF_OTHERS:
        return window.WRONG_CORE
    if mm.PC_BUF_SEMAPHORES_OFFSET <= offset < mm.PC_BUF_SEMAPHORES_END_OFFSET:
        i = (offset - mm.PC_BUF_SEMAPHORES_OFFSET) >> 2
        status = semaphores.store(s, i, value)
        if status == DONE:
            semaphores.note(s, i, value & 1, np.int64(3), c, s.pc[c])
        return status
    return DONE if offset <= _DISCARDED[-1] else window.UNMAPPED


def _pcbuf_load_effect(s: Any, core: int, offset: int) -> window.Effect:
    """A load of a TRISC takes an entry where there is one."""
    takes = core > 0 and offset == 0 and s.pcbuf_write[core - 1] != s.pcbuf_read[core - 1]
    return window.Effect.CHANGES if takes else window.Effect.NONE


def _pcbuf_store_effect(s: Any, core: int, offset: int) -> window.Effect:
    return window.Effect.NONE if core > 0 and offset in _DISCARDED else window.Effect.CHANGES


PCBUF_WINDOW = window.Window(
    *("PCBuf, TTSync, semaphores", mm.PC_BUF_BASE, mm.PC_BUF_END, pcbuf_load, pcbuf_store),
    agents=window.TENSIX_CORES,
    load_effect=_pcbuf_load_effect,
    store_effect=_pcbuf_store_effect,
)


# Mailboxes between brisc and the TRISCs, 0xFFEC0000 + 0x1000 n (Mailboxes, ISA).


MAILBOX_EMPTY = condition("a mailbox message")
MAILBOX_FULL = condition("room in the mailboxes it writes (4 words in all)")
_MAILBOX_DEPTH = 4


@njit
def mailbox_load(s: Any, c: Any, offset: Any) -> Any:
    """Pop the mailbox n -> c (waits while empty); with address bit 2 set: 1 when data waits."""
    n = offset >> 12
    waiting = s.mailbox_write[n, c] - s.mailbox_read[n, c]
    if offset & 4:
        s.loaded[0] = 1 if waiting else 0
        return DONE
    if waiting == 0:
        return MAILBOX_EMPTY
    s.load_acted[0] = 1
    s.loaded[0] = s.mailbox[n, c, s.mailbox_read[n, c] % _MAILBOX_DEPTH]
    s.mailbox_read[n, c] += 1
    return DONE


@njit
def mailbox_store(s: Any, c: Any, offset: Any, value: Any) -> Any:
    """Push on the mailbox c -> n; the four mailboxes of a writer hold four words together."""
    n = offset >> 12
    held = np.int64(0)
    for i in range(4):
        held += s.mailbox_write[c, i] - s.mailbox_read[c, i]
    if held >= _MAILBOX_DEPTH:
        return MAILBOX_FULL
    s.mailbox[c, n, s.mailbox_write[c, n] % _MAILBOX_DEPTH] = np.uint32(value)
    s.mailbox_write[c, n] += 1
    return DONE


def _mailbox_load_effect(s: Any, core: int, offset: int) -> window.Effect:
    """A load takes an entry where there is one."""
    n = offset >> 12
    takes = not offset & 4 and s.mailbox_write[n, core] != s.mailbox_read[n, core]
    return window.Effect.CHANGES if takes else window.Effect.NONE


MAILBOX_WINDOW = window.Window(
    *("mailboxes", mm.MAILBOX_BASE, mm.MAILBOX_END, mailbox_load, mailbox_store),
    agents=window.TENSIX_CORES,
    load_effect=_mailbox_load_effect,
)
