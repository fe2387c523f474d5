"""What is observed in compiled code: trace ring, watchpoints, breakpoints on words, cycles."""

from typing import Any

import numpy as np

from bhemu.jit.intrinsics import LOAD
from bhemu.jit.subset import njit
from bhemu.tensix.rules import STOP_LOG, clock_reached
from bhemu.tensix.state import CORES, COUNTED, LOG_SIZE, SPENT, THREADS, UNITS


@njit
def log_ended(s: Any) -> Any:
    """True when the run is to stop before the next word: the log has come to `log_end`."""
    return s.log_write[0] == s.log_end[0]


# The trace ring: executed words, and device stores of cores, in the order in which they happen.
#
# An entry is (thread, word, pc, origin) for a word (origin: frontend.FROM_*), and
# (FIRST_CORE + core, value, pc, address) for a store; `log_clock` is the clock after it.  In
# modelled time it may be (FIRST_SPAN + agent, word, pc, cycles) for what an agent does from
# `log_clock` on, for a wait with WAITS and the semaphores above it added and the condition as the
# word, and (FIRST_COUNTER + which, value, pc, agent) for a value that has changed.  Python drains
# the ring before it is full.

WORDS, WORDS_AND_STORES, SPANS = 1, 2, 3  # s.trace
FIRST_CORE, FIRST_SPAN, FIRST_COUNTER = THREADS, 16, 64
WAITS = 1 << 8
_ROOM = 64


@njit
def _put(s: Any, kind: Any, value: Any, pc: Any, origin: Any, clock: Any) -> None:
    i = s.log_write[0] % LOG_SIZE
    s.log[i, 0], s.log[i, 1] = np.uint32(kind), np.uint32(value)
    s.log[i, 2], s.log[i, 3] = np.uint32(pc), np.uint32(origin)
    s.log_clock[i] = clock
    s.log_write[0] += 1


@njit
def record_span(
    s: Any, agent: Any, condition: Any, word: Any, pc: Any, begin: Any, cycles: Any
) -> None:
    """Log that an agent works (condition 0), or has waited, for so many cycles.

    word: of a wait the semaphores, as a mask.
    """
    kind = FIRST_SPAN + agent
    if condition:
        kind, word = kind | WAITS | word << 9, condition
    _put(s, kind, word, pc, cycles, begin)


@njit
def record_counters(s: Any) -> None:
    """Log the semaphores and FIFOs whose value has changed, with the last agent of each."""
    for i in range(COUNTED):
        fifo = i - (COUNTED - THREADS)
        value = s.sem[i] if fifo < 0 else s.fifo_write[fifo] - s.fifo_read[fifo]
        if value == s.counted[i]:
            continue
        pc, agent = np.uint32(0), np.int64(0)
        if fifo < 0:
            taken = np.int64(value < s.counted[i])
            pc, agent = s.sem_pc[i, taken], s.sem_by[i, taken]
        s.counted[i] = value
        _put(s, FIRST_COUNTER + i, value, pc, agent, s.clock[0])


@njit
def record_word(s: Any, t: Any) -> None:
    """Log the word that thread `t` has executed, and what is watched around it."""
    _put(s, t, s.gate_word[t], s.gate_pc[t], s.gate_from[t], clock_reached(s))


@njit
def nearly_full(s: Any) -> Any:
    """True when Python must drain the ring before much more happens."""
    return s.log_write[0] - s.log_read[0] > LOG_SIZE - _ROOM


@njit
def record_store(s: Any, c: Any, address: Any, value: Any) -> None:
    """Log a store to a device that core `c` has made; stop after it where the ring is full."""
    _put(s, FIRST_CORE + c, value, s.pc[c], address, clock_reached(s))
    if nearly_full(s) and s.status[0] == 0:
        s.status[0] = STOP_LOG
        s.status_thread[0] = s.status_core[0] = -1
        s.attention[0] |= 1


# Watchpoints: bytes of the record that are compared after every instruction and Tensix word.
#
# A watchpoint is a row of `s.watchpoint` (distance from the beginning of the record, length,
# number, access) and its mask; `s.watched` holds what was last seen there. Who reads a row says so
# in `s.watch_read` before the comparison: a core's load here, Python for the rest
# (machine/watchpoints.py). Nothing is compared while none is set.

AT, LENGTH, NUMBER, ACCESS = range(4)  # columns of a watchpoint
READS, CHANGES = 1, 2  # its access, as bits
_byte = LOAD[1]


@njit
def _differs(s: Any, i: Any) -> Any:
    at = s.watchpoint[i, AT]
    for k in range(s.watchpoint[i, LENGTH]):
        seen = np.int64(s.watched[i, k]) ^ _byte(s, at + k)
        if seen & np.int64(s.watch_mask[i, k]):
            return True
    return False


@njit
def _take(s: Any, i: Any) -> None:
    """What is there now is what the next change is compared with."""
    at = s.watchpoint[i, AT]
    for k in range(s.watchpoint[i, LENGTH]):
        s.watched[i, k] = np.uint8(_byte(s, at + k))


