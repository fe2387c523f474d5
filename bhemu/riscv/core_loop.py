"""The compiled engine: the loop over a core's instructions, and that of cores that are observed."""

from collections.abc import Callable
from typing import Any

import numpy as np

from bhemu.devices.debug_port import MODES
from bhemu.devices.noc_map import l1_end
from bhemu.jit.intrinsics import LOAD, STORE, call_access, l1_word, record_at
from bhemu.jit.record import PAGE, Member, Record, layout, plain
from bhemu.jit.subset import njit
from bhemu.memmap import DEVICE_BASE, DEVICE_SIZE, INSTRN_BUF_BASE, L1_SIZE, LOCAL_BASE, LOCAL_SIZES
from bhemu.riscv import access, l0_cache, semantics, turn
from bhemu.riscv.engine import TRANSLATED
from bhemu.riscv.formats import Atomic, Csr, Fence, Load, Store
from bhemu.riscv.semantics import JUMP_SELF, LEAVE
from bhemu.tensix.compiled import FAILED, RUN_CORE
from bhemu.tensix.rules import DONE, LOOK
from bhemu.tensix.state import CORES, LOCAL_SIZE, OFFSET

# The cores' instructions as one compiled loop over the state record.
#
# The compiled engine is this loop; the Unicorn engine executes in it what is not worth translating
# yet (`run_slice`).
#
# `step` (semantics.py) does most; devices, pushes, CSRs, atomics and refusals are done here, with
# the pc and the fuel of the core put into the record before.

_LOAD, _STORE, _SYSTEM, _AMO, _FENCE = (kind.code() for kind in (Load, Store, Csr, Atomic, Fence))
_LOCAL = OFFSET["local"]
_PAGE_BITS = PAGE.bit_length() - 1
TRANSLATE = 255  # from `run_slice`: no error
_STOP = -1  # from `special`: see stop_kind; _STOP - n: error n of turn.py
_load_word = LOAD[4]
_store_byte, _store_half, _store_word = STORE[1], STORE[2], STORE[4]


@njit
def _rs1(s: Any, c: Any, word: Any) -> Any:
    return np.int64(s.regs[c, (word >> 15) & 31])


@njit
def _rs2(s: Any, c: Any, word: Any) -> Any:
    return np.int64(s.regs[c, (word >> 20) & 31])


@njit
def _set(s: Any, c: Any, word: Any, value: Any) -> None:
    rd = (word >> 7) & 31
    if rd:
        s.regs[c, rd] = np.uint32(value)


@njit
def _is_device(at: Any) -> Any:
    return DEVICE_BASE <= at < DEVICE_BASE + DEVICE_SIZE


@njit
def _load(s: Any, c: Any, pc: Any, word: Any, size: Any) -> Any:
    """A load from a device or through the L0 cache, or one that is refused."""
    base = _rs1(s, c, word)
    at = turn.accessed(word, base)
    if at & (size - 1):
        turn.misaligned(s, c, word, size - 1, base)
        return np.int64(_STOP)
    s.fuel[c] -= 1
    if at < l1_end(s):
        _set(s, c, word, semantics.loaded(word, l0_cache.load(s, c, at, size)))
        return pc + 4
    if not _is_device(at):
        return np.int64(_STOP - turn.LOAD_UNMAPPED)
    if access.load(s, c, at, size) != DONE:
        return np.int64(_STOP)
    _set(s, c, word, semantics.loaded(word, s.loaded[0]))
    return pc + 4


