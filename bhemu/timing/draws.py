"""Drawn times: which agents are slow at present, and by how many cycles an act is late.

Few agents are slow at a time, for some hundred or thousand cycles, and so much that others get
ahead of them: what nothing orders then happens in the other order (probabilistic concurrency
testing). Every delay has a number.
"""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix.state import AGENTS, LATE_LOG

NOMINAL, DRAWN = 1, 2  # s.timed
_FACTOR, _TERM = np.uint64(6364136223846793005), np.uint64(1442695040888963407)  # Knuth's MMIX
_SHIFT = np.uint64(33)
_SLOW_AT_ONCE = 3  # agents, at most
_SHORTEST, _LONGEST = 8, 12  # of a time in which the same agents are slow: powers of 2
ANY = 1 << 11  # cycles: no text bounds how late it is
_LEAST, _MOST = 3, 11  # cycles that an act is late, at most: powers of 2


def begin(s: Any, seed: int, tile: int) -> None:
    """Draw times from a seed of 32 bits on, differently on each tile of a chip."""
    s.timed[0] = DRAWN
    s.late_random[0] = seed << 16 | tile
    s.late_choices[0] = s.late_until[0] = 0
    for name in ("late_slow", "late_log"):
        getattr(s, name)[...] = 0


@njit
def _below(s: Any, n: Any) -> Any:
    """A random number of 0 to n - 1, n at most 2**31."""
    state = s.late_random[0] * _FACTOR + _TERM
    s.late_random[0] = state
    return np.int64(state >> _SHIFT) % n


@njit
def renew(s: Any) -> None:
    """Choose other slow agents where the time of the present ones is over."""
    if s.timed[0] != DRAWN or s.clock[0] < s.late_until[0]:
        return
    s.late_until[0] = s.clock[0] + (
        np.int64(1) << (_SHORTEST + _below(s, _LONGEST - _SHORTEST + 1))
    )
    for agent in range(AGENTS):
        s.late_slow[agent] = 0
    for _ in range(1 + _below(s, _SLOW_AT_ONCE)):
        s.late_slow[_below(s, AGENTS)] = np.int64(1) << (_LEAST + _below(s, _MOST - _LEAST + 1))


@njit
def late(s: Any, agent: Any, most: Any) -> Any:
    """Cycles by which the present act of an agent is late, fewer than `most`."""
    if s.timed[0] != DRAWN or s.late_slow[agent] == 0 or most == 0:
        return np.int64(0)
    cycles = _below(s, min(s.late_slow[agent], most))
    choice = s.late_choices[0]
    s.late_choices[0] = choice + 1
    row = choice % LATE_LOG
    s.late_log[row, 0], s.late_log[row, 1] = choice, agent
    s.late_log[row, 2], s.late_log[row, 3] = s.clock[0], cycles
    return cycles
