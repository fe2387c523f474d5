"""The timed form of the compiled loop: cores, threads and units act in order of time.

A cycle goes over the agents that are due: the units (which complete the word that they have taken),
the cores (one instruction each), the threads (one word at the wait gate). An agent that cannot go
on sleeps until another one has done something: it is asked again in the same cycle where it comes
after that one, else in the next. So to ask it in vain changes nothing, and a run in pieces is the
same run. The clock counts cycles. Every position is kept in the record, so that a stop resumes the
same cycle.
"""

from typing import Any

import numpy as np

from bhemu.devices import niu
from bhemu.devices.niu_request import DUE
from bhemu.jit.intrinsics import call_entry, call_step
from bhemu.jit.subset import njit
from bhemu.noc import delivery
from bhemu.noc.times import STAGES as NOC_STAGES
from bhemu.tensix import in_flight, issue, observe, rules, state
from bhemu.tensix.frontend import FROM_PUSH, expanding, fetch, queued
from bhemu.tensix.in_flight import NEVER
from bhemu.tensix.loop import idle_or_deadlock, quiet
from bhemu.tensix.thread import hold, taker, tell_waiting, time_passes, until_holds
from bhemu.tensix.units.counters import SETDVALID
from bhemu.tensix.units.memory import STOREIND
from bhemu.tensix.units.scalar import FLUSHDMA, REG2FLOP, STOREREG
from bhemu.tensix.units.unpack.modes import UNPACR_NOP
from bhemu.tensix.units.vector.macro import SFPLOADMACRO
from bhemu.timing import core, cycles, draws, polling

_SHARED = tuple(
    rules.condition(f"the {name} unit to take the next word (it works on one)")
    for name in ("scalar", "configuration")
)
# How late a word is at most: where a unit waits for L1 no text bounds it; else its pipeline does.
_PIPELINE = 16
_LATE = (draws.ANY, draws.ANY, _PIPELINE, _PIPELINE, draws.ANY, draws.ANY)
FIRST_CORE, FIRST_THREAD = state.UNITS, state.UNITS + state.CORES  # agents; the units come first
_SETDVALID, _UNPACR_NOP = SETDVALID.opcode, UNPACR_NOP.opcode
_MACRO, _FLUSH = SFPLOADMACRO.opcode, FLUSHDMA.opcode
_STORE_TO_DEVICES = (STOREIND.opcode, STOREREG.opcode, REG2FLOP.opcode)


@njit
def _did(s: Any) -> None:
    """The agent that acts has done what others may wait for."""
    s.woken[0] = s.agent_at[0] + 1


@njit
def _executes(s: Any, c: Any, word: Any, opens: Any) -> Any:
    """The turn of core `c`, which has just begun or is resumed: 0, or why everything stops."""
    done = core.executes(s, c, word) if opens else np.int64(core.NOTHING)
    if done != core.NOTHING:
        return np.int64(rules.STOP_UNTIL if done == core.STORED and until_holds(s) else 0)
    sent = s.noc_requests[0]
    while True:
        status = call_step(s.run_core[0], s, c)
        if status != rules.STOP_TIME or rules.time_is_over(s):
            break
    if s.noc_requests[0] > sent:
        s.noc_request[sent, DUE] = s.clock[0] * NOC_STAGES  # its first stage is now
        if s.timed[0] == state.DRAWN and s.noc_source[sent]:
            late = delivery.request_late(s, sent, np.int64(delivery.SOURCE))
            niu.delay_source(s, sent, late)
    return np.int64(status)


