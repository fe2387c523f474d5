"""Before a core looks at the coprocessor, the thread it pushes to may run until its head blocks."""

from typing import Any

import numpy as np

from bhemu.devices import rules
from bhemu.tensix.frontend import drained
from bhemu.tensix.jit import call_step
from bhemu.tensix.route import time_passes
from bhemu.tensix.subset import njit


@njit
def offer(s: Any, c: Any) -> None:
    """Let the own thread of a TRISC run (brisc: all threads); `access` is set after a stop."""
    if c <= 3:
        low, high = (0, 3) if c == 0 else (c - 1, c)
        for t in range(low, high):
            if not drained(s, t):
                call_step(s.run_thread[0], s, np.int64(t))
            time_passes(s, t)
            if s.status[0] != 0:
                s.access[0] = rules.RETRY
                return
