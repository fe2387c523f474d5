"""Rounds in which every core that runs only polls: many of them are done at once.

A round repeats the one before when no Tensix word was executed, none can be, and every core did
the same passes of a loop without effect (riscv/polling.py), waited or stood still. Only counts
grow then, and where each core stands in its loop: after a multiple of `period` rounds that is the
same again.
"""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix.frontend import drained
from bhemu.tensix.state import BLOCKED, CORES, RUNNING, THREADS

POLLING_TURN = 64  # instructions of a core that only polls
_MOST = 1 << 14  # rounds done at once: time-outs hold, and the clock stays in its range


@njit
def turn_length(s: Any, c: Any) -> Any:
    """Instructions of the next turn: few for a core that only polls, so that it costs little.

    It polls when its last turn stored and pushed nothing while others went on.
    """
    others = s.round_progress[0] - s.turn_used[c]
    polls = s.stored[c] == 0 and s.turn_used[c] > 0 and others > 0
    return min(s.quantum[0], np.int64(POLLING_TURN)) if polls else s.quantum[0]


@njit
def _words_wait(s: Any) -> Any:
    """True when no word was executed in the last round and none can be in the next."""
    used = np.int64(0)
    for c in range(CORES):
        used += s.turn_used[c]
    if used == 0 or used != s.round_progress[0] or s.route[0]:
        return False
    for t in range(THREADS):
        if s.gate_full[t] == 0 and not drained(s, t):
            return False
    return True


@njit
def _same_turn(s: Any, c: Any) -> Any:
    """True when the next turn of core `c` is its last one again."""
    if s.core_state[c] == BLOCKED:
        return s.turn_used[c] == 0 and s.breakpoint_count[c] == 0
    if s.core_state[c] != RUNNING:
        return s.turn_used[c] == 0
    if s.loop_length[c] == 0 or s.flush[c] or s.breakpoint_count[c]:
        return False
    given, used = turn_length(s, c), s.turn_used[c]
    return given == used or (s.loop_yields[c] and given > used)


@njit
def _divisor(a: Any, b: Any) -> Any:
    """The greatest common divisor of two positive numbers."""
    while b > 0:
        a, b = b, a % b
    return a


@njit
def period(s: Any) -> Any:
    """Behind a round: rounds after which only counts have changed, 0 when it would not repeat."""
    if s.watch_count[0] or not _words_wait(s):
        return np.int64(0)
    rounds = np.int64(1)
    for c in range(CORES):
        if not _same_turn(s, c):
            return np.int64(0)
        if s.core_state[c] == RUNNING:
            own = s.loop_length[c] // _divisor(s.loop_length[c], s.turn_used[c])
            rounds *= own // _divisor(rounds, own)
            if rounds > _MOST:
                return np.int64(0)
    return rounds


@njit
def room(s: Any) -> Any:
    """Rounds like the last that may pass before a limit or a look at what hangs."""
    rounds = np.int64(_MOST)
    if s.limit[0] >= 0:
        rounds = min(rounds, (s.limit[0] - s.clock[0] - 1) // s.round_progress[0])
    if s.livelock[0] > 0:
        rounds = min(rounds, max(s.quiet_next[0], s.livelock[0]) - s.quiet[0] - 1)
    for c in range(CORES):
        if s.retired_limit[c] >= 0 and s.turn_used[c] > 0:
            rounds = min(rounds, (s.retired_limit[c] - s.retired[c] - 1) // s.turn_used[c])
    return rounds


@njit
def skip(s: Any, rounds: Any) -> None:
    """Count `rounds` rounds like the last, a multiple of `period`, as if they had run."""
    s.clock[0] += rounds * s.round_progress[0]
    s.round[0] += rounds
    s.quiet[0] += rounds
    for c in range(CORES):
        s.retired[c] += rounds * s.turn_used[c]


@njit
def jump(s: Any, most: Any) -> Any:
    """Behind a round: skip what repeats it, at most `most` rounds; how many."""
    every = period(s)
    if every == 0:
        return np.int64(0)
    rounds = min(most, room(s))
    rounds -= rounds % every
    if rounds <= 0:
        return np.int64(0)
    skip(s, rounds)
    return rounds
