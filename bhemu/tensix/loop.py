"""The compiled loop: one thread's words, sweeps over the three threads, the scheduler's rounds.

Order of a round: brisc, trisc0, trisc1, trisc2, ncrisc (each a turn of `quantum` instructions, or
of POLLING_TURN when its last turn only polled), then the coprocessor until no thread can go on.
Every position is kept in the record, so that a stop resumes the same turn.
"""

from typing import Any

import numpy as np

from bhemu.jit.calls import call_entry, call_step, l1_word
from bhemu.jit.subset import njit
from bhemu.tensix import watch, watchpoints
from bhemu.tensix.frontend import fetch
from bhemu.tensix.gate import hold, poll
from bhemu.tensix.insn import WAKES, WAKES_BY_BANK, WAKES_NOBODY
from bhemu.tensix.polling_rounds import jump, turn_length
from bhemu.tensix.recording import nearly_full, record_word
from bhemu.tensix.route import taker, time_passes, waits
from bhemu.tensix.state import BLOCKED, CORES, RUNNING, THREADS
from bhemu.tensix.status import DONE, IDLE
from bhemu.tensix.stops import (
    STOP_DEADLOCK,
    STOP_IDLE,
    STOP_LIMIT,
    STOP_LOG,
    STOP_QUIET,
    STOP_STEP,
    STOP_TIME,
    STOP_UNTIL,
    STOP_WATCH,
    close_time_slice,
    cut_turn,
    leaves,
    near_limit,
    open_time_slice,
    round_passed,
    stop,
    time_is_over,
)

ALL_THREADS = 0b111  # the threads, as a mask
COPROCESSOR_TURN = 1 << 16  # words of one round, so that a turn stays below 10 ms
_NO_LIMIT = 1 << 62


@njit
def _banks(s: Any) -> Any:
    """Who owns which Src bank, as one number."""
    valid = s.src_valid[0, 0] | s.src_valid[0, 1] << 1 | s.src_valid[1, 0] << 2
    units = s.unpack_bank[0] | s.unpack_bank[1] << 1 | s.matrix_bank[0] << 2
    return valid | s.src_valid[1, 1] << 3 | units << 4 | s.matrix_bank[1] << 7


@njit
def _woke(s: Any, opcode: Any, banks: Any) -> Any:
    """True when the word of `opcode` may have ended a wait; `banks` = _banks before it."""
    kind = s.wakes[opcode]
    if s.route[0] or kind == WAKES:
        return True
    # A word that waits inside the scalar unit looks at L1, where the packer writes.
    return kind == WAKES_BY_BANK and (banks != _banks(s) or s.thcon[0] != 0)


@njit
def _arrives(s: Any, t: Any) -> Any:
    """True when a word of thread `t` stands at the gate, which its front end brings there."""
    if s.gate_full[t]:
        return True
    status = fetch(s, t)
    if status == DONE or status == STOP_TIME:
        return status == DONE
    s.gate_blocked[t] = 0
    s.sweep_due[0] &= ~(1 << t)
    if status != IDLE:
        stop(s, t, status)
    elif s.latch[t]:
        poll(s, t)  # a latched wait is forgotten even while no word comes
    return False


@njit
def _executed(s: Any, t: Any, opcode: Any, banks: Any) -> Any:
    """Count the word that has left the gate; 0, or why everything stops after it."""
    s.gate_full[t] = 0
    s.gate_blocked[t] = 0
    s.executed[t] += 1
    s.op_count[t, opcode] += 1
    s.clock[0] += 1
    s.progress[0] += 1
    s.sweep_left[0] -= 1
    s.look_left[0] -= 1
    if _woke(s, opcode, banks):
        s.sweep_due[0] = ALL_THREADS
        s.sweep_left[0] = 0
    status = 0
    if s.until_count[0] and s.wakes[opcode] != WAKES_NOBODY and until_holds(s):
        status = STOP_UNTIL
    if s.watch_count[0] and watchpoints.changed(s):
        status = STOP_WATCH
    if s.trace[0] == 0:
        return status
    record_word(s, t)
    return STOP_LOG if nearly_full(s) and status == 0 else status


@njit
def step_thread(s: Any, t: Any) -> Any:
    """Execute up to sweep_left words of thread `t`; returns how many.

    Ends after a word that may have ended another thread's wait, and where a look is due; sweep_due
    then says that all must be tried. Where no word can go on, sweep_due says so and gate_blocked
    what it waits for. status[0] is set when everything must stop.
    """
    n = np.int64(0)
    while s.sweep_left[0] > 0:
        if not _arrives(s, t) or s.look_left[0] <= 0:
            return n
        if s.executed[t] == s.executed_limit[t]:
            stop(s, t, STOP_STEP)
            return n
        word = s.gate_word[t]
        opcode = np.int64(word) >> 24
        status = hold(s, t, opcode) if s.latch[t] or s.thcon[0] else np.int64(DONE)
        if status == DONE and s.trace[0] and watch.before(s, np.int64(t)):
            stop(s, t, STOP_STEP)
            return n
        banks = _banks(s)
        if status == DONE:
            status = call_entry(s.table[taker(s, opcode)], s, np.int64(t), word)
        elif s.route[0]:
            status = waits(s, t, status)
        if status != DONE:
            s.gate_blocked[t] = max(status, 0)
            s.sweep_due[0] &= ~(1 << t)
            if status < 0:
                stop(s, t, status)
            return n
        n += 1
        status = _executed(s, t, opcode, banks)
        if status != 0:
            stop(s, t, status)
            return n
    return n


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
        s.sweep_due[0] = ALL_THREADS
    total = np.int64(0)
    near_limit(s)
    while True:
        while s.sweep_thread[0] < THREADS:
            t = s.sweep_thread[0]
            while s.sweep_due[0] >> t & 1 and s.sweep_left[0] > 0:
                n = step_thread(s, t)
                total += n
                s.sweep_total[0] += n
                s.sweep_count[0] += n if own < 0 or own == t else 0
                went_on = n > 0 or s.sweep_due[0] >> t & 1
                if s.status[0] != 0 or (s.look_left[0] <= 0 and went_on and leaves(s)):
                    return total
            t += 1
            s.sweep_thread[0] = t
            s.sweep_left[0] = _turn_of(s, t % THREADS, own, words)
        finished = s.sweep_count[0] == 0 or s.sweep_total[0] >= words
        s.sweep_thread[0] = s.sweep_count[0] = 0
        if finished:
            s.sweep_open[0] = 0
            return total


