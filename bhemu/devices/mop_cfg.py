"""MOP expander configuration, 0xFFB80000: nine write-only words, each TRISC its own."""

from typing import Any

import numpy as np

from bhemu.devices.bus.window import TRISCS, WORD, Window
from bhemu.jit.subset import njit
from bhemu.memmap import MOP_CFG_BASE, MOP_CFG_END
from bhemu.tensix.rules import DONE


@njit
def store(s: Any, c: Any, offset: Any, value: Any) -> Any:
    """Store MOP word offset/4 of the core's own thread."""
    s.mop_cfg[c - 1, min(offset >> 2, 8)] = np.uint32(value)
    return DONE


WINDOW = Window(
    *("MOP expander configuration", MOP_CFG_BASE, MOP_CFG_END),
    store=store,
    loads=WORD,
    who=TRISCS,
)
