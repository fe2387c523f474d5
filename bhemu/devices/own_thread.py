"""Before a core looks at the coprocessor, the thread it pushes to may run until its head blocks."""

from typing import Any

import numpy as np

from bhemu.devices import rules
from bhemu.jit.calls import call_step
from bhemu.jit.subset import njit
from bhemu.tensix.frontend import drained
from bhemu.tensix.loop import COPROCESSOR_TURN
from bhemu.tensix.rules import DONE
from bhemu.tensix.thread import time_passes


@njit
def offer(s: Any, c: Any) -> Any:
    """Let the own thread of a TRISC run (brisc: all threads); DONE, or RETRY after a stop.

    An open sweep is one that a stop has cut short: the repeated access resumes it first.
    """
    if c == 0:
        if s.sweep_open[0] or not (drained(s, 0) and drained(s, 1) and drained(s, 2)):
            call_step(s.run_tensix[0], s, np.int64(COPROCESSOR_TURN))
    elif c <= 3:
        if s.sweep_open[0] or not drained(s, c - 1):
            call_step(s.run_thread[0], s, np.int64(c - 1))
    if c <= 3:
        low, high = (0, 3) if c == 0 else (c - 1, c)
        for t in range(low, high):
            if s.status[0] == 0:
                time_passes(s, t)
    return rules.RETRY if s.status[0] != DONE else DONE