@njit
def run_tensix(s: Any, words: Any) -> Any:
    """Sweep until no thread can go on or about `words` were executed; returns how many."""
    return _sweep(s, np.int64(-1), words)


@njit
def until_holds(s: Any) -> Any:
    """True when every until condition holds."""
    if s.until_count[0] == 0:
        return False
    for i in range(s.until_count[0]):
        if l1_word(s, s.until_address[i]) != np.int64(s.until_value[i]):
            return False
    return True


@njit
def _open_turn(s: Any, c: Any) -> None:
    """Give the core its instructions."""
    given = turn_length(s, c)
    s.turn_open[0] = 1
    s.turn_yield[0] = 0
    s.turn_given[0] = s.left[c] = given
    s.stored[c] = 0


@njit
def _core_turn(s: Any, c: Any) -> Any:
    """Run or resume the turn of core `c`; 0 when the turn is over, else why everything stops."""
    if s.turn_open[0] == 0:
        _open_turn(s, c)
    if s.core_state[c] != RUNNING and s.core_state[c] != BLOCKED:
        return np.int64(0)
    while True:
        status = call_step(s.run_core[0], s, c)
        # A slice that is over before its turn asks for a look; so does a word, which had one.
        if status != STOP_TIME or s.sweep_open[0] or time_is_over(s):
            return status


@njit
def _close_turn(s: Any, c: Any) -> None:
    used = s.turn_given[0] - s.left[c]
    s.turn_used[c] = used
    s.clock[0] += used
    s.progress[0] += used
    s.turn_open[0] = 0


@njit
def _idle_or_deadlock(s: Any) -> Any:
    """A round without progress: idle when nothing waits, else deadlock."""
    for c in range(CORES):
        if s.core_state[c] == BLOCKED:
            return STOP_DEADLOCK
        if s.core_state[c] == RUNNING:
            return 0
    for t in range(THREADS):
        if s.gate_full[t]:
            return STOP_DEADLOCK
    for t in range(THREADS):
        time_passes(s, t)
    if s.status[0] != 0:
        return s.status[0]
    return STOP_IDLE


@njit
def _quiet(s: Any) -> Any:
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
    round_passed(s, progress)
    if until_holds(s):
        return STOP_UNTIL
    if progress == 0:
        status = _idle_or_deadlock(s)
        if status != 0:
            return status
        s.clock[0] += 1
    s.round[0] += 1
    quiet = _quiet(s)
    if s.limit[0] >= 0 and s.clock[0] >= s.limit[0]:
        return STOP_LIMIT
    return STOP_QUIET if quiet else 0


@njit
def _coprocessor_turn(s: Any) -> Any:
    run_tensix(s, np.int64(COPROCESSOR_TURN))
    status = s.status[0]
    if status > 0:  # a stop, not an error: it is reported once
        s.status[0] = 0
    return status


@njit
def rounds_within(s: Any, rounds: Any) -> Any:
    """As run_rounds, within the time slice that its caller has opened."""
    left = rounds
    while left > 0:
        if left < rounds and s.look_left[0] <= 0 and time_is_over(s):
            return np.int64(STOP_TIME)
        whole = s.agent[0] == 0 and s.turn_open[0] == 0
        while s.agent[0] < CORES:
            status = _core_turn(s, s.agent[0])
            if status != 0:
                return status
            _close_turn(s, s.agent[0])
            s.agent[0] += 1
        status = _coprocessor_turn(s)
        if status != 0:
            return status
        status = _end_round(s)
        if status != 0:
            return status
        left -= 1
        if whole and left > 0:
            left -= jump(s, left)
    return np.int64(0)


def run_rounds(s: Any, rounds: Any) -> Any:
    """Run up to `rounds` rounds from the current position; 0, or why it stopped.

    STOP_TIME: the time slice was over; calling it again goes on as if it had not returned.
    """
    open_time_slice(s)
    status = rounds_within(s, rounds)
    close_time_slice(s)
    return status


def tensix_entry(s: Any, words: Any) -> Any:
    """Entry of the coprocessor for the hooks of the cores."""
    n = run_tensix(s, words)
    cut_turn(s)
    return n


def thread_entry(s: Any, t: Any) -> Any:
    """Entry for the devices: the threads take turns until the head of `t` blocks; words executed.

    The others run too: a thread that ran ahead alone would reach what they were to change first.
    """
    n = _sweep(s, np.int64(t), np.int64(_NO_LIMIT))
    cut_turn(s)
    return n
