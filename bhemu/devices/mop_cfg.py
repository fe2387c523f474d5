"""MOP expander configuration, 0xFFB80000: nine write-only words, each TRISC its own."""

from typing import Any

import numpy as np

from bhemu.devices import rules
from bhemu.jit.subset import njit


@njit
def write(s: Any, c: Any, offset: Any, value: Any) -> None:
    """Store MOP word offset/4 of the core's own thread."""
    if c < 1 or c > 3:
        s.access[0] = rules.WRONG_CORE
    else:
        s.mop_cfg[c - 1, min(offset >> 2, 8)] = np.uint32(value)
