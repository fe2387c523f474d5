"""The loop of core_loop.py for cores that are observed: counts by pc, and calls of Python.

One instruction at a time, with the schedule, the counts and the results of a run that nothing
observes. Passes of a polling loop that are counted instead of executed (turn.py, tensix/loop.py)
count here too; where Python is called for instructions or accesses, all passes are executed.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from bhemu.jit.intrinsics import LOAD, call_access, l1_word, record_at
from bhemu.jit.record import PAGE, Member, Record, layout, plain
from bhemu.jit.subset import njit
from bhemu.memmap import DEVICE_BASE, L1_SIZE, LOCAL_BASE, LOCAL_SIZES
from bhemu.riscv import core_loop, semantics, turn
from bhemu.riscv.formats import Atomic, Store
from bhemu.riscv.semantics import LEAVE
from bhemu.riscv.turn import LONGEST_PASS
from bhemu.tensix.compiled import FAILED, RUN_CORE
from bhemu.tensix.rules import DONE, LOOK
from bhemu.tensix.state import CORES, LOCAL_SIZE, OFFSET

RANGES = 32
PC, READS, WRITES = 1, 2, 4  # kinds of what is told, as bits
FAILED_RULE = 8  # what is told of a compiled function: that of range `kind >> 8` has failed
WHOSE, KINDS, LOW, HIGH = range(4)  # columns of a range

MEMBERS = (
    Member(
        "count",
        np.int64,
        (CORES, L1_SIZE // 4, 2),
        "by core and pc: times executed; times that the next one was not the one after it",
    ),
    Member("counts", np.int64, (1,), "1 = they are counted"),
    Member("trail", np.int64, (CORES, LONGEST_PASS), "the last ones: 2 * pc + was it left, a ring"),
    Member("trail_at", np.int64, (CORES,), "how many have been put there"),
    Member("known", np.int64, (CORES,), "instructions retired that are counted, or came before"),
    Member("tell", np.uint64, (1,), "ACCESS entry: something in a range has happened"),
    Member("range", np.int64, (RANGES, 4), "cores as a mask, kinds, first byte, byte after it"),
    Member("ranges", np.int64, (1,), "how many"),
    Member(
        "call", np.uint64, (RANGES,), "ACCESS entry of a range's compiled function, 0 = Python's"
    ),
    Member("at", np.int64, (RANGES,), "what that gets: machine/plugin.py"),
    Member("kinds", np.int64, (1,), "those of all ranges"),
    Member("told", np.int64, (CORES, 2), "1 + pc that was told last, instructions retired then"),
)
OBSERVED_DTYPE = layout(MEMBERS)
_at: Callable[[Any], Any] = record_at(OBSERVED_DTYPE)


class ObservedRecord(Record):
    """What is asked and counted of the cores of one tile."""

    MEMBERS = MEMBERS
    DTYPE = OBSERVED_DTYPE


ADDRESS = RUN_CORE
"""The place in a tile's `profile_table` that holds the record's address: a part that is wrapped
while time is profiled, when no core is observed."""
_PAGE_BITS = PAGE.bit_length() - 1
_STOP = -1  # as of core_loop.special
_LOCAL = OFFSET["local"]
_STORE, _ATOMIC = Store.code(), Atomic.code()
_byte = LOAD[1]


@njit
def _tell(s: Any, o: Any, c: Any, kind: Any, address: Any, size: Any, value: Any) -> None:
    """Call what ranges ask for, Python once for all of its own; what is raised stops the core."""
    is_told = False
    for i in range(o.ranges[0]):
        if o.range[i, KINDS] & kind == 0 or o.range[i, WHOSE] >> c & 1 == 0:
            continue
        if o.range[i, LOW] >= address + size or address >= o.range[i, HIGH]:
            continue
        what = c | kind << 8
        if o.call[i]:
            if call_access(o.call[i], s, o.at[i], what | size << 16, address, value) == DONE:
                continue
            what |= (FAILED_RULE | i << 8) << 8
        elif is_told:
            continue
        else:
            is_told = True
        if call_access(o.tell[0], s, what, address, size, value) != DONE:
            s.status[0] = FAILED
            s.status_core[0], s.status_thread[0] = c, -1
            s.attention[0] |= LOOK
            return


@njit
def _peek(s: Any, c: Any, at: Any, size: Any) -> Any:
    """Bytes of L1 or of the local memory of core `c`, as a number; 0 of anything else."""
    if at >= L1_SIZE:
        at -= LOCAL_BASE
        if at < 0 or at >= LOCAL_SIZES[c]:
            return np.int64(0)
        at += _LOCAL + c * LOCAL_SIZE
    value = np.int64(0)
    for k in range(size):
        value |= _byte(s, at + k) << (8 * k)
    return value


@njit
def _count(o: Any, c: Any, pc: Any, n: Any, target: Any) -> None:
    """`n` instructions from `pc` on were executed, of which the last led to `target`."""
    for k in range(n):
        at, left = (pc >> 2) + k, np.int64(0)
        o.count[c, at, 0] += 1
        if k == n - 1 and target >= 0 and target != pc + 4 * n:
            o.count[c, at, 1] += 1
            left = np.int64(1)
        o.trail[c, o.trail_at[c] % LONGEST_PASS] = 2 * (pc + 4 * k) + left
        o.trail_at[c] += 1


@njit
def repeated(o: Any, c: Any, n: Any, length: Any) -> None:
    """`n` instructions of a loop of `length`, whose last pass was executed, came after it."""
    for k in range(min(n, length)):
        one = o.trail[c, (o.trail_at[c] - length + k) % LONGEST_PASS]
        times = (n - k + length - 1) // length
        o.count[c, one >> 3, 0] += times
        o.count[c, one >> 3, 1] += times * (one & 1)


@njit
def _tell_access(s: Any, o: Any, c: Any, word: Any, at: Any, size: Any, before: Any) -> None:
    """After a load, store or atomic; before: rs2 of a store, what an atomic has read."""
    mask = (np.int64(1) << (8 * size)) - 1
    if word & 0x7F == _STORE:
        _tell(s, o, c, np.int64(WRITES), at, size, before & mask)
        return
    if word & 0x7F == _ATOMIC:
        _tell(s, o, c, np.int64(READS), at, size, before)
        _tell(s, o, c, np.int64(WRITES), at, size, _peek(s, c, at, size))
        return
    rd = word >> 7 & 31
    value = np.int64(s.regs[c, rd]) & mask
    if rd == 0:
        value = np.int64(s.loaded[0]) & mask if at >= DEVICE_BASE else _peek(s, c, at, size)
    _tell(s, o, c, np.int64(READS), at, size, value)


@njit
def _slice(s: Any, o: Any, c: Any) -> Any:
    """Run core `c` from its pc until it must stop; 0, or the error that ended it."""
    local, room = np.int64(_LOCAL + c * LOCAL_SIZE), np.int64(LOCAL_SIZES[c])
    l1 = np.int64(0 if s.l0[0] else L1_SIZE)
    pc, page = np.int64(s.pc[c]), np.int64(-1)
    while True:
        s.pc[c] = np.uint32(pc)
        if pc >> _PAGE_BITS != page:
            error = core_loop.fetches(s, c, pc)
            if error != 0:
                return error
            page = pc >> _PAGE_BITS
        if s.fuel[c] <= 0 or s.attention[0] != 0:
            fuel = s.fuel[c]
            kind = core_loop.stop(s, c, pc)
            if s.fuel[c] < fuel and o.counts[0]:
                repeated(o, c, fuel - s.fuel[c], s.loop_length[c])
            if kind != turn.NONE:
                s.stop_kind[c] = kind
                return np.int64(0)
        start, word, size = pc, l1_word(s, pc), np.int64(0)
        at, before, kinds = np.int64(0), np.int64(0), o.kinds[0]
        if kinds & PC:
            # Before an instruction; once, where it is tried again because it must wait.
            retired = s.retired[c] + s.fuel_given[c] - s.fuel[c]
            if o.told[c, 0] != pc + 1 or o.told[c, 1] != retired:
                o.told[c, 0], o.told[c, 1] = pc + 1, retired
                _tell(s, o, c, np.int64(PC), pc, np.int64(4), word)
            if s.status[0] != 0:
                s.stop_kind[c] = turn.FAULT
                return np.int64(0)
            if word & 3 != 3:
                s.attention[0] |= LOOK  # so that one Tensix word is pushed, not a run of them
        if kinds & (READS | WRITES):
            size = max(semantics.size(word), np.int64(0))
            if size:
                at = turn.accessed(word, np.int64(s.regs[c, word >> 15 & 31]))
                before = np.int64(s.regs[c, word >> 20 & 31])
                if word & 0x7F == _ATOMIC:
                    before = _peek(s, c, at, size)
        used = s.fuel_given[c] - s.fuel[c]
        target = semantics.step(s, c, pc, word, local, room, l1, np.uint8(0))
        if target < 0:
            is_store = word & 0x7F == _STORE
            pc = core_loop.store(s, c, pc, word) if is_store else core_loop.special(s, c, pc, word)
        else:
            s.fuel[c] -= 1
            if target >= LEAVE:
                target -= LEAVE
                s.attention[0] |= turn.STORED
            pc = target
        executed = s.fuel_given[c] - s.fuel[c] - used
        if pc < _STOP:
            executed -= 1  # an access that the machine refuses: `end` gives it back
        if o.counts[0]:
            _count(o, c, start, executed, pc)
        if size > 0 and executed > 0:
            _tell_access(s, o, c, word, at, size, before)
        if pc < 0:
            return _STOP - pc


def observed_core(s: Any, c: Any) -> Any:
    """STEP entry: run or resume the turn of core `c`; 0 = the turn is over."""
    o = _at(s.profile_table[ADDRESS])
    if s.retired[c] > o.known[c] and s.loop_length[c] and o.counts[0]:  # rounds were skipped
        repeated(o, c, s.retired[c] - o.known[c], s.loop_length[c])
    o.known[c] = s.retired[c]
    if not turn.opens(s, c):
        return np.int64(0)
    error = _slice(s, o, c) if turn.starts(s, c) else np.int64(0)
    status = turn.end(s, c, error, np.int64(s.pc[c]))
    o.known[c] = s.retired[c]
    return status


_repeated = plain(repeated)


def settle(o: ObservedRecord, s: Any) -> None:
    """Count what the last rounds have skipped; s: has `retired` and `loop_length` of the tile."""
    for c in range(CORES):
        length = int(s.loop_length[c])
        if o.counts[0] and s.retired[c] > o.known[c] and length:
            _repeated(o, c, int(s.retired[c] - o.known[c]), length)
        o.known[c] = s.retired[c]
