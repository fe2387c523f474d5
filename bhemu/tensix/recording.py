"""The trace ring: executed words, and device stores of cores, in the order in which they happen.

An entry is (thread, word, pc, origin) for a word (origin: frontend.FROM_*), and
(FIRST_CORE + core, value, pc, address) for a store; `log_clock` is the clock behind it.  Python
drains the ring before it is full.
"""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import watch
from bhemu.tensix.state import LOG_SIZE, THREADS
from bhemu.tensix.stops import STOP_LOG, clock_reached

WORDS, WORDS_AND_STORES = 1, 2  # s.trace
FIRST_CORE = THREADS
_ROOM = 64


@njit
def record_word(s: Any, t: Any) -> None:
    """Log the word that thread `t` has executed, and what is watched around it."""
    i = s.log_write[0] % LOG_SIZE
    s.log[i, 0] = np.uint32(t)
    s.log[i, 1] = s.gate_word[t]
    s.log[i, 2] = s.gate_pc[t]
    s.log[i, 3] = np.uint32(s.gate_from[t])
    s.log_clock[i] = clock_reached(s)
    watch.after(s)
    s.log_write[0] += 1


@njit
def nearly_full(s: Any) -> Any:
    """True when Python must drain the ring before much more happens."""
    return s.log_write[0] - s.log_read[0] > LOG_SIZE - _ROOM


@njit
def record_store(s: Any, c: Any, address: Any, value: Any) -> None:
    """Log a store to a device that core `c` has made; stop after it where the ring is full."""
    i = s.log_write[0] % LOG_SIZE
    s.log[i, 0] = np.uint32(FIRST_CORE + c)
    s.log[i, 1] = np.uint32(value)
    s.log[i, 2] = np.uint32(s.pc[c])
    s.log[i, 3] = np.uint32(address)
    s.log_clock[i] = clock_reached(s)
    s.log_write[0] += 1
    if nearly_full(s) and s.status[0] == 0:
        s.status[0] = STOP_LOG
        s.status_thread[0] = s.status_core[0] = -1
        s.attention[0] |= 1
