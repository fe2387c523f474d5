"""What the next instruction accesses, for watchpoints of the debug port; for both engines."""

from typing import Any

import numpy as np

from bhemu.devices import debug_port
from bhemu.jit.subset import njit
from bhemu.riscv import core_step
from bhemu.riscv.formats import Atomic, Load, Store

_LOAD, _STORE, _AMO = (kind.code() for kind in (Load, Store, Atomic))


@njit
def announce(s: Any, c: Any, word: Any, base: Any) -> None:
    """The word that core `c` executes next, with `base` in rs1."""
    low = word & 0x7F
    if low == _AMO:
        debug_port.watch(s, c, base, np.int64(4), True, True)
    elif low == _LOAD or low == _STORE:
        size = core_step.size(word)
        if size > 0:
            at = core_step.address(word, base)
            debug_port.watch(s, c, at, size, low == _LOAD, low == _STORE)
