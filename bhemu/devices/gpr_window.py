"""Tensix GPRs, 0xFFE00000: BRISC sees all 192, a TRISC its own 64 (ScalarUnit, Blackhole ISA)."""

from typing import Any

import numpy as np

from bhemu.devices import rules
from bhemu.devices.bus.window import TENSIX_CORES, TRACKED_GPRS, Effect, Window
from bhemu.jit.subset import njit
from bhemu.memmap import GPR_BASE, GPR_END
from bhemu.tensix.rules import DONE


@njit
def _place(c: Any, offset: Any) -> Any:
    """Index into the 192 GPRs, or -1."""
    if c == 0 and offset < 0x300:
        return offset >> 2
    if c > 0 and offset < 0x100:
        return (c - 1) * 64 + (offset >> 2)
    return np.int64(-1)


@njit
def load(s: Any, c: Any, offset: Any) -> Any:
    """Load the 32-bit GPR at `offset`."""
    i = _place(c, offset)
    if i < 0:
        return rules.UNMAPPED
    s.loaded[0] = s.gpr[i >> 6, i & 63]
    return DONE


@njit
def store(s: Any, c: Any, offset: Any, value: Any) -> Any:
    """Store one GPR."""
    i = _place(c, offset)
    if i < 0:
        return rules.UNMAPPED
    s.gpr[i >> 6, i & 63] = np.uint32(value)
    return DONE


WINDOW = Window(
    *("Tensix GPRs", GPR_BASE, GPR_END, load, store),
    agents=TENSIX_CORES,
    order=TRACKED_GPRS,
    store_effect=Effect.STORAGE,
)