@njit
def changed(s: Any) -> Any:
    """True when a watched byte has changed; `watch_hit` names the watchpoint, `watch_old` what was.

    Of several that changed at once the first is named; each is compared with its new value from
    now on.
    """
    s.watch_hit[0] = -1
    s.watch_read[1] = 0
    for i in range(s.watch_count[0]):
        if _differs(s, i):
            if s.watch_hit[0] < 0:
                s.watch_hit[0] = i
                for k in range(s.watchpoint[i, LENGTH]):
                    s.watch_old[k] = s.watched[i, k]
            _take(s, i)
    if s.watch_read[0] and s.watch_hit[0] < 0:
        i = s.watch_read[0] - 1
        s.watch_hit[0] = i
        s.watch_read[1] = 1
        _take(s, i)
    s.watch_read[0] = 0
    return s.watch_hit[0] >= 0


@njit
def loads(s: Any, at: Any, size: Any) -> None:
    """A core is about to load `size` bytes at that distance in the record."""
    for i in range(s.watch_count[0]):
        start = s.watchpoint[i, AT]
        overlaps = start < at + size and at < start + s.watchpoint[i, LENGTH]
        if overlaps and s.watchpoint[i, ACCESS] & READS:
            s.watch_read[0] = i + 1


def refresh(s: Any) -> None:
    """A run begins: what is there now is no change (a host may have written it)."""
    s.watch_read[:] = 0
    for i in range(int(s.watch_count[0])):
        at, length = (int(n) for n in s.watchpoint[i, (AT, LENGTH)])
        s.watched[i, :length] = s.buffer[at : at + length]


# Breakpoints on Tensix words: the thread stops before a word of which some bits are as asked.
#
# A row of `s.word_break` is (mask, value, threads as a mask, number). A thread that stopped at a
# word does not stop at it again: `s.word_break_seen` tells how many it had executed then.

MASK, VALUE, WHOSE, WORD_BREAKPOINTS_NUMBER = range(4)  # columns


@njit
def stands(s: Any, t: Any, word: Any) -> Any:
    """True when thread `t` must stop before `word`, which is about to execute."""
    if s.word_break_seen[t] == s.executed[t] + 1:
        return False
    for i in range(s.word_break_count[0]):
        differs = (s.word_break[i, VALUE] ^ word) & s.word_break[i, MASK]
        if differs == 0 and (s.word_break[i, WHOSE] >> t) & 1:
            s.word_break_seen[t] = s.executed[t] + 1
            s.word_break_hit[0] = s.word_break[i, WORD_BREAKPOINTS_NUMBER]
            return True
    return False


# Where cycles go: a table by agent, pc and the condition that was waited for; spans of agents.
WORKS = 0  # condition of cycles in which a core works; -1 - opcode: in which a word is executed
NO_WORD = 1  # of a thread to which no core has pushed a word
RESULT = 2  # of a core whose instruction waits for a register or for L1
# Marks of the places at which a core reads a counter of an NIU, with no cycles of their own
NOC_READ, NOC_ACK, NOC_ATOMIC = 3, 4, 5
TABLE_FULL = 2  # s.spent where the table is full
_STEP = 7
_LONG = 64  # cycles of a core that may be one span


@njit
def charge(s: Any, agent: Any, pc: Any, condition: Any, cycles: Any) -> None:
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
    s.spent[0] = TABLE_FULL


@njit
def begin_wait(s: Any, agent: Any, condition: Any) -> None:
    """An agent begins to wait, unless it waits already."""
    if s.spent[0] and s.spent_for[agent] == WORKS:
        s.spent_for[agent], s.spent_since[agent] = condition, s.clock[0]
        t = agent - UNITS - CORES
        s.spent_of[agent] = s.latch_sem[t] if t >= 0 else np.int64(0)


@njit
def _span(s: Any, agent: Any, condition: Any, word: Any, pc: Any, begin: Any, cycles: Any) -> None:
    """Log a span. What a core does for up to _LONG cycles is one, with short waits for values."""
    if s.trace[0] != SPANS:
        return
    c = agent - UNITS
    if 0 <= c < CORES:
        if condition == RESULT and cycles < _LONG:
            return
        first, last = s.span[c, 0] - 1, s.span[c, 1]
        ends = condition != WORKS or begin - last >= _LONG or last - first >= _LONG
        if ends and first >= 0:
            record_span(s, agent, np.int64(WORKS), np.int64(0), s.span[c, 2], first, last - first)
            s.span[c, 0] = 0
        if condition == WORKS:
            if s.span[c, 0] == 0:
                s.span[c, 0], s.span[c, 2] = begin + 1, pc
            s.span[c, 1] = begin + cycles
            return
    record_span(s, agent, condition, word, pc, begin, cycles)


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
            charge(s, agent, pc, s.spent_for[agent], waited)
            of, since = s.spent_of[agent], s.spent_since[agent]
            _span(s, agent, s.spent_for[agent], of, pc, since, waited)
        s.spent_for[agent] = WORKS
    charge(s, agent, pc, np.int64(WORKS) if word < 0 else -1 - (word >> 24), cycles)
    _span(s, agent, np.int64(WORKS), word, pc, s.clock[0], cycles)
