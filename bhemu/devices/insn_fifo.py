"""The instruction FIFOs at 0xFFE40000, 0xFFE50000 and 0xFFE60000, and the MOP configuration."""

from typing import Any

import numpy as np

from bhemu.devices import debug_regs, rules
from bhemu.devices.bus.window import AT_ONCE, TENSIX_CORES, TRISCS, WORD, Effect, Waits, Window
from bhemu.devices.rules import access_error
from bhemu.jit.intrinsics import call_step
from bhemu.jit.subset import njit
from bhemu.memmap import INSTRN_BUF_BASE, INSTRN_BUF_END, MOP_CFG_BASE, MOP_CFG_END
from bhemu.tensix.frontend import FIFO_FULL, put, queued
from bhemu.tensix.rules import DONE, UB
from bhemu.tensix.state import FIFO_DEPTH

# Instruction push, 0xFFE40000 / 0xFFE50000 / 0xFFE60000 (PushTensixInstruction, Blackhole ISA).

TRISC_WINDOW = access_error("PUSH-TRISC", UB, "a TRISC store to {address:#010x} hangs the core: a TRISC pushes to its own thread at 0xFFE40000")  # fmt: skip
_DRAIN = 1 << 16


@njit
def store(s: Any, c: Any, offset: Any, value: Any) -> Any:
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
            return rules.RETRY
        if queued(s, t) >= FIFO_DEPTH:
            return FIFO_FULL
    put(s, t, c, value, s.pc[c])
    return DONE


def _store_effect(s: Any, core: int, offset: int) -> Effect | Waits:
    """A push waits while the FIFO is full."""
    t = offset >> 16 if core == 0 else core - 1
    full = s.fifo_write[t] - s.fifo_read[t] >= FIFO_DEPTH
    return FIFO_FULL if full else Effect.CHANGES


WINDOW = Window(
    *("instruction push", INSTRN_BUF_BASE, INSTRN_BUF_END),
    store=store,
    agents=TENSIX_CORES,
    order=AT_ONCE,
    store_effect=_store_effect,
)


# MOP expander configuration, 0xFFB80000: nine write-only words, each TRISC its own.


@njit
def mop_cfg_store(s: Any, c: Any, offset: Any, value: Any) -> Any:
    """Store MOP word offset/4 of the core's own thread."""
    s.mop_cfg[c - 1, min(offset >> 2, 8)] = np.uint32(value)
    return DONE


MOP_CFG_WINDOW = Window(
    *("MOP expander configuration", MOP_CFG_BASE, MOP_CFG_END),
    store=mop_cfg_store,
    loads=WORD,
    agents=TRISCS,
)
