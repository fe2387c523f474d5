"""One thread's words: brought to the wait gate, executed by the units, counted.

`step_thread` is exact word by word. Where nothing but words is at work (no wait is latched, nobody
looks on) `_run_on` executes a run of them with its counts in registers; both give the same.
"""

from typing import Any

import numpy as np

from bhemu.jit.calls import call_entry, l1_word
from bhemu.jit.subset import njit
from bhemu.tensix import watch, watchpoints, word_breakpoints
from bhemu.tensix.frontend import fetch
from bhemu.tensix.gate import hold, poll
from bhemu.tensix.insn import WAKES, WAKES_BY_BANK, WAKES_NOBODY
from bhemu.tensix.recording import nearly_full, record_word
from bhemu.tensix.route import taker, waits
from bhemu.tensix.status import DONE, IDLE
from bhemu.tensix.stops import (
    STOP_BREAKPOINT,
    STOP_LOG,
    STOP_STEP,
    STOP_TIME,
    STOP_UNTIL,
    STOP_WATCH,
    stop,
)

ALL_THREADS = 0b111  # the threads, as a mask


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
def _banks(s: Any) -> Any:
    """Who owns which Src bank, as one number."""
    valid = s.src_valid[0, 0] | s.src_valid[0, 1] << 1 | s.src_valid[1, 0] << 2
    units = s.unpack_bank[0] | s.unpack_bank[1] << 1 | s.matrix_bank[0] << 2
    return valid | s.src_valid[1, 1] << 3 | units << 4 | s.matrix_bank[1] << 7


@njit
def _woke(s: Any, kind: Any, banks: Any) -> Any:
    """True when a word may have ended a wait; `banks` = _banks before it."""
    if s.route[0] or kind == WAKES:
        return True
    # A word that waits inside the scalar unit looks at L1, where the packer writes.
    return kind == WAKES_BY_BANK and (banks != _banks(s) or s.thcon[0] != 0)


@njit(forceinline=True)
def _arrives(s: Any, t: Any) -> Any:
    """True when a word of thread `t` stands at the gate, which its front end brings there."""
    status = fetch(s, t)
    if status == DONE or status == STOP_TIME:
        return status == DONE
    s.gate_blocked[t] = 0
    s.sweep_due[0] &= ~(1 << t)
    if status != IDLE:
        stop(s, t, status)
    elif s.latch[t] == 0 or poll(s, t) == 0:  # forgotten even while no word comes
        s.sweep_idle[0] |= 1 << t
    return False


@njit
def _blocked(s: Any, t: Any, status: Any) -> None:
    """The word at the gate did not execute: it waits, or `status` is an error."""
    s.gate_full[t] = 1
    s.gate_blocked[t] = max(status, 0)
    s.sweep_due[0] &= ~(1 << t)
    if status < 0:
        stop(s, t, status)


@njit
def _count(s: Any, t: Any, n: Any) -> None:
    """`n` words have left the gate of thread `t`, and none stands there."""
    s.executed[t] += n
    s.clock[0] += n
    s.progress[0] += n
    s.sweep_left[0] -= n
    s.look_left[0] -= n


@njit
def _wake(s: Any, t: Any) -> Any:
    """A word of thread `t` may have ended waits: True when another thread must be asked."""
    s.sweep_due[0] = ALL_THREADS & ~s.sweep_idle[0]
    return s.sweep_due[0] & ~(1 << t) != 0


@njit
def _ends(s: Any) -> Any:
    """True when a word has written to L1 and every until condition holds."""
    if s.l1_written[0] == 0:
        return False
    s.l1_written[0] = 0
    return until_holds(s)