@njit
def _overwritten(s: Any, c: Any, at: Any) -> None:
    """The core has stored to L1: the other engine drops its code when it may hold some of it.

    From then on it executes the page of this store, because it notices its own.
    """
    if s.translate_after[0] and s.code_page[at // PAGE] & np.uint8(1 << c):
        s.flush[c] = 1
        s.page_count[c, s.pc[c] // PAGE] = TRANSLATED
        s.attention[0] |= LOOK


@njit
def store(s: Any, c: Any, pc: Any, word: Any) -> Any:
    """A store to a device or beside the L0 cache, or one that is refused."""
    base, size = _rs1(s, c, word), semantics.size(word)
    at = turn.accessed(word, base)
    if size > 0 and at & (size - 1):
        turn.misaligned(s, c, word, size - 1, base)
        return np.int64(_STOP)
    s.stored[c] = 1
    if size <= 0:
        turn.fail(s, c, turn.ILLEGAL, word=word)
        return np.int64(_STOP)
    if s.until_count[0]:
        s.attention[0] |= turn.STORED
    s.fuel[c] -= 1
    value = _rs2(s, c, word) & ((1 << (8 * size)) - 1)
    if at < l1_end(s):
        if s.l0[0]:
            l0_cache.stored(s, c, at)
        if size == 4:
            _store_word(s, at, value)
        elif size == 2:
            _store_half(s, at, value)
        else:
            _store_byte(s, at, value)
        _overwritten(s, c, at)
        return pc + 4
    if not _is_device(at):
        return np.int64(_STOP - turn.STORE_UNMAPPED)
    return pc + 4 if access.store(s, c, at, size, value) == DONE else np.int64(_STOP)


@njit
def special(s: Any, c: Any, pc: Any, word: Any) -> Any:
    """Execute a word that `step` has left, no store: the next pc, < 0 when the slice ends."""
    low = word & 0x7F
    if word & 3 != 3:  # push the run of `.ttinsn` words that begins here; the pc after it
        s.stored[c] = 1
        s.core_address[c] = np.uint32(INSTRN_BUF_BASE)
        while True:
            s.fuel[c] -= 1
            if not access.push(s, c, turn.pushed(word)):
                return np.int64(_STOP)
            pc += 4
            if s.fuel[c] <= 0 or s.attention[0] != 0 or pc & (PAGE - 1) == 0:
                return pc
            word = l1_word(s, pc)
            if word & 3 == 3:
                return pc
            s.pc[c] = np.uint32(pc)
    if low == _LOAD:
        size = semantics.size(word)
        if size > 0:
            return _load(s, c, pc, word, size)
    elif low == _SYSTEM:
        if (word >> 12) & 7:
            old = access.csr(s, c, word, _rs1(s, c, word))
            if old < 0:
                return np.int64(_STOP)
            _set(s, c, word, old)
            return pc + 4
        turn.stands(s, c, pc, word)
        return np.int64(_STOP)
    elif low == _AMO:
        at = _rs1(s, c, word)
        if turn.atomic(s, c, word, at):
            return np.int64(_STOP)
        old = _load_word(s, at)
        new = semantics.changed(word, old, _rs2(s, c, word))
        if new < 0:
            turn.fail(s, c, turn.ILLEGAL, word=word)
            return np.int64(_STOP)
        s.fuel[c] -= 1
        l0_cache.drop(s, c)
        _store_word(s, at, new)
        _overwritten(s, c, at)
        _set(s, c, word, old)
        return pc + 4
    elif low == _FENCE and word >> 12 & 7 <= 1:
        s.fuel[c] -= 1
        l0_cache.drop(s, c)
        return pc + 4
    elif word == JUMP_SELF:
        turn.stands(s, c, pc, word)
        return np.int64(_STOP)
    if semantics.jumps(word) > 0:  # its target is misaligned
        s.fuel[c] -= 1
        turn.fail(s, c, turn.TRAP, address=pc, cause=np.int64(turn.MISALIGNED_FETCH))
    else:
        turn.fail(s, c, turn.ILLEGAL, word=word)
    return np.int64(_STOP)


@njit
def no_code(c: Any, pc: Any) -> Any:
    """The error of a fetch outside of L1, or of a page of L1 that the engine must allow."""
    local = LOCAL_BASE <= pc < LOCAL_BASE + LOCAL_SIZES[c]
    is_mapped = pc < L1_SIZE or local or _is_device(pc)
    return np.int64(turn.FETCH_PROT if is_mapped else turn.FETCH_UNMAPPED)


@njit
def fetches(s: Any, c: Any, pc: Any) -> Any:
    """0 when the word at `pc` may be executed, else the error; notes the page as code."""
    if pc < l1_end(s):
        s.code_page[pc // PAGE] |= np.uint8(1 << c)
        return np.int64(0)
    return no_code(c, pc) if pc >= L1_SIZE else np.int64(turn.FETCH_UNMAPPED)


@njit
def stop(s: Any, c: Any, pc: Any) -> Any:
    """Stop kind before the instruction at `pc`; without translated code a flush is done here."""
    if s.attention[0] & turn.LOOKING:
        turn.look(s, c, pc)
    kind = turn.must_stop(s, c, pc)
    if kind == turn.FLUSHES and (s.translate_after[0] == 0 or s.translated[c] == 0):
        s.flush[c] = 0
        kind = turn.must_stop(s, c, pc)
    if kind == turn.NONE:
        s.attention[0] = turn.watchful(s, c) | (s.attention[0] & turn.LOOKING)
        word = l1_word(s, pc)
        if s.watch_count[0]:
            turn.watch_load(s, c, word, _rs1(s, c, word))
        if s.debug_port[c, MODES]:
            access.announce(s, c, word, _rs1(s, c, word))
    return kind


@njit
def before_translation(s: Any, c: Any, pc: Any) -> Any:
    """Instructions that core `c` may execute in the page of `pc` before it is translated."""
    if s.translate_after[0] == 0 or pc >= L1_SIZE:
        return np.int64(0)
    return s.translate_after[0] - s.page_count[c, pc // PAGE]


@njit
def _room(s: Any, c: Any, pc: Any, translates: Any) -> Any:
    """Instructions that may be executed in the page of `pc`; less than 0: why none, negated."""
    if translates:
        most = before_translation(s, c, pc)
        return most if most > 0 else np.int64(-TRANSLATE)
    error = fetches(s, c, pc)
    return np.int64(1 << 62) if error == 0 else -error


@njit
def run_slice(s: Any, c: Any) -> Any:
    """Run core `c` from its pc until it must stop; 0, or the error that ended it.

    TRANSLATE: it has come to a page that the other engine translates.
    """
    local, room = np.int64(_LOCAL + c * LOCAL_SIZE), np.int64(LOCAL_SIZES[c])
    pc, word, l1 = np.int64(s.pc[c]), np.int64(0), np.int64(0 if s.l0[0] else l1_end(s))
    translates = s.translate_after[0] != 0
    code = np.uint8(1 << c if translates else 0)
    while True:
        s.pc[c] = np.uint32(pc)
        most = _room(s, c, pc, translates)
        if most < 0:
            return -most
        if s.fuel[c] <= 0 or s.attention[0] != 0:
            kind = stop(s, c, pc)
            if kind != turn.NONE:
                s.stop_kind[c] = kind
                return np.int64(0)
        given, page, target = s.fuel[c], pc >> _PAGE_BITS, pc
        fuel = given
        last = fuel - 1 if s.attention[0] != 0 else max(fuel - most, np.int64(0))
        while fuel > last and pc >> _PAGE_BITS == page:
            word = l1_word(s, pc)
            target = semantics.step(s, c, pc, word, local, room, l1, code)
            if target < 0 or target >= LEAVE:
                break
            pc = target
            fuel -= 1
        s.fuel[c] = fuel
        if target < 0:
            s.pc[c] = np.uint32(pc)
            is_store = word & 0x7F == _STORE
            pc = store(s, c, pc, word) if is_store else special(s, c, pc, word)
        elif target >= LEAVE:
            pc = target - LEAVE
            s.fuel[c] -= 1
            s.attention[0] |= turn.STORED
        if translates:
            s.page_count[c, page] += given - s.fuel[c] + 1
        if pc < 0:
            return _STOP - pc


def run_core(s: Any, c: Any) -> Any:
    """STEP entry: run or resume the turn of core `c`; 0 = the turn is over."""
    if not turn.opens(s, c):
        return np.int64(0)
    error = run_slice(s, c) if turn.starts(s, c) else np.int64(0)
    return turn.end(s, c, error, np.int64(s.pc[c]))


# The same loop for cores that are observed: counts by pc, and calls of Python.
#
# One instruction at a time, with the schedule, the counts and the results of a run that nothing
# observes. Passes of a polling loop that are counted instead of executed (turn.py, tensix/loop.py)
# count here too; where Python is called for instructions or accesses, all passes are executed.

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
    Member(
        "trail", np.int64, (CORES, turn.LONGEST_PASS), "the last ones: 2 * pc + was it left, a ring"
    ),
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
_observed: Callable[[Any], Any] = record_at(OBSERVED_DTYPE)


class ObservedRecord(Record):
    """What is asked and counted of the cores of one tile."""

    MEMBERS = MEMBERS
    DTYPE = OBSERVED_DTYPE


OBSERVED_PLACE = RUN_CORE
"""The place in a tile's `profile_table` that holds the record's address: a part that is wrapped
while time is profiled, when no core is observed."""
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
        o.trail[c, o.trail_at[c] % turn.LONGEST_PASS] = 2 * (pc + 4 * k) + left
        o.trail_at[c] += 1


@njit
def repeated(o: Any, c: Any, n: Any, length: Any) -> None:
    """`n` instructions of a loop of `length`, whose last pass was executed, came after it."""
    for k in range(min(n, length)):
        one = o.trail[c, (o.trail_at[c] - length + k) % turn.LONGEST_PASS]
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
    if word & 0x7F == _AMO:
        _tell(s, o, c, np.int64(READS), at, size, before)
        _tell(s, o, c, np.int64(WRITES), at, size, _peek(s, c, at, size))
        return
    rd = word >> 7 & 31
    value = np.int64(s.regs[c, rd]) & mask
    if rd == 0:
        value = np.int64(s.loaded[0]) & mask if at >= DEVICE_BASE else _peek(s, c, at, size)
    _tell(s, o, c, np.int64(READS), at, size, value)


@njit
def _observed_slice(s: Any, o: Any, c: Any) -> Any:
    """Run core `c` from its pc until it must stop; 0, or the error that ended it."""
    local, room = np.int64(_LOCAL + c * LOCAL_SIZE), np.int64(LOCAL_SIZES[c])
    l1 = np.int64(0 if s.l0[0] else L1_SIZE)
    pc, page = np.int64(s.pc[c]), np.int64(-1)
    while True:
        s.pc[c] = np.uint32(pc)
        if pc >> _PAGE_BITS != page:
            error = fetches(s, c, pc)
            if error != 0:
                return error
            page = pc >> _PAGE_BITS
        if s.fuel[c] <= 0 or s.attention[0] != 0:
            fuel = s.fuel[c]
            kind = stop(s, c, pc)
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
                if word & 0x7F == _AMO:
                    before = _peek(s, c, at, size)
        used = s.fuel_given[c] - s.fuel[c]
        target = semantics.step(s, c, pc, word, local, room, l1, np.uint8(0))
        if target < 0:
            is_store = word & 0x7F == _STORE
            pc = store(s, c, pc, word) if is_store else special(s, c, pc, word)
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
    o = _observed(s.profile_table[OBSERVED_PLACE])
    if s.retired[c] > o.known[c] and s.loop_length[c] and o.counts[0]:  # rounds were skipped
        repeated(o, c, s.retired[c] - o.known[c], s.loop_length[c])
    o.known[c] = s.retired[c]
    if not turn.opens(s, c):
        return np.int64(0)
    error = _observed_slice(s, o, c) if turn.starts(s, c) else np.int64(0)
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
