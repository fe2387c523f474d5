"""Why compiled code stops or returns to Python: what the user asked for, a limit, its time slice.

Whatever a program does, every so many words and instructions (a look) compiled code compares the
processor's time with the end of its time slice. Where that is over it returns, in the middle of a
round if need be: the position is in the record, and the next call goes on there.
"""

from typing import Any

import numpy as np

from bhemu.jit.intrinsics import ticks
from bhemu.jit.subset import njit

# Reasons to stop that are no error: positive statuses of `run`, outside the condition numbers.
STOP_STEP = 1001  # an executed_limit or retired_limit was reached
STOP_BREAKPOINT = 1002
STOP_UNTIL = 1003
STOP_LIMIT = 1004
STOP_IDLE = 1005
STOP_DEADLOCK = 1006
STOP_ASSERT = 1007
STOP_LOG = 1008  # the trace ring is nearly full
STOP_ENGINE = 1009  # the engine stopped by itself: detail[0] = its error, detail[1] = core
STOP_FLUSH = 1010  # translated code of detail[0] must be dropped before it runs on
STOP_CODE_PAGE = 1011  # a page is executed for the first time: detail[0] = core
STOP_QUIET = 1012  # no Tensix word for many rounds: can anything still move?
STOP_WATCH = 1013  # what a watchpoint watches has changed
STOP_TIME = 1014  # the time slice is over, or a slice of a core's turn: nothing shows of it

LOOK = 1  # attention: the cores stop before their next instruction
TIME_SLICE = 20_000_000  # ticks: 4 to 20 ms
LOOK_EVERY = 64  # words, the slowest of which takes some 50 us
INSTRUCTIONS = 128  # of a core, between looks: so many times the words
_ROUND = 64  # instructions and words of a round that count as one word


@njit
def stop(s: Any, t: Any, status: Any) -> None:
    """Stop everything at thread `t`."""
    s.status[0] = status
    s.status_thread[0] = t
    s.status_core[0] = -1
    s.attention[0] |= 1


@njit
def clock_reached(s: Any) -> Any:
    """The clock, with what the open turn has retired; an access that lets threads run has not."""
    if s.turn_open[0] == 0:
        return s.clock[0]
    c = s.agent[0]
    return s.clock[0] + s.turn_given[0] - s.left[c] + s.fuel_given[c] - s.fuel[c] - 1


@njit
def open_time_slice(s: Any) -> None:
    """Compiled code was called: it may run for TIME_SLICE from now on."""
    s.leave_at[0] = ticks() + s.time_slice[0]
    s.look_left[0] = s.look_every[0]


@njit
def time_is_over(s: Any) -> Any:
    """True when compiled code must return, else the next look is as far away as can be.

    Without an open time slice (a test, or a host, that lets threads run) it need not.
    """
    s.look_left[0] = s.look_every[0]
    return s.leave_at[0] != 0 and ticks() >= s.leave_at[0]


@njit
def close_time_slice(s: Any) -> None:
    """Compiled code returns; nothing remains of when it did."""
    s.leave_at[0] = s.look_left[0] = 0


@njit
def round_passed(s: Any, progress: Any) -> None:
    """A round counts as some words."""
    s.look_left[0] -= 1 + progress // _ROUND


@njit
def near_limit(s: Any) -> None:
    """Let the next look be no later than the word that reaches the clock limit."""
    if s.limit[0] >= 0:
        s.look_left[0] = min(s.look_left[0], s.limit[0] - clock_reached(s))


@njit
def leaves(s: Any) -> Any:
    """A look is due while threads run: True when they must stop here, as `s.status` says."""
    status = np.int64(0)
    if s.limit[0] >= 0 and clock_reached(s) >= s.limit[0]:
        status = np.int64(STOP_LIMIT)
    elif time_is_over(s):
        status = np.int64(STOP_TIME)
    near_limit(s)
    if status == 0:
        return False
    s.status[0] = status
    if s.turn_open[0]:
        s.attention[0] |= 1  # of the core whose access lets them run
    return True


@njit
def cut_turn(s: Any) -> None:
    """Words within an access of a core brought its clock limit nearer."""
    if s.limit[0] < 0 or s.turn_open[0] == 0:
        return
    c = s.agent[0]
    over = s.fuel[c] - (s.limit[0] - clock_reached(s) - 1)
    if over > 0:
        s.fuel[c] -= over
        s.fuel_given[c] -= over
