"""The compiled loop: sweeps over the three threads, the rounds of the scheduler and of pollers."""

from typing import Any

import numpy as np

from bhemu.jit.intrinsics import call_step
from bhemu.jit.subset import njit
from bhemu.tensix import rules
from bhemu.tensix.frontend import drained
from bhemu.tensix.state import BLOCKED, CORES, HALTED, RUNNING, THREADS
from bhemu.tensix.thread import ALL_THREADS, step_thread, time_passes, until_holds

# Rounds in which every core that runs only polls: many of them are done at once.
#
# A round repeats the one before when no Tensix word was executed, none can be, and every core did
# the same passes of a loop without effect (riscv/turn.py), waited or stood still. Only counts grow
# then, and where each core stands in its loop: after a multiple of `period` rounds that is the
# same again.

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
    """After a round: rounds after which only counts have changed, 0 when it would not repeat."""
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
    """After a round: skip what repeats it, at most `most` rounds; how many."""
    every = period(s)
    if every == 0:
        return np.int64(0)
    rounds = min(most, room(s))
    rounds -= rounds % every
    if rounds <= 0:
        return np.int64(0)
    skip(s, rounds)
    return rounds


# The compiled loop: sweeps over the three threads, the scheduler's rounds.
#
# Order of a round: brisc, trisc0, trisc1, trisc2, ncrisc (each a turn of `quantum` instructions,
# or of POLLING_TURN when its last turn only polled), then the coprocessor until no thread can go
# on. Every position is kept in the record, so that a stop resumes the same turn.

COPROCESSOR_TURN = 1 << 16  # words of one round, so that a turn stays below 10 ms
_NO_LIMIT = 1 << 62
_ANY = np.int64(-1)  # thread whose words end a sweep


@njit
def _turn_of(s: Any, t: Any, own: Any, words: Any) -> Any:
    """Words that thread `t` may execute now: one, or what is left while no other can.

    Kernels rely on threads keeping pace: after SETRWC has released a bank, T0 hands over the next
    before T1 gets to it, though nothing waits for that (tt-llk's datacopy). Where the sweeps end
    once `own` cannot go on, another thread has one word only.
    """
    if s.sweep_due[0] & ~(1 << t) or (own >= 0 and own != t):
        return np.int64(1)
    return max(np.int64(1), words - s.sweep_total[0])


@njit
def _sweep(s: Any, own: Any, words: Any) -> Any:
    """Sweep over the threads, one word each; returns how many words were executed.

    Over when thread `own` (-1: any) executed none in a sweep, or after about `words` of them. A
    thread that cannot go on is asked again once something may have ended its wait; while that is
    so for both others, the sweeps of one thread are run as one. A stop in the middle keeps the
    position; the next call, which must be the same, resumes there.
    """
    if s.sweep_open[0] == 0:
        s.sweep_open[0] = s.sweep_left[0] = 1
        s.sweep_thread[0] = s.sweep_count[0] = s.sweep_total[0] = 0
        s.sweep_due[0], s.sweep_idle[0] = ALL_THREADS, 0
    total = np.int64(0)
    rules.near_limit(s)
    while True:
        while s.sweep_thread[0] < THREADS:
            t = s.sweep_thread[0]
            while s.sweep_due[0] >> t & 1 and s.sweep_left[0] > 0:
                n = step_thread(s, t)
                total += n
                s.sweep_total[0] += n
                s.sweep_count[0] += n if own < 0 or own == t else 0
                went_on = n > 0 or s.sweep_due[0] >> t & 1
                if s.status[0] != 0 or (s.look_left[0] <= 0 and went_on and rules.leaves(s)):
                    return total
            t += 1
            s.sweep_thread[0] = t
            s.sweep_left[0] = _turn_of(s, t if t < THREADS else np.int64(0), own, words)
        finished = s.sweep_count[0] == 0 or s.sweep_total[0] >= words
        s.sweep_thread[0] = s.sweep_count[0] = 0
        if finished:
            s.sweep_open[0] = 0
            return total


