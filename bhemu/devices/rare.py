"""Device accesses that few programs make, compiled on their first use (`s.rare`).

Together with the others they would be a third of what a first run has to compile.
"""

from typing import Any

import numpy as np

from bhemu import memmap as mm
from bhemu.devices import auto_sync, dst_window, tdma
from bhemu.jit.calls import call_access
from bhemu.jit.subset import njit

DST_READ, DST_WRITE, TDMA_WRITE, SYNC = range(4)


@njit
def call(s: Any, which: Any, c: Any, address: Any, size: Any, value: Any) -> Any:
    """Call one of ENTRIES."""
    return call_access(s.rare[which], s, np.int64(c), address, size, value)


def dst_read(s: Any, c: Any, address: Any, size: Any, value: Any) -> Any:
    """ACCESS entry: a load from the Dst window."""
    return np.int64(dst_window.read(s, c, address - mm.DST_WINDOW_BASE, size))


def dst_write(s: Any, c: Any, address: Any, size: Any, value: Any) -> Any:
    """ACCESS entry: a store to the Dst window."""
    dst_window.write(s, c, address - mm.DST_WINDOW_BASE, size, value)
    return np.int64(0)


def tdma_write(s: Any, c: Any, address: Any, size: Any, value: Any) -> Any:
    """ACCESS entry: a store to TDMA-RISC; 1 when the register belongs to a Python device."""
    return np.int64(not tdma.write(s, c, address - mm.TDMA_BASE, value))


def sync(s: Any, c: Any, address: Any, size: Any, value: Any) -> Any:
    """ACCESS entry: Auto TTSync before an access of trisc0-2; `value`: it is a store."""
    auto_sync.check(s, c, address, value != 0)
    return np.int64(0)


ENTRIES = {DST_READ: dst_read, DST_WRITE: dst_write, TDMA_WRITE: tdma_write, SYNC: sync}