@njit
def _word(s: Any, t: Any) -> Any:
    """Execute the word at the gate, looked at from all sides; True when it has left."""
    word = s.gate_word[t]
    opcode = np.int64(word) >> 24
    status = hold(s, t, opcode)
    if status == DONE and s.trace[0] and watch.before(s, np.int64(t)):
        s.gate_full[t] = 1
        stop(s, t, STOP_STEP)
        return False
    if status == DONE and s.word_break_count[0] and word_breakpoints.stands(s, t, word):
        s.gate_full[t] = 1
        stop(s, t, STOP_BREAKPOINT)
        return False
    banks, kind = _banks(s), s.wakes[opcode]
    if status == DONE:
        status = call_entry(s.table[taker(s, opcode)], s, np.int64(t), word)
    elif s.route[0]:
        status = waits(s, t, status)
    if status != DONE:
        _blocked(s, t, status)
        return False
    s.gate_full[t] = s.gate_blocked[t] = 0
    s.op_count[t, opcode] += 1
    _count(s, t, 1)
    if _woke(s, kind, banks) and _wake(s, t):
        s.sweep_left[0] = 0
    status = STOP_UNTIL if _ends(s) else 0
    if s.watch_count[0] and watchpoints.changed(s):
        status = STOP_WATCH
    if s.trace[0]:
        record_word(s, t)
        if nearly_full(s) and status == 0:
            status = STOP_LOG
    if status != 0:
        stop(s, t, status)
    return True


@njit
def _waits(s: Any, t: Any) -> Any:
    """True when thread `t` may have to wait, or words are looked at by more than their unit."""
    return s.latch[t] | s.thcon[0] | s.route[0] != 0


@njit
def _is_plain(s: Any, t: Any) -> Any:
    """True when nothing but words is at work: see `_run_on`."""
    looked_at = s.trace[0] | s.watch_count[0] | s.word_break_count[0]
    return not (_waits(s, t) or s.gate_full[t] or looked_at)


@njit
def _most(s: Any, t: Any) -> Any:
    """Words that thread `t` may execute before anything must be looked at."""
    most = min(s.sweep_left[0], s.look_left[0])
    if s.executed_limit[t] >= 0:
        most = min(most, s.executed_limit[t] - s.executed[t])
    return most


@njit
def _run_on(s: Any, t: Any) -> Any:
    """Execute words of thread `t` while all is plain; returns how many.

    Over with sweep_left or look_left, where the thread cannot go on, where another must be asked.
    """
    most, n, counted, asks = _most(s, t), np.int64(0), np.int64(0), False
    alone = s.sweep_idle[0] | 1 << t == ALL_THREADS
    while n < most and _arrives(s, t):
        word = s.gate_word[t]
        opcode = np.int64(word) >> 24
        kind = s.wakes[opcode]
        if kind == WAKES:  # it may read the clock
            s.clock[0] += n - counted
            counted = n
        banks = _banks(s) if kind == WAKES_BY_BANK and not alone else np.int64(0)
        status = call_entry(s.table[opcode], s, np.int64(t), word)
        if status != DONE:
            _blocked(s, t, status)
            break
        n += 1
        s.op_count[t, opcode] += 1
        if kind == WAKES_NOBODY:
            continue
        asks = not alone and _woke(s, kind, banks) and _wake(s, t)
        if _ends(s):
            stop(s, t, STOP_UNTIL)
            break
        if asks or _waits(s, t):
            break
    s.clock[0] -= counted
    _count(s, t, n)
    if asks:
        s.sweep_left[0] = 0
    return n


@njit
def step_thread(s: Any, t: Any) -> Any:
    """Execute up to sweep_left words of thread `t`; returns how many.

    Ends after a word that may have ended another thread's wait, and where a look is due; sweep_due
    says which threads must be tried. Where no word can go on, sweep_due says so and gate_blocked
    what it waits for. status[0] is set when everything must stop.
    """
    n = np.int64(0)
    while s.sweep_left[0] > 0 and s.sweep_due[0] >> t & 1 and s.status[0] == 0:
        if _is_plain(s, t):
            done = _run_on(s, t)
            n += done
            if done > 0:
                continue
            if s.sweep_due[0] >> t & 1 == 0:
                return n
        if s.gate_full[t] == 0:
            if not _arrives(s, t):
                return n
            s.gate_full[t] = 1
        if s.look_left[0] <= 0:
            return n
        if s.executed[t] == s.executed_limit[t]:
            stop(s, t, STOP_STEP)
            return n
        n += 1 if _word(s, t) else 0
    return n
