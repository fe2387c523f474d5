"""The timed form of the compiled loop: cores, threads and units act in order of time.

A cycle goes over the agents that are due: the cores (one instruction each), the threads (one word
at the wait gate), the units (which complete the word that they have taken). An agent that cannot
go on sleeps until another one has done something. The clock counts cycles. Every position is kept
in the record, so that a stop resumes the same cycle.
"""

from typing import Any

import numpy as np

from bhemu.jit.intrinsics import call_entry, call_step
from bhemu.jit.subset import njit
from bhemu.tensix import in_flight, issue, observe
from bhemu.tensix.frontend import fetch
from bhemu.tensix.loop import idle_or_deadlock, quiet
from bhemu.tensix.rules import DONE, IDLE
from bhemu.tensix.state import AGENTS, BLOCKED, CORES, RUNNING, THREADS, UNITS
from bhemu.tensix.stops import (
    STOP_BREAKPOINT,
    STOP_LIMIT,
    STOP_LOG,
    STOP_QUIET,
    STOP_STEP,
    STOP_TIME,
    STOP_UNTIL,
    STOP_WATCH,
    close_time_slice,
    open_time_slice,
    stop,
    time_is_over,
)
from bhemu.tensix.thread import hold, taker, time_passes, until_holds, waits
from bhemu.tensix.units.adc import SETDVALID
from bhemu.tensix.units.scalar import FLUSHDMA
from bhemu.tensix.units.vector.macro import SFPLOADMACRO
from bhemu.timing import draws

NEVER = 1 << 60  # agent_next of one that sleeps
_FIRST_THREAD, _FIRST_UNIT = CORES, CORES + THREADS
_SETDVALID = SETDVALID.opcode
_MACRO, _FLUSH = SFPLOADMACRO.opcode, FLUSHDMA.opcode
_WORK = (16, 16, 1, 1, 16, 16)  # cycles that a unit works on a word


@njit
def _wake_sleepers(s: Any) -> None:
    """Something may have happened: what sleeps is asked again in the next cycle."""
    for agent in range(AGENTS):
        if s.agent_next[agent] == NEVER:
            if agent < _FIRST_UNIT or s.unit_thread[agent - _FIRST_UNIT]:
                s.agent_next[agent] = s.clock[0] + 1


@njit
def _core(s: Any, c: Any) -> Any:
    """An instruction of core `c`; 0, or why everything stops (the instruction is resumed)."""
    if s.core_state[c] != RUNNING and s.core_state[c] != BLOCKED:
        s.agent_next[c] = NEVER
        return np.int64(0)
    s.agent[0] = c
    if s.turn_open[0] == 0:
        s.turn_open[0] = 1
        s.turn_yield[0] = s.stored[c] = 0
        s.turn_given[0] = s.left[c] = 1
    while True:
        status = call_step(s.run_core[0], s, c)
        if status != STOP_TIME or time_is_over(s):
            break
    if status != 0:
        return status
    used = s.turn_given[0] - s.left[c]
    s.turn_open[0] = s.agent[0] = 0
    s.progress[0] += used
    if used:
        s.woken[0] = 1
    s.agent_next[c] = NEVER
    if s.core_state[c] == RUNNING:
        s.agent_next[c] = s.clock[0] + 1 + draws.late(s, c)
    return np.int64(0)


@njit
def _looks(s: Any, t: Any) -> Any:
    """A word has been executed: whether everything stops because somebody looks at it."""
    status = np.int64(0)
    if s.l1_written[0]:
        s.l1_written[0] = 0
        status = np.int64(STOP_UNTIL) if until_holds(s) else status
    if s.watch_count[0] and observe.changed(s):
        status = np.int64(STOP_WATCH)
    if s.trace[0]:
        observe.record_word(s, t)
        if observe.nearly_full(s) and status == 0:
            status = np.int64(STOP_LOG)
    if status != 0:
        stop(s, t, status)
    return status


@njit
def _unit_for(s: Any, t: Any, opcode: Any, word: Any) -> Any:
    """(unit or NO_UNIT, condition for which the word waits before the unit takes it)."""
    unit = issue.unit_of(opcode, word)
    if s.route[0] or opcode == _MACRO:  # time matters to scheduled instructions themselves
        for i in range(UNITS):
            if s.unit_thread[i]:
                return np.int64(issue.NO_UNIT), np.int64(in_flight.WAIT_UNIT[i])
        return np.int64(issue.NO_UNIT), np.int64(0)
    if opcode == _SETDVALID:  # hands banks over that an unpacker may still fill
        for i in range(2):
            if s.unit_thread[i]:
                return np.int64(issue.NO_UNIT), np.int64(in_flight.WAIT_UNIT[i])
    if opcode == _FLUSH:
        return np.int64(issue.NO_UNIT), np.int64(in_flight.waits(s, t, word & 15))
    if unit < 0:
        return np.int64(unit), np.int64(0)
    if s.unit_thread[unit]:
        return np.int64(unit), np.int64(in_flight.WAIT_UNIT[unit])
    return np.int64(unit), np.int64(issue.ready(s, t, word))


@njit
def _stops_before(s: Any, t: Any, word: Any) -> Any:
    """Whether a step or a breakpoint stops before the word at the gate."""
    status = np.int64(0)
    if s.trace[0] and observe.before(s, np.int64(t)):
        status = np.int64(STOP_STEP)
    elif s.word_break_count[0] and observe.stands(s, t, word):
        status = np.int64(STOP_BREAKPOINT)
    if status != 0:
        stop(s, t, status)
    return status != 0


