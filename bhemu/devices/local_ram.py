"""The slow path to the cores' local memories, 0xFFB14000: every core and the host sees all five."""

from typing import Any

import numpy as np

from bhemu.devices import rules
from bhemu.devices.bus.window import ANY, BY_BYTES, Effect, Window
from bhemu.devices.debug_regs import ORDER as _ORDER
from bhemu.jit.subset import njit
from bhemu.memmap import LOCAL_SIZES, LOCAL_SLOW_BASE, LOCAL_SLOW_END
from bhemu.tensix.rules import DONE

_SIZES = tuple(LOCAL_SIZES[core] for core in _ORDER)


@njit
def _place(offset: Any) -> Any:
    """The core whose memory it is, or -1."""
    slot = offset >> 13
    return np.int64(_ORDER[slot] if (offset & 0x1FFF) < _SIZES[slot] else -1)


@njit
def load(s: Any, offset: Any) -> Any:
    """Load the aligned word at `offset`."""
    core = _place(offset)
    if core < 0:
        return rules.UNMAPPED
    s.loaded[0] = s.local[core].view(np.uint32)[(offset & 0x1FFF) >> 2]
    return DONE


@njit
def store(s: Any, offset: Any, size: Any, value: Any) -> Any:
    """Store 1, 2 or 4 bytes."""
    core = _place(offset)
    if core < 0:
        return rules.UNMAPPED
    for i in range(size):
        s.local[core, (offset & 0x1FFF) + i] = np.uint8((value >> (8 * i)) & 0xFF)
    return DONE


WINDOW = Window(
    *("local data RAM, slow path", LOCAL_SLOW_BASE, LOCAL_SLOW_END, load, store),
    stores=ANY | BY_BYTES,
    load_effect=Effect.CHANGES,  # a core may be storing there
)