@njit
def _core(s: Any, p: Any, c: Any) -> Any:
    """An instruction of core `c`; 0, or why everything stops (the instruction is resumed)."""
    agent = FIRST_CORE + c
    if s.core_state[c] != state.RUNNING and s.core_state[c] != state.BLOCKED:
        s.agent_next[agent] = NEVER
        return np.int64(0)
    word, pc = core.word_at(s, c), np.int64(s.pc[c])
    s.agent[0] = c
    tells, loads, opens = True, np.int64(-1), s.turn_open[0] == 0
    if opens:
        known = s.spent[0] == 0 and 0 < s.agent_next[agent] < NEVER  # by its last instruction
        ready = s.clock[0] if known else core.ready(s, c, word)
        if ready > s.clock[0] and not cycles.is_at_once(s, agent):
            observe.begin_wait(s, agent, np.int64(observe.RESULT))
            s.agent_next[agent] = ready
            s.agent[0] = 0
            return np.int64(0)
        if polling.sleeps(s, p, c, pc):
            s.agent[0] = 0
            return np.int64(0)
        loads = polling.target(s, c, word)
        if p.asleep[0]:
            polling.before(s, p, c, word, loads)
        s.turn_open[0] = 1
        s.turn_yield[0] = s.stored[c] = 0
        s.turn_given[0] = s.left[c] = 1
        if s.spent[0]:
            mark = core.mark(s, c, word)
            if mark:
                observe.charge(s, np.int64(agent), pc, mark, np.int64(0))
        tells = core.tells(s, c, word)
        s.turn_cycles[0] = core.begin(s, c, word)
        if cycles.is_at_once(s, agent):
            s.turn_cycles[0] = 1
        s.turn_pc[0] = pc
    status = _executes(s, c, word, opens)
    if status != 0:
        return status
    used = s.turn_given[0] - s.left[c]
    s.turn_open[0] = s.agent[0] = 0
    s.agent_next[agent] = NEVER
    if used:
        if tells:
            _did(s)
        polling.after(s, p, c, word, loads)
        observe.continue_work(s, agent, s.turn_pc[0], np.int64(-1), s.turn_cycles[0])
    if s.core_state[c] == state.RUNNING:
        late = draws.late(s, agent, np.int64(s.pc[c]), np.int64(draws.ANY))
        s.agent_next[agent] = s.clock[0] + s.turn_cycles[0] + late
        if s.spent[0] == 0 and not cycles.is_at_once(s, agent):
            ready = core.ready(s, c, core.word_at(s, c))
            s.agent_next[agent] = max(s.agent_next[agent], ready)
    elif s.core_state[c] == state.BLOCKED:
        core.give_up(s, c, word)
        observe.begin_wait(s, agent, s.core_wait[c])
    return np.int64(0)


@njit
def _changes(s: Any, p: Any) -> Any:
    """0, or why the run stops: until conditions hold, or a watched place has changed."""
    status = np.int64(0)
    if s.l1_written[0]:
        if p.asleep[0]:
            polling.changed(s, p)
        s.l1_written[0] = 0
        status = np.int64(rules.STOP_UNTIL) if until_holds(s) else status
    if s.watch_count[0] and observe.changed(s):
        status = np.int64(rules.STOP_WATCH)
    return status


@njit
def _looks(s: Any, p: Any, t: Any) -> None:
    """A word has been executed: stop where the user looks at what it did."""
    if s.route[0] and p.asleep[0]:  # loads of registers let time pass for what a macro has begun
        polling.release_all(s, p)
    status = _changes(s, p)
    if s.trace[0] and s.trace[0] != observe.SPANS:
        observe.record_word(s, t)
        if observe.nearly_full(s) and status == 0:
            status = np.int64(rules.STOP_LOG)
    if status != 0:
        rules.stop(s, t, status)


@njit
def _unit_for(s: Any, t: Any, opcode: Any, word: Any) -> Any:
    """(unit or NO_UNIT, condition for which the word waits before the unit takes it)."""
    unit = issue.unit_of(opcode, word)
    if s.route[0] or opcode == _MACRO:  # time matters to scheduled instructions themselves
        for i in range(state.UNITS):
            if s.unit_thread[i]:
                return np.int64(issue.NO_UNIT), np.int64(in_flight.WAIT_UNIT[i])
        return np.int64(issue.NO_UNIT), np.int64(0)
    if opcode == _SETDVALID:  # hands banks over that an unpacker may still fill
        for i in range(2):
            if s.unit_thread[i]:
                return np.int64(issue.NO_UNIT), np.int64(in_flight.WAIT_UNIT[i])
    if opcode == _FLUSH:
        conditions = word & 15 if word & 15 else np.int64(15)
        return np.int64(issue.NO_UNIT), np.int64(in_flight.waits(s, t, conditions))
    if unit < 0:
        asked = s.answer_last[0] - s.answer_first[0]
        full = cycles.gives_later(opcode) and asked >= state.ANSWERS
        return np.int64(unit), np.int64(in_flight.WAIT_ROOM if full else 0)
    if s.unit_thread[unit]:
        return np.int64(unit), np.int64(in_flight.WAIT_UNIT[unit])
    return np.int64(unit), np.int64(issue.ready(s, t, word))