@njit
def _arrives(s: Any, t: Any) -> Any:
    """Whether a word stands at the gate of thread `t`."""
    if s.gate_full[t]:
        return True
    status = np.int64(STOP_TIME)
    while status == STOP_TIME:  # words that the front end keeps for itself
        s.look_left[0] = max(s.look_left[0], 2)
        status = fetch(s, t)
    s.gate_blocked[t] = 0
    s.gate_full[t] = 1 if status == DONE else 0
    if status == IDLE:
        time_passes(s, t)
    elif status != DONE:
        stop(s, t, status)
    return status == DONE


@njit
def _thread(s: Any, t: Any) -> None:
    """The word at the gate of thread `t` executes, goes to its unit, or waits; see s.status."""
    agent = _FIRST_THREAD + t
    s.agent_next[agent] = NEVER
    if not _arrives(s, t):
        return
    if s.executed[t] == s.executed_limit[t]:
        s.agent_next[agent] = s.clock[0]
        stop(s, t, STOP_STEP)
        return
    word = np.int64(s.gate_word[t])
    opcode, unit = word >> 24, np.int64(issue.NO_UNIT)
    status = hold(s, t, opcode)
    if status == DONE:
        unit, status = _unit_for(s, t, opcode, word)
    if status == DONE and _stops_before(s, t, s.gate_word[t]):
        s.agent_next[agent] = s.clock[0]
        return
    if status == DONE and unit < 0:
        status = call_entry(s.table[taker(s, opcode)], s, np.int64(t), s.gate_word[t])
    elif status == DONE:
        in_flight.take(s, unit, t)
        issue.advance(s, t, word)
        work = _WORK[unit] + draws.late(s, _FIRST_UNIT + unit)
        s.agent_next[_FIRST_UNIT + unit] = s.clock[0] + work
    elif s.route[0]:
        status = waits(s, t, status)
    if status != DONE:
        s.gate_blocked[t] = max(status, 0)
        if status < 0:
            stop(s, t, status)
        return
    s.gate_full[t] = s.gate_blocked[t] = 0
    s.op_count[t, opcode] += 1
    s.executed[t] += 1
    s.progress[0] += 1
    s.woken[0] = 1
    s.agent_next[agent] = s.clock[0] + 1 + draws.late(s, agent)
    if unit < 0:
        _looks(s, t)


@njit
def _unit(s: Any, unit: Any) -> None:
    """The word that a unit has taken executes, or waits within the unit; see s.status."""
    agent = _FIRST_UNIT + unit
    s.agent_next[agent] = NEVER
    if s.unit_thread[unit] == 0:
        return
    t = s.unit_thread[unit] - 1
    in_flight.exchange(s, unit)
    word = s.gate_word[t]
    status = call_entry(s.table[np.int64(word) >> 24], s, np.int64(t), word)
    if status < 0:  # the thread stands where the word was issued: so the error names it
        stop(s, t, status)
        return
    if status == DONE:
        s.progress[0] += 1
        s.woken[0] = 1
        _looks(s, t)
    in_flight.exchange(s, unit)
    if status == DONE:
        in_flight.free(s, unit)


@njit
def _cycle(s: Any) -> Any:
    """Every agent that is due in the present cycle acts; 0, or why everything stops."""
    draws.renew(s)
    while s.agent_at[0] < AGENTS:
        agent, status = s.agent_at[0], np.int64(0)
        if s.agent_next[agent] <= s.clock[0]:
            if agent < _FIRST_THREAD:
                status = _core(s, agent)
            elif agent < _FIRST_UNIT:
                _thread(s, agent - _FIRST_THREAD)
                status = s.status[0]
            else:
                _unit(s, agent - _FIRST_UNIT)
                status = s.status[0]
        if status != 0:
            if status > 0:  # a stop, not an error: it is reported once
                s.status[0] = 0
            return status
        s.agent_at[0] += 1
    s.agent_at[0] = 0
    if s.woken[0]:
        s.woken[0] = 0
        _wake_sleepers(s)
    return np.int64(0)


@njit
def _next_cycle(s: Any) -> Any:
    """The cycle in which an agent is due, NEVER where all sleep."""
    first = np.int64(NEVER)
    for agent in range(AGENTS):
        first = min(first, s.agent_next[agent])
    return first


@njit
def _window(s: Any) -> Any:
    """Go on to the end of the window; 0, or why everything stops."""
    while s.clock[0] < s.window_end[0]:
        if s.limit[0] >= 0 and s.clock[0] >= s.limit[0]:
            return np.int64(STOP_LIMIT)
        s.look_left[0] -= 1
        if s.look_left[0] <= 0 and time_is_over(s):
            return np.int64(STOP_TIME)
        status = _cycle(s)
        if status != 0:
            return status
        due = _next_cycle(s)
        if due == NEVER:
            status = idle_or_deadlock(s)
            if status != 0:
                return status
            due = s.window_end[0]
        s.clock[0] = max(s.clock[0] + 1, min(due, s.window_end[0]))
    return np.int64(0)


def run_timed(s: Any, windows: Any) -> Any:
    """STEP: run up to `windows` windows of `quantum` cycles; 0, or why it stopped."""
    open_time_slice(s)
    status, left = np.int64(0), windows
    _wake_sleepers(s)
    while left > 0 and status == 0:
        if s.window_end[0] <= s.clock[0]:
            s.window_end[0] = s.clock[0] + s.quantum[0]
        status = _window(s)
        if status == 0:
            s.round[0] += 1
            s.progress[0] = 0
            left -= 1
            status = np.int64(STOP_QUIET) if quiet(s) else status
    close_time_slice(s)
    return status