@njit
def _core_turn(s: Any, c: Any) -> Any:
    """Run or resume the turn of core `c`; 0 when the turn is over, else why everything stops."""
    if s.turn_open[0] == 0:
        # Give the core its instructions
        given = turn_length(s, c)
        s.turn_open[0] = 1
        s.turn_yield[0] = 0
        s.turn_given[0] = s.left[c] = given
        s.stored[c] = 0
    if s.core_state[c] != RUNNING and s.core_state[c] != BLOCKED:
        return np.int64(0)
    while True:
        status = call_step(s.run_core[0], s, c)
        # A slice that is over before its turn asks for a look; so does a word, which had one.
        if status != rules.STOP_TIME or s.sweep_open[0] or rules.time_is_over(s):
            return status


@njit
def idle_or_deadlock(s: Any) -> Any:
    """A round without progress: idle when nothing waits, else deadlock."""
    halted = False  # the debugger that halted a core may resume it
    for c in range(CORES):
        halted = halted or s.core_state[c] == HALTED
    for c in range(CORES):
        if s.core_state[c] == BLOCKED and not halted:
            return rules.STOP_DEADLOCK
        if s.core_state[c] == RUNNING:
            return 0
    if halted:
        return rules.STOP_IDLE
    for t in range(THREADS):
        if s.gate_full[t] or s.in_flight[t]:
            return rules.STOP_DEADLOCK
    for t in range(THREADS):
        time_passes(s, t)
    return s.status[0] if s.status[0] else rules.STOP_IDLE


@njit
def quiet(s: Any) -> Any:
    """True when a look is due at what the cores do while no Tensix word executes.

    Each look that finds life puts the next one twice as far away, so that looking costs little.
    """
    words = s.executed[0] + s.executed[1] + s.executed[2]
    if words != s.quiet_words[0]:
        s.quiet_words[0] = words
        s.quiet[0] = 0
        s.quiet_next[0] = s.livelock[0]
        return False
    s.quiet[0] += 1
    if s.livelock[0] == 0 or s.quiet[0] < max(s.quiet_next[0], s.livelock[0]):
        return False
    s.quiet_next[0] = 2 * s.quiet[0]
    return True


@njit
def _end_round(s: Any) -> Any:
    """Close the round; a round in which nothing could happen is not counted."""
    s.agent[0] = 0
    progress = s.round_progress[0] = s.progress[0]
    s.progress[0] = 0
    rules.round_passed(s, progress)
    if until_holds(s):
        return rules.STOP_UNTIL
    if progress == 0:
        status = idle_or_deadlock(s)
        if status != 0:
            return status
        s.clock[0] += 1
    s.round[0] += 1
    looks = quiet(s)
    if s.limit[0] >= 0 and s.clock[0] >= s.limit[0]:
        return rules.STOP_LIMIT
    return rules.STOP_QUIET if looks else 0


def run_rounds(s: Any, rounds: Any) -> Any:
    """Run up to `rounds` rounds from the current position; 0, or why it stopped.

    STOP_TIME: the time slice was over; calling it again goes on as if it had not returned.
    """
    rules.open_time_slice(s)
    left, status = rounds, np.int64(0)
    while left > 0 and status == 0:
        if left < rounds and s.look_left[0] <= 0 and rules.time_is_over(s):
            status = np.int64(rules.STOP_TIME)
            break
        whole = s.agent[0] == 0 and s.turn_open[0] == 0
        while s.agent[0] < CORES and status == 0:
            c = s.agent[0]
            status = _core_turn(s, c)
            if status == 0:
                s.turn_open[0] = 0
                s.turn_used[c] = used = s.turn_given[0] - s.left[c]
                s.clock[0] += used
                s.progress[0] += used
                s.agent[0] += 1
        if status == 0:
            _sweep(s, _ANY, np.int64(COPROCESSOR_TURN))
            status = s.status[0]
            if status > 0:  # a stop, not an error: it is reported once
                s.status[0] = 0
        if status == 0:
            status = _end_round(s)
        if status == 0:
            left -= 1
            left -= jump(s, left) if whole and left > 0 else 0
    rules.close_time_slice(s)
    return status


def tensix_entry(s: Any, words: Any) -> Any:
    """Entry of the coprocessor for the hooks of the cores: `words` at most; words executed."""
    n = _sweep(s, _ANY, words)
    rules.cut_turn(s)
    return n


def thread_entry(s: Any, t: Any) -> Any:
    """Entry for the devices: the threads take turns until the head of `t` blocks; words executed.

    The others run too: a thread that ran ahead alone would reach what they were to change first.
    """
    n = _sweep(s, np.int64(t), np.int64(_NO_LIMIT))
    rules.cut_turn(s)
    return n
