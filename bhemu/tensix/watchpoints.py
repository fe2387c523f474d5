"""Watchpoints: bytes of the record that are compared after every instruction and Tensix word.

A watchpoint is a row of `s.watchpoint` (distance from the beginning of the record, length, number,
access) and its mask; `s.watched` holds what was last seen there. Who reads a row says so in
`s.watch_read` before the comparison: a core's load here, Python for the rest (machine/reading.py).
Nothing is compared while none is set.
"""

from typing import Any

import numpy as np

from bhemu.jit.memory import LOAD
from bhemu.jit.subset import njit

AT, LENGTH, NUMBER, ACCESS = range(4)  # columns of a watchpoint
READS, CHANGES = 1, 2  # its access, as bits
_byte = LOAD[1]


@njit
def _differs(s: Any, i: Any) -> Any:
    at = s.watchpoint[i, AT]
    for k in range(s.watchpoint[i, LENGTH]):
        seen = np.int64(s.watched[i, k]) ^ _byte(s, at + k)
        if seen & np.int64(s.watch_mask[i, k]):
            return True
    return False


@njit
def _take(s: Any, i: Any) -> None:
    """What is there now is what the next change is compared with."""
    at = s.watchpoint[i, AT]
    for k in range(s.watchpoint[i, LENGTH]):
        s.watched[i, k] = np.uint8(_byte(s, at + k))


@njit
def changed(s: Any) -> Any:
    """True when a watched byte has changed; `watch_hit` names the watchpoint, `watch_old` what was.

    Of several that changed at once the first is named; each is compared with its new value from
    now on.
    """
    s.watch_hit[0] = -1
    s.watch_read[1] = 0
    for i in range(s.watch_count[0]):
        if _differs(s, i):
            if s.watch_hit[0] < 0:
                s.watch_hit[0] = i
                for k in range(s.watchpoint[i, LENGTH]):
                    s.watch_old[k] = s.watched[i, k]
            _take(s, i)
    if s.watch_read[0] and s.watch_hit[0] < 0:
        i = s.watch_read[0] - 1
        s.watch_hit[0] = i
        s.watch_read[1] = 1
        _take(s, i)
    s.watch_read[0] = 0
    return s.watch_hit[0] >= 0


@njit
def loads(s: Any, at: Any, size: Any) -> None:
    """A core is about to load `size` bytes at that distance in the record."""
    for i in range(s.watch_count[0]):
        start = s.watchpoint[i, AT]
        overlaps = start < at + size and at < start + s.watchpoint[i, LENGTH]
        if overlaps and s.watchpoint[i, ACCESS] & READS:
            s.watch_read[0] = i + 1


def refresh(s: Any) -> None:
    """A run begins: what is there now is no change (a host may have written it)."""
    s.watch_read[:] = 0
    for i in range(int(s.watch_count[0])):
        at, length = (int(n) for n in s.watchpoint[i, (AT, LENGTH)])
        s.watched[i, :length] = s.buffer[at : at + length]
