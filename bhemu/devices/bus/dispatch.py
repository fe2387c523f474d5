"""The device bus: which window an access goes to, what goes before it, and which widths exist.

The windows are rows of tables in the record (entries.fill). Before a TRISC's access to anything but
its instruction push, its own thread may run until its head blocks (brisc: all threads it has pushed
to); then the access takes place at once.
"""

from typing import Any

import numpy as np

from bhemu.devices import rules
from bhemu.devices.bus.window import AFTER_WORDS, AT_ONCE, BY_BYTES
from bhemu.jit.intrinsics import call_access
from bhemu.jit.later import Later
from bhemu.jit.subset import njit
from bhemu.memmap import DEVICE_BASE, HOST
from bhemu.tensix.rules import DONE
from bhemu.tensix.state import WINDOW_PAGES, WINDOW_ROWS

auto_sync = Later("bhemu.devices.bus.access_order")

LOAD, STORE = 0, 1
GAP = WINDOW_ROWS - 1  # the row of addresses between the windows
PAGE_SHIFT = 12
LOW, HIGH, ORDER, WIDTHS, AGENTS = 0, 1, 2, 3, 5  # of a row; the last two by way


@njit
def _row(s: Any, address: Any) -> Any:
    """The window that holds `address`, or GAP."""
    page = (address - DEVICE_BASE) >> PAGE_SHIFT
    if page < 0 or page >= WINDOW_PAGES:
        return np.int64(GAP)
    i = np.int64(s.window_at[page])  # the first that ends after the start of the page
    while s.window[i, HIGH] <= address:
        i += 1
    return i if s.window[i, LOW] <= address else np.int64(GAP)


@njit
def _refused(s: Any, c: Any, i: Any, address: Any, size: Any, value: Any, way: Any) -> Any:
    """Why row `i` does not take the access, or DONE; before it, the core's thread may run."""
    order = np.int64(AT_ONCE)
    if c < HOST:
        s.core_address[c] = np.uint32(address)
        order = s.window[i, ORDER]
        if order != AT_ONCE and rules.offer(s, c) != DONE:
            return np.int64(rules.RETRY)
    s.detail[0], s.detail[1], s.detail[2], s.detail[3] = address, value, size, c  # rules.ACCESS
    if order > AFTER_WORDS and 1 <= c <= 3 and auto_sync.tracks(s, c):
        at = address - s.window[i, LOW]
        status = call_access(s.sync_entry[0], s, c, at, order, np.int64(way))
        if status != DONE:
            return status
    if address & (size - 1):
        return np.int64(rules.MISALIGNED)
    if s.window[i, WIDTHS + way] & size == 0:
        return np.int64(rules.STORE_SIZE if way == STORE else rules.LOAD_SIZE)
    if (s.window[i, AGENTS + way] >> c) & 1:
        return np.int64(DONE)
    return np.int64(s.window_rule[way, i, c])


def load_entry(s: Any, c: Any, address: Any, size: Any, value: Any) -> Any:
    """ACCESS entry: load 1, 2 or 4 bytes into `s.loaded`; its status."""
    i = _row(s, address)
    status = _refused(s, c, i, address, size, value, np.int64(LOAD))
    if status != DONE:
        return status
    at, entry = address - s.window[i, LOW], s.window_entry[LOAD, i]
    if size == 4 or s.window[i, WIDTHS + LOAD] & BY_BYTES:
        return call_access(entry, s, c, at, size, value)
    status = call_access(entry, s, c, at & ~3, np.int64(4), value)
    if status == DONE:
        s.loaded[0] = (s.loaded[0] >> (8 * (at & 3))) & ((1 << (8 * size)) - 1)
    return status


def store_entry(s: Any, c: Any, address: Any, size: Any, value: Any) -> Any:
    """ACCESS entry: store 1, 2 or 4 bytes; its status, refused before any effect."""
    i = _row(s, address)
    status = _refused(s, c, i, address, size, value, np.int64(STORE))
    if status != DONE:
        return status
    return call_access(s.window_entry[STORE, i], s, c, address - s.window[i, LOW], size, value)
