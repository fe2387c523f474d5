"""What is observed while compiled code runs: trace ring, watchpoints, breakpoints on words."""

from typing import Any

import numpy as np

from bhemu.jit.intrinsics import LOAD
from bhemu.jit.subset import njit
from bhemu.tensix.rules import STOP_LOG, clock_reached
from bhemu.tensix.state import COUNTED, LOG_SIZE, THREADS


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
