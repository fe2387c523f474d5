"""Windows without behaviour of their own: NoC overlay, interrupt controller, unused registers."""

from typing import Any

import numpy as np

from bhemu.devices.bus.window import WORD, Window
from bhemu.jit.subset import njit
from bhemu.memmap import OVERLAY_BASE, OVERLAY_END, PIC_BASE, PIC_END, STREAM_SIZE
from bhemu.tensix import mmio
from bhemu.tensix.rules import DONE

# Registers that change nothing bhemu models: plain storage, counted, shown in the run summary.


@njit
def load(s: Any, i: Any) -> Any:
    """Load inert register `i` (in the order of their addresses)."""
    s.inert_count[i] += 1
    s.loaded[0] = s.inert[i]
    return DONE


@njit
def store(s: Any, i: Any, value: Any) -> Any:
    """Store to inert register `i` the bits that it keeps."""
    s.inert_count[i] += 1
    s.inert[i] = np.uint32(value)
    return DONE


# The registers of the NoC overlay's 64 streams, 0xFFB40000 (tensix/mmio.py).


@njit
def overlay_load(s: Any, offset: Any) -> Any:
    """Load a register of a stream."""
    return mmio.stream_read(s, offset // STREAM_SIZE, offset % STREAM_SIZE >> 2)


@njit
def overlay_store(s: Any, offset: Any, value: Any) -> Any:
    """Store a register of a stream."""
    return mmio.stream_write(s, offset // STREAM_SIZE, offset % STREAM_SIZE >> 2, value)


WINDOW = Window(
    "overlay streams", OVERLAY_BASE, OVERLAY_END, overlay_load, overlay_store, loads=WORD
)


# The interrupt controller, 0xFFB13000: refused by name.

PIC_WINDOW = Window("PIC", PIC_BASE, PIC_END)
