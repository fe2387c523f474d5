"""Pages of L1 that a core has executed: a write of the coprocessor there drops translated code.

A core's own stores are noticed by the engine; another core's code changes for it at a write to
RISCV_IC_INVALIDATE, as in hardware.
"""

from typing import Any

import numpy as np

from bhemu.jit.record import PAGE
from bhemu.jit.subset import njit
from bhemu.memmap import L1_SIZE
from bhemu.tensix.state import CORES
from bhemu.tensix.stops import LOOK

_PAGES = L1_SIZE // PAGE


@njit
def flush(s: Any, cores: Any) -> None:
    """Drop the translated code of the cores in the bit mask before their next instruction."""
    for c in range(CORES):
        if (cores >> c) & 1:
            s.flush[c] = 1
    s.attention[0] |= LOOK


@njit
def written(s: Any, first: Any, size: Any) -> None:
    """A Tensix word or a device wrote bytes `first` to `first + size` of L1."""
    s.l1_written[0] = 1
    cores = np.int64(0)
    for page in range(first // PAGE, (first + size + PAGE - 1) // PAGE):
        if page < _PAGES:
            cores |= s.code_page[page]
    if cores:
        flush(s, cores)