@njit
def _stops_before(s: Any, t: Any, word: Any) -> Any:
    """Whether a step or a breakpoint stops before the word at the gate."""
    status = np.int64(0)
    if s.trace[0] and observe.log_ended(s):
        status = np.int64(rules.STOP_STEP)
    elif s.word_break_count[0] and observe.stands(s, t, word):
        status = np.int64(rules.STOP_BREAKPOINT)
    if status != 0:
        rules.stop(s, t, status)
    return status != 0


@njit
def _arrives(s: Any, t: Any) -> Any:
    """Whether a word stands at the gate of thread `t`."""
    if s.gate_full[t]:
        return True
    follows = expanding(s, t)  # an expander gives a word a cycle, once it has begun (MOPExpander)
    if follows or queued(s, t):
        _did(s)  # a FIFO has a place more, or the expander is done
    status = np.int64(rules.STOP_TIME)
    while status == rules.STOP_TIME:  # words that the front end keeps for itself
        s.look_left[0] = max(s.look_left[0], 2)
        status = fetch(s, t)
    s.gate_blocked[t] = 0
    s.gate_full[t] = 1 if status == rules.DONE else 0
    s.gate_drawn[t] = 1 if follows and status == rules.DONE and s.gate_from[t] != FROM_PUSH else 0
    if status == rules.IDLE:
        time_passes(s, t)
    elif status != rules.DONE:
        rules.stop(s, t, status)
    return status == rules.DONE


