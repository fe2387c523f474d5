"""Where cycles go: a table by agent, pc and the condition that was waited for; spans of agents."""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import observe
from bhemu.tensix.state import CORES, SPENT, UNITS

WORKS = 0  # condition of cycles in which a core works; -1 - opcode: in which a word is executed
NO_WORD = 1  # of a thread to which no core has pushed a word
RESULT = 2  # of a core whose instruction waits for a register or for L1
# Marks of the places at which a core reads a counter of an NIU, with no cycles of their own
NOC_READ, NOC_ACK, NOC_ATOMIC = 3, 4, 5
FULL = 2  # s.spent where the table is full
_STEP = 7
_LONG = 64  # cycles of a core that may be one span


@njit
def add(s: Any, agent: Any, pc: Any, condition: Any, cycles: Any) -> None:
    """Charge cycles. Where the table is full nothing more is counted, and `spent` says so."""
    if s.spent[0] != 1:
        return
    row = (agent * 7919 + pc * 31 + condition * 131) & (SPENT - 1)
    for _ in range(SPENT // 4):
        free = s.spent_key[row, 0] == 0
        if free:
            s.spent_key[row, 0], s.spent_key[row, 1], s.spent_key[row, 2] = agent + 1, pc, condition
        same = s.spent_key[row, 1] == pc and s.spent_key[row, 2] == condition
        if free or (same and s.spent_key[row, 0] == agent + 1):
            s.spent_cycles[row] += cycles
            s.spent_times[row] += 1
            return
        row = (row + _STEP) & (SPENT - 1)
    s.spent[0] = FULL


@njit
def waits(s: Any, agent: Any, condition: Any) -> None:
    """An agent begins to wait, unless it waits already."""
    if s.spent[0] and s.spent_for[agent] == WORKS:
        s.spent_for[agent], s.spent_since[agent] = condition, s.clock[0]
        t = agent - UNITS - CORES
        s.spent_of[agent] = s.latch_sem[t] if t >= 0 else np.int64(0)


@njit
def _span(s: Any, agent: Any, condition: Any, word: Any, pc: Any, begin: Any, cycles: Any) -> None:
    """Log a span. What a core does for up to _LONG cycles is one, with short waits for values."""
    if s.trace[0] != observe.SPANS:
        return
    c = agent - UNITS
    if 0 <= c < CORES:
        if condition == RESULT and cycles < _LONG:
            return
        first, last = s.span[c, 0] - 1, s.span[c, 1]
        ends = condition != WORKS or begin - last >= _LONG or last - first >= _LONG
        if ends and first >= 0:
            observe.record_span(
                s, agent, np.int64(WORKS), np.int64(0), s.span[c, 2], first, last - first
            )
            s.span[c, 0] = 0
        if condition == WORKS:
            if s.span[c, 0] == 0:
                s.span[c, 0], s.span[c, 2] = begin + 1, pc
            s.span[c, 1] = begin + cycles
            return
    observe.record_span(s, agent, condition, word, pc, begin, cycles)


@njit
def continue_work(s: Any, agent: Any, pc: Any, word: Any, cycles: Any) -> None:
    """It goes on with what stands at `pc`: charge what it has waited, and the cycles of that.

    word: the Tensix word, -1 of a core.
    """
    if s.spent[0] == 0:
        return
    if s.spent_for[agent] != WORKS:
        waited = s.clock[0] - s.spent_since[agent]
        if waited > 0:
            add(s, agent, pc, s.spent_for[agent], waited)
            of, since = s.spent_of[agent], s.spent_since[agent]
            _span(s, agent, s.spent_for[agent], of, pc, since, waited)
        s.spent_for[agent] = WORKS
    add(s, agent, pc, np.int64(WORKS) if word < 0 else -1 - (word >> 24), cycles)
    _span(s, agent, np.int64(WORKS), word, pc, s.clock[0], cycles)
