"""The registers of the NoC overlay's 64 streams, 0xFFB40000 (tensix/mmio.py)."""

from typing import Any

from bhemu.devices.bus.window import WORD, Window
from bhemu.jit.subset import njit
from bhemu.memmap import OVERLAY_BASE, OVERLAY_END, STREAM_SIZE
from bhemu.tensix import mmio


@njit
def load(s: Any, offset: Any) -> Any:
    """Load a register of a stream."""
    return mmio.stream_read(s, offset // STREAM_SIZE, offset % STREAM_SIZE >> 2)


@njit
def store(s: Any, offset: Any, value: Any) -> Any:
    """Store a register of a stream."""
    return mmio.stream_write(s, offset // STREAM_SIZE, offset % STREAM_SIZE >> 2, value)


WINDOW = Window("overlay streams", OVERLAY_BASE, OVERLAY_END, load, store, loads=WORD)
