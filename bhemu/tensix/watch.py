"""One place that is looked at around every traced word, and one word before which all stops.

`s.watch`: kind (0 none, L1, DST), address or row, column, number of the word to stop at (-1 none)
and its thread (ANY_THREAD: whichever).  Only while the trace is on; never architectural.
"""

from typing import Any

import numpy as np

from bhemu.jit.calls import l1_word
from bhemu.jit.subset import njit
from bhemu.tensix import dest
from bhemu.tensix.state import LOG_SIZE

NOTHING, L1, DST = range(3)
KIND, PLACE, COLUMN, STOP_AT, STOP_THREAD = range(5)
ANY_THREAD = -1


@njit
def seen(s: Any) -> Any:
    """The watched word of L1, or the watched 16-bit cell of Dst (0 where its row is not valid)."""
    if s.watch[KIND] == L1:
        return np.uint32(l1_word(s, s.watch[PLACE]))
    if s.watch[KIND] == DST:
        return np.uint32(dest.read16(s, s.watch[PLACE], s.watch[COLUMN]))
    return np.uint32(0)


@njit
def before(s: Any, t: Any) -> Any:
    """Note what is seen before a word of thread `t`; True when the run is to stop before it."""
    s.watch_before[0] = seen(s)
    thread = s.watch[STOP_THREAD]
    return s.log_write[0] == s.watch[STOP_AT] and (thread == t or thread == ANY_THREAD)


@njit
def after(s: Any) -> None:
    """Log what was seen before and what is seen after the word that is being logged."""
    i = s.log_write[0] % LOG_SIZE
    s.watch_log[i, 0] = s.watch_before[0]
    s.watch_log[i, 1] = seen(s)
