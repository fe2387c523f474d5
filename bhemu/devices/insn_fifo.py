"""Instruction push, 0xFFE40000 / 0xFFE50000 / 0xFFE60000 (PushTensixInstruction, Blackhole ISA)."""

from typing import Any

import numpy as np

from bhemu.devices import instruction_debug, rules
from bhemu.jit.calls import call_step
from bhemu.jit.subset import njit
from bhemu.tensix.frontend import FIFO_FULL, put, queued
from bhemu.tensix.state import FIFO_DEPTH
from bhemu.tensix.status import DONE, UB, error

TRISC_WINDOW = error(
    "PUSH-TRISC",
    UB,
    "a TRISC store to {0:#010x} hangs the core: a TRISC pushes to its own thread at 0xFFE40000",
)
_DRAIN = 1 << 16


@njit
def _room(s: Any, t: Any) -> Any:
    """DONE, or why there is no room even after the coprocessor ran as far as it can.

    An open sweep is one that a stop has cut short: the repeated push resumes it first.
    """
    if queued(s, t) < FIFO_DEPTH and s.sweep_open[0] == 0:
        return DONE
    call_step(s.run_tensix[0], s, np.int64(_DRAIN))
    if s.status[0] > 0:
        return rules.RETRY
    return FIFO_FULL if queued(s, t) >= FIFO_DEPTH else DONE


@njit
def push(s: Any, c: Any, t: Any, word: Any) -> Any:
    """Append a word of core `c` to the FIFO of thread `t`; DONE, or why not, before any effect."""
    if instruction_debug.controlled(s, t):
        return instruction_debug.CONTROLLED
    status = _room(s, t)
    if status == DONE:
        put(s, t, c, word, s.pc[c])
    return status


@njit
def write(s: Any, c: Any, offset: Any, value: Any) -> None:
    """Push `value`; offset from 0xFFE40000. Waits, before any effect, while the FIFO is full."""
    window = offset >> 16
    if c == 0:
        t = window
    elif c <= 3:
        if window != 0:
            s.access[0] = TRISC_WINDOW
            return
        t = c - 1
    else:
        s.access[0] = rules.WRONG_CORE
        return
    s.access[0] = push(s, c, t, value)
