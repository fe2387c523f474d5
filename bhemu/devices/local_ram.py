"""The slow path to the cores' local memories, 0xFFB14000: every core and the host sees all five."""

from typing import Any

import numpy as np

from bhemu.devices import rules
from bhemu.jit.subset import njit

_ORDER = (0, 4, 1, 2, 3)  # slots: brisc, ncrisc, trisc0, trisc1, trisc2
_SIZES = (0x2000, 0x2000, 0x1000, 0x1000, 0x1000)


@njit
def _place(s: Any, offset: Any) -> Any:
    slot = offset >> 13
    if (offset & 0x1FFF) >= _SIZES[slot]:
        s.access[0] = rules.UNMAPPED
        return np.int64(-1)
    return np.int64(_ORDER[slot])


@njit
def read(s: Any, c: Any, offset: Any) -> Any:
    """The aligned word that holds `offset`."""
    core = _place(s, offset)
    if core < 0:
        return np.int64(0)
    return np.int64(s.local[core].view(np.uint32)[(offset & 0x1FFF) >> 2])


@njit
def write(s: Any, c: Any, offset: Any, value: Any, size: Any) -> None:
    """Store 1, 2 or 4 bytes."""
    core = _place(s, offset)
    if core >= 0:
        for i in range(size):
            s.local[core, (offset & 0x1FFF) + i] = np.uint8((value >> (8 * i)) & 0xFF)