@njit
def _issues(s: Any, t: Any, unit: Any, opcode: Any, word: Any) -> Any:
    """The unit of the word at the gate takes it."""
    stall = cycles.stall(s, t, opcode, word)
    sixteenths = cycles.busy(s, t, opcode, word) + s.unit_debt[unit] + stall * cycles.PARTS
    after = cycles.latency(opcode) + stall
    if cycles.is_at_once(s, unit):
        sixteenths, after = np.int64(cycles.PARTS), np.int64(1)
    in_flight.take(s, unit, t)
    issue.keep(s, unit, t, word)
    issue.advance(s, t, word)
    s.unit_debt[unit] = sixteenths % cycles.PARTS
    cycles.hinder(s, unit, opcode, word)
    s.unit_last[unit] = t
    s.unit_idle[unit] = s.clock[0] + max(after, sixteenths // cycles.PARTS)
    most = np.int64(0) if opcode == _UNPACR_NOP else np.int64(_LATE[unit])
    pc, busy = np.int64(s.gate_pc[t]), sixteenths // cycles.PARTS
    s.agent_next[unit] = s.clock[0] + busy + draws.late(s, unit, pc, most)
    observe.continue_work(s, unit, pc, word, busy)
    s.unit_cycles[unit] += busy


@njit
def _thread(s: Any, p: Any, t: Any) -> None:
    """The word at the gate of thread `t` executes, goes to its unit, or waits; see s.status."""
    agent = FIRST_THREAD + t
    s.agent_next[agent] = NEVER
    if not _arrives(s, t):
        observe.begin_wait(s, agent, np.int64(observe.NO_WORD))
        return
    late = np.int64(0)
    if s.gate_drawn[t] == 0:
        s.gate_drawn[t] = 1
        late = draws.late(s, agent, np.int64(s.gate_pc[t]), np.int64(draws.ANY))
    if late:
        s.agent_next[agent] = s.clock[0] + late
        return
    if s.executed[t] == s.executed_limit[t]:
        s.agent_next[agent] = s.clock[0]
        rules.stop(s, t, rules.STOP_STEP)
        return
    word = np.int64(s.gate_word[t])
    opcode, unit = word >> 24, np.int64(issue.NO_UNIT)
    status = hold(s, t, opcode)
    shared = cycles.shared(opcode)
    if status == rules.DONE and shared >= 0 and s.shared_free[shared] > s.clock[0]:
        status = np.int64(_SHARED[shared])
        s.agent_next[agent] = s.shared_free[shared]
    if status == rules.DONE:
        unit, status = _unit_for(s, t, opcode, word)
    if status == rules.DONE and _stops_before(s, t, s.gate_word[t]):
        s.agent_next[agent] = s.clock[0]
        return
    if status == rules.DONE and unit < 0:
        asked = s.answer_last[0]
        if p.asleep[0] and opcode in _STORE_TO_DEVICES:
            polling.release_all(s, p)
        status = call_entry(s.table[taker(s, opcode)], s, np.int64(t), s.gate_word[t])
        if s.answer_last[0] > asked:  # the word has sent a request: say when its result is there
            pc = np.int64(s.gate_pc[t])
            late = draws.late(s, np.int64(state.SCALAR_RESULTS), pc, np.int64(draws.ANY))
            due = s.clock[0] + cycles.latency(opcode) + late
            in_flight.arrives(s, due, due - cycles.ATOMIC_BACK)
    elif status == rules.DONE:
        _issues(s, t, unit, opcode, word)
    elif s.route[0]:
        status = tell_waiting(s, t, status)
    if status != rules.DONE:
        _sleeps(s, t, status)
        return
    s.gate_full[t] = s.gate_blocked[t] = s.gate_drawn[t] = 0
    s.op_count[t, opcode] += 1
    s.executed[t] += 1
    _did(s)
    s.thread_last[t] = s.clock[0]
    held = np.int64(1) if cycles.is_at_once(s, agent) else cycles.held(opcode)
    if shared >= 0:
        taken = np.int64(1) if cycles.is_at_once(s, agent) else cycles.occupied_cycles(opcode)
        s.shared_free[shared] = s.clock[0] + taken
    observe.continue_work(s, agent, np.int64(s.gate_pc[t]), word, held)
    s.agent_next[agent] = s.clock[0] + held
    if unit < 0:
        _looks(s, p, t)


@njit
def _sleeps(s: Any, t: Any, status: Any) -> None:
    """The word at the gate of thread `t` waits, or `status` is an error."""
    s.gate_blocked[t] = max(status, 0)
    if status < 0:
        rules.stop(s, t, status)
        return
    observe.begin_wait(s, FIRST_THREAD + t, status)
    for unit in range(state.UNITS):  # a pipeline that empties wakes no other thread
        if s.unit_idle[unit] > s.clock[0]:
            s.agent_next[FIRST_THREAD + t] = min(s.agent_next[FIRST_THREAD + t], s.unit_idle[unit])
    for i in range(state.THREADS):  # nor does the second cycle of a WRCFG
        if s.cfg_old_at[i, 2] and s.cfg_old_until[i] >= s.clock[0]:
            s.agent_next[FIRST_THREAD + t] = s.clock[0] + 1


@njit
def _unit(s: Any, p: Any, unit: Any) -> None:
    """The word that a unit has taken executes, or waits within the unit; see s.status."""
    s.agent_next[unit] = NEVER
    if s.unit_thread[unit] == 0:
        return
    t = s.unit_thread[unit] - 1
    in_flight.exchange(s, unit)
    word = s.gate_word[t]
    in_flight.exchange_config(s, unit)
    issue.exchange(s, unit)
    status = call_entry(s.table[np.int64(word) >> 24], s, np.int64(t), word)
    issue.exchange(s, unit)
    in_flight.exchange_config(s, unit)
    if status < 0:  # the thread stands where the word was issued: so the error names it
        rules.stop(s, t, status)
        return
    if status == rules.DONE:
        _did(s)
        _looks(s, p, t)
    in_flight.exchange(s, unit)
    if status == rules.DONE:
        in_flight.free(s, unit)


@njit
def _agent(s: Any, position: Any) -> Any:
    """The agent at a position of the cycle."""
    if position >= FIRST_THREAD:
        return FIRST_THREAD + s.thread_order[position - FIRST_THREAD]
    return position


@njit
def _sleeps_on(s: Any, p: Any, agent: Any) -> Any:
    """Whether an agent waits for others, though it may be due by time as well."""
    if p.asleep[0] and FIRST_CORE <= agent < FIRST_THREAD and p.asleep[0] >> agent - FIRST_CORE & 1:
        return False
    if agent >= FIRST_THREAD and s.gate_blocked[agent - FIRST_THREAD]:
        return True
    return s.agent_next[agent] == NEVER and (agent >= FIRST_CORE or s.unit_thread[agent] != 0)


@njit
def _opens(s: Any, p: Any) -> Any:
    """What happens at the begin of a cycle; 0, or why everything stops."""
    if s.trace[0] == observe.SPANS and observe.nearly_full(s):
        return np.int64(rules.STOP_LOG)
    if draws.renew(s) and p.asleep[0]:
        polling.drawn(s, p)
    # Threads act in the order in which they were served last, so that units are shared evenly.
    a, b, c = np.int64(0), np.int64(1), np.int64(2)
    if s.thread_last[b] < s.thread_last[a]:
        a, b = b, a
    if s.thread_last[c] < s.thread_last[b]:
        b, c = c, b
        if s.thread_last[b] < s.thread_last[a]:
            a, b = b, a
    s.thread_order[0], s.thread_order[1], s.thread_order[2] = a, b, c
    if 0 < s.noc_source_next[0] <= s.clock[0]:
        niu.take_sources(s)
        if p.asleep[0]:
            polling.changed(s, p)
    # Results that are due arrive. LOADREG may load where a core is.
    if p.asleep[0] and in_flight.next_due(s, np.int64(NEVER)) <= s.clock[0]:
        polling.release_all(s, p)
    for n in range(s.answer_first[0], s.answer_last[0]):
        i = n % state.ANSWERS
        some = in_flight.arrive(s, i, s.clock[0])
        status = _changes(s, p) if some > 0 else some
        if some:
            s.woken[0] = 1
        if status != 0:
            rules.stop(s, s.answer[i, in_flight.THREAD], status)
            return status
    in_flight.leave(s)
    return np.int64(0)


@njit
def _cycle(s: Any, p: Any, others: Any) -> Any:
    """Every agent that is due in the present cycle acts; 0, or why everything stops.

    others: the cycle in which a unit or a thread is due.
    """
    if s.agent_at[0] == 0:
        status = _opens(s, p)
        if status != 0:
            if status > 0:  # as below
                s.status[0] = 0
            return status
    first, alone = s.agent_at[0], s.woken[0] == 0 and others > s.clock[0]
    if first == 0 and alone:
        first = np.int64(FIRST_CORE)
    for position in range(first, state.AGENTS):
        if position == FIRST_THREAD and alone and s.woken[0] == 0:
            break
        agent = _agent(s, position)
        if s.agent_next[agent] > s.clock[0] and not (s.woken[0] and _sleeps_on(s, p, agent)):
            continue
        s.agent_at[0] = position
        if FIRST_CORE <= agent < FIRST_THREAD:
            status = _core(s, p, agent - FIRST_CORE)
        else:
            if agent < FIRST_CORE:
                _unit(s, p, agent)
            else:
                _thread(s, p, agent - FIRST_THREAD)
            status = np.int64(s.status[0])
        if status != 0:
            if status > 0:  # a stop, not an error: it is reported once
                s.status[0] = 0
            return status
    s.agent_at[0] = 0
    if s.trace[0] == observe.SPANS:
        observe.record_counters(s)
    for position in range(s.woken[0] - 1):  # those after the last that did something were asked
        agent = _agent(s, position)
        if _sleeps_on(s, p, agent):
            s.agent_next[agent] = s.clock[0] + 1
    return np.int64(0)


@njit
def _others(s: Any) -> Any:
    """The cycle in which a unit or a thread is due, NEVER where all sleep."""
    first = np.int64(NEVER)
    for agent in range(FIRST_CORE):
        first = min(first, s.agent_next[agent])
    for agent in range(FIRST_THREAD, state.AGENTS):
        first = min(first, s.agent_next[agent])
    return first


@njit
def _next_cycle(s: Any, others: Any) -> Any:
    """The cycle in which an agent is due, NEVER where all sleep."""
    first = in_flight.next_due(s, others)
    if s.noc_source_next[0]:
        first = min(first, s.noc_source_next[0])
    for agent in range(FIRST_CORE, FIRST_THREAD):
        first = min(first, s.agent_next[agent])
    return first


@njit
def _window(s: Any, p: Any) -> Any:
    """Go on to the end of the window; 0, or why everything stops."""
    others = _others(s)
    if p.asleep[0] and s.agent_at[0] == 0:
        polling.asked(s, p)
    while s.clock[0] < s.window_end[0]:
        if s.limit[0] >= 0 and s.clock[0] >= s.limit[0]:
            return np.int64(rules.STOP_LIMIT)
        s.look_left[0] -= 1
        if s.look_left[0] <= 0 and rules.time_is_over(s):
            return np.int64(rules.STOP_TIME)
        status = _cycle(s, p, others)
        if status != 0:
            return status
        if others <= s.clock[0] or s.woken[0]:
            others = _others(s)
        s.woken[0] = 0
        due = _next_cycle(s, others)
        if due == NEVER and p.asleep[0] == 0:
            status = idle_or_deadlock(s)
            if status != 0:
                return status
        # Go on to the cycle in which something is due, or to where a run or a window ends before.
        due = min(due, s.window_end[0])
        if s.limit[0] >= 0:
            due = min(due, s.limit[0])
        if p.asleep[0] and s.timed[0] == state.DRAWN and s.late_named[0] == 0:
            due = min(due, s.late_until[0])
        s.clock[0] = max(s.clock[0] + 1, due)
    return np.int64(0)


@njit
def _is_slept_through(s: Any, p: Any) -> Any:
    """Whether nothing is due in the window that begins, but what cores do that sleep in loops."""
    end = s.window_end[0]
    if p.asleep[0] == 0 or s.agent_at[0] or end <= s.clock[0] or 0 <= s.limit[0] < end:
        return False
    if s.timed[0] == state.DRAWN and s.late_named[0] == 0 and s.late_until[0] < end:
        return False
    polling.asked(s, p)
    return p.asleep[0] != 0 and _next_cycle(s, _others(s)) >= end


def run_timed(s: Any, windows: Any) -> Any:
    """STEP: run up to `windows` windows of `quantum` cycles; 0, or why it stopped.

    None: cores that sleep in their loops stand where they would (polling.py), as after each run of
    a tile that is on no chip.
    """
    p = polling.of(s)
    if windows == 1 and s.noc_map[0] and _is_slept_through(s, p):
        s.clock[0] = s.window_end[0]
        s.round[0] += 1
        if not quiet(s):
            return np.int64(0)
        polling.release_all(s, p)
        return np.int64(rules.STOP_QUIET)
    rules.open_time_slice(s)
    status, left = np.int64(0), windows
    while left > 0 and status == 0:
        if s.window_end[0] <= s.clock[0]:
            s.window_end[0] = s.clock[0] + s.quantum[0]
        status = _window(s, p)
        if status == 0:
            s.round[0] += 1
            left -= 1
            status = np.int64(rules.STOP_QUIET) if quiet(s) else status
    if p.asleep[0] and (status != 0 or windows == 0 or s.noc_map[0] == 0):
        polling.release_all(s, p)
    rules.close_time_slice(s)
    return status
