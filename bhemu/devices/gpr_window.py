"""Tensix GPRs, 0xFFE00000: BRISC sees all 192, a TRISC its own 64 (ScalarUnit, Blackhole ISA)."""

from typing import Any

import numpy as np

from bhemu.devices import rules
from bhemu.jit.subset import njit


@njit
def _place(s: Any, c: Any, offset: Any) -> Any:
    """Index into the 192 GPRs, or -1 with `access` set."""
    if c == 0 and offset < 0x300:
        return offset >> 2
    if 1 <= c <= 3 and offset < 0x100:
        return (c - 1) * 64 + (offset >> 2)
    s.access[0] = rules.WRONG_CORE if c > 3 else rules.UNMAPPED
    return np.int64(-1)


@njit
def read(s: Any, c: Any, offset: Any) -> Any:
    """The 32-bit GPR at `offset`."""
    i = _place(s, c, offset)
    return np.int64(0) if i < 0 else np.int64(s.gpr[i >> 6, i & 63])


@njit
def write(s: Any, c: Any, offset: Any, value: Any) -> None:
    """Store one GPR."""
    i = _place(s, c, offset)
    if i >= 0:
        s.gpr[i >> 6, i & 63] = np.uint32(value)
