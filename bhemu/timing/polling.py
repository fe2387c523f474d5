"""Cores that poll: passes of a loop without effect are left out, and counted when they are over.

A pass that loads what the one before loaded, stores nothing, changes no register and takes the
same cycles is the same for ever, until something changes what it loads. So such a core sleeps at
the begin of a pass: it has no turns, and no others are asked because of it. Its instructions stand
on a tape, with their cycles and results. After each act that may have changed what it loads, these
places are compared; where one has changed, the core is put where it would stand: the count of its
instructions, registers and pc follow from the cycle alone (`release`), and it goes on. Its loads of
L1 take their part of the port that the cores share (`share_port`).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from bhemu import memmap as mm
from bhemu.devices import niu
from bhemu.jit.intrinsics import LOAD, l1_word, record_at
from bhemu.jit.record import Member, Record, layout
from bhemu.jit.subset import njit
from bhemu.riscv import turn
from bhemu.riscv.formats import Atomic, Branch, Fence, Load, Register, RegisterImmediate, Store
from bhemu.riscv.isa import rv32i
from bhemu.riscv.semantics import JUMP_SELF
from bhemu.tensix import mmio, observe
from bhemu.tensix.compiled import OUTSIDE
from bhemu.tensix.in_flight import NEVER
from bhemu.tensix.state import CORES, DRAWN, LOCAL_SIZE, OFFSET, RUNNING, UNITS
from bhemu.timing import core
from bhemu.timing.cycles import AT_ONCE

LONGEST = 32  # instructions of a pass
_ENDED = -1  # `at` of a core that does something else
MEMBERS = (
    Member("asleep", np.int64, (1,), "cores whose passes are left out, as a mask"),
    Member("head", np.int64, (CORES,), "pc where a pass begins"),
    Member("begun", np.int64, (CORES,), "cycle in which this one has"),
    Member("at", np.int64, (CORES,), "its instructions so far, -1 = it is no such pass"),
    Member("same", np.int64, (CORES,), "1 = they are those on the tape"),
    Member("length", np.int64, (CORES,), "instructions of the pass on the tape"),
    Member("period", np.int64, (CORES,), "its cycles"),
    Member("pc", np.int64, (CORES, LONGEST), "the tape: pc"),
    Member("word", np.int64, (CORES, LONGEST), "instruction"),
    Member("when", np.int64, (CORES, LONGEST), "cycles from the begin of the pass"),
    Member("rd", np.int64, (CORES, LONGEST), "register that it writes, 0 = none"),
    Member("value", np.uint32, (CORES, LONGEST), "what it then holds"),
    Member("ready", np.int64, (CORES, LONGEST), "cycles until it does"),
    Member("address", np.int64, (CORES, LONGEST), "what it loads, -1 = nothing"),
    Member("loaded", np.int64, (CORES, LONGEST), "what stands there"),
    Member("port", np.int64, (CORES, LONGEST + 1), "loads of L1 of a pass: how many; when, each"),
    Member("next", np.int64, (CORES, 2), "the next of them that is to have the port: cycle, which"),
    Member("counted", np.int64, (CORES,), "instructions that were left out so far"),
)
DTYPE = layout(MEMBERS)
at: Callable[[Any], Any] = record_at(DTYPE)
PLACE = OUTSIDE
"""The place in a tile's `profile_table` that holds the record's address: a part without entry."""


class PollingRecord(Record):
    """The passes of the cores of one tile."""

    MEMBERS = MEMBERS
    DTYPE = DTYPE


_LOAD, _BRANCH, _FENCE = Load.code(), Branch.code(), Fence.code()
_STORE, _ATOMIC = Store.code(), Atomic.code()
_UPPER = (rv32i.LUI.match & 0x7F, rv32i.AUIPC.match & 0x7F)
_JUMPS = (rv32i.JAL.match & 0x7F, rv32i.JALR.match & 0x7F)
_ALONE = (Register.code(), RegisterImmediate.code())
_TAKEN = np.isin(np.arange(128), (_LOAD, _BRANCH, _FENCE, *_UPPER, *_JUMPS, *_ALONE))
_LOCAL = OFFSET["local"]
_byte = LOAD[1]
_APART = 6
"""Cycles between loads of L1 of a core after which the port does not hold up the later one.

Each other core waits for its own turn at the port, so at most four loads are before this one: less
than 65 sixteenths, and then 29 for itself."""
_BACK = 24
"""Cycles after which it does not matter for the port when a poller has loaded: with loads that are
_APART four of them leave it free once in that time."""
_FIRST = UNITS  # agent of core 0
_CLOCK = mm.DEBUG_BASE + mm.RISCV_DEBUG_REG_WALL_CLOCK_0
_CLOCK_END = mm.DEBUG_BASE + mm.RISCV_DEBUG_REG_WALL_CLOCK_1 + 4


@njit
def of(s: Any) -> Any:
    """The record of a tile."""
    return at(s.profile_table[PLACE])


@njit
def _peek(s: Any, c: Any, address: Any, size: Any) -> Any:
    """What a load without effect would give now, without sign."""
    if address < mm.L1_SIZE:
        value = l1_word(s, address & ~3) >> (8 * (address & 3))
        return value & ((1 << (8 * size)) - 1)
    if address >= mm.LOCAL_BASE and address < mm.LOCAL_BASE + mm.LOCAL_SIZES[c]:
        value, first = np.int64(0), _LOCAL + c * LOCAL_SIZE + address - mm.LOCAL_BASE
        for k in range(size):
            value |= np.int64(_byte(s, first + k)) << (8 * k)
        return value
    if address >= mm.OVERLAY_BASE:
        offset = address - mm.OVERLAY_BASE
        mmio.stream_read(s, offset // mm.STREAM_SIZE, offset % mm.STREAM_SIZE >> 2)
    else:
        offset = address - mm.NOC0_BASE
        niu.load(s, offset // mm.NOC_SIZE, offset % mm.NOC_SIZE)
    return np.int64(s.loaded[0])


@njit
def _is_known(c: Any, address: Any) -> Any:
    """Whether loads from there have no effect, and give what `_peek` does."""
    if address < mm.L1_SIZE or mm.LOCAL_BASE <= address < mm.LOCAL_BASE + mm.LOCAL_SIZES[c]:
        return True
    of_niu = mm.NOC0_BASE <= address < mm.NOC0_BASE + 2 * mm.NOC_SIZE
    return of_niu or mm.OVERLAY_BASE <= address < mm.OVERLAY_END


@njit
def target(s: Any, c: Any, word: Any) -> Any:
    """Before an instruction: what it loads, -1 where it loads nothing."""
    return np.int64(-1) if word & 0x7F != _LOAD or word & 3 != 3 else core.target(s, c, word)


@njit
def _is_drawn(s: Any, c: Any) -> Any:
    """Whether something is drawn for each instruction of the core, or may be."""
    if s.timed[0] != DRAWN:
        return False
    if s.late_named[0] == 0:
        return s.late_slow[_FIRST + c] != 0
    for i in range(s.late_acts.shape[0]):
        if s.late_acts[i, 0] == _FIRST + c:
            return True
    return False


@njit
def _put(p: Any, row: Any, c: Any, i: Any, value: Any) -> None:
    if row[c, i] != value:
        row[c, i] = value
        p.same[c] = 0


@njit
def after(s: Any, p: Any, c: Any, word: Any, address: Any) -> None:
    """Core `c` has executed the instruction with which its turn began; it loaded from `address`."""
    if p.asleep[0] and (word & 0x7F == _STORE or word & 0x7F == _ATOMIC):
        changed(s, p)
    pc, follows, i = s.turn_pc[0], np.int64(s.pc[c]), p.at[c]
    taken = word & 3 == 3 and _TAKEN[word & 0x7F]
    if word & 0x7F == _LOAD:
        taken = address >= 0 and _is_known(c, address)
    if not taken or i >= LONGEST or _is_drawn(s, c):
        p.at[c] = _ENDED  # cycles that are drawn may be the same by chance
        return
    if i >= 0:
        opcode, rd = word & 0x7F, word >> 7 & 31
        if opcode == _BRANCH:
            rd = np.int64(0)
        size = np.int64(1) << (word >> 12 & 3)
        _put(p, p.pc, c, i, pc)
        _put(p, p.word, c, i, word)
        _put(p, p.when, c, i, s.clock[0] - p.begun[c])
        _put(p, p.rd, c, i, rd)
        _put(p, p.value, c, i, s.regs[c, rd])
        _put(p, p.ready, c, i, s.core_ready[c, rd] - s.clock[0] if rd else np.int64(0))
        _put(p, p.address, c, i, address)
        _put(p, p.loaded, c, i, _peek(s, c, address, size) if address >= 0 else np.int64(0))
        p.at[c] = i + 1
    if follows <= pc and (i < 0 or follows != p.head[c]) and word != JUMP_SELF:
        p.head[c], p.at[c], p.same[c] = follows, 0, 0


@njit
def _has_all(s: Any, p: Any, c: Any) -> Any:
    """Whether all that the pass on the tape loads, and its code, stand as they stood."""
    for i in range(p.length[c]):
        if l1_word(s, p.pc[c, i]) != p.word[c, i]:
            return False
        address = p.address[c, i]
        if address >= 0:
            size = np.int64(1) << (p.word[c, i] >> 12 & 3)
            if _peek(s, c, address, size) != p.loaded[c, i]:
                return False
    return True


@njit
def _is_looked_at(s: Any, c: Any) -> Any:
    """Whether somebody wants to see each instruction, or what it spends."""
    spends = s.spent[0] or s.trace[0] == observe.SPANS or s.route[0]
    return spends or core.is_looked_at(s, c)


@njit
def sleeps(s: Any, p: Any, c: Any, pc: Any) -> Any:
    """Core `c` begins an instruction in this cycle: whether it falls asleep instead."""
    if pc != p.head[c] or p.at[c] < 0:
        return False
    n, period = p.at[c], s.clock[0] - p.begun[c]
    repeats = p.same[c] and n > 0 and n == p.length[c] and period == p.period[c]
    p.begun[c], p.at[c], p.same[c] = s.clock[0], 0, 1
    p.length[c], p.period[c] = n, period
    if not repeats or s.core_state[c] != RUNNING or _is_drawn(s, c) or _is_looked_at(s, c):
        return False
    # Note the loads of L1 of the pass, where they can be given the port afterwards.
    loads, last = np.int64(0), np.int64(-1)
    for i in range(n):
        if 0 <= p.address[c, i] < mm.L1_SIZE:
            if last >= 0 and p.when[c, i] - last < _APART:
                return False
            last = p.when[c, i]
            p.port[c, 1 + loads] = last
            loads += 1
    p.port[c, 0] = loads
    for agent in range(_FIRST, _FIRST + CORES):
        if s.late_slow[agent] == AT_ONCE:
            return False
    if (loads and period - last + p.port[c, 1] < _APART) or not _has_all(s, p, c):
        return False
    p.next[c, 0], p.next[c, 1] = s.clock[0] + p.port[c, 1], 0
    p.asleep[0] |= 1 << c
    s.agent_next[_FIRST + c] = NEVER
    return True


@njit
def share_port(s: Any, p: Any) -> None:
    """Loads of L1 of sleeping cores that come before the agent that acts now take the port."""
    now, before = s.clock[0], s.agent_at[0] - _FIRST
    for c in range(CORES):
        since = now - _BACK - p.period[c]
        if p.asleep[0] >> c & 1 and p.port[c, 0] and p.next[c, 0] < since:
            p.next[c, 0] += (since - p.next[c, 0]) // p.period[c] * p.period[c]
    while True:
        first, who = now, np.int64(-1)
        for c in range(CORES):
            if p.asleep[0] >> c & 1 and p.port[c, 0]:
                when = p.next[c, 0]
                if when < first or (when == now and who < 0 and c < before):
                    first, who = when, np.int64(c)
        if who < 0:
            return
        core.take_port(s, who, first)
        i = p.next[who, 1] + 1
        if i == p.port[who, 0]:
            i = np.int64(0)
            p.next[who, 0] += p.period[who]
        p.next[who, 0] += p.port[who, 1 + i] - p.port[who, 1 + p.next[who, 1]]
        p.next[who, 1] = i


@njit
def release(s: Any, p: Any, c: Any) -> None:
    """Sleeping core `c` stands where it would if it had executed all that came before.

    That is what it does in cycles before this one, and in this one where its turn was before that
    of the agent that acts.
    """
    share_port(s, p)
    age = s.clock[0] - p.begun[c] + (1 if _FIRST + c < s.agent_at[0] else 0)
    passes, age = age // p.period[c], age % p.period[c]
    begun, n, length = p.begun[c] + passes * p.period[c], np.int64(0), p.length[c]
    while n < length and p.when[c, n] < age:
        n += 1
    if passes:  # the last whole one
        for i in range(length):
            s.core_ready[c, p.rd[c, i]] = begun - p.period[c] + p.when[c, i] + p.ready[c, i]
    for i in range(n):
        if p.rd[c, i]:
            s.regs[c, p.rd[c, i]] = p.value[c, i]
        s.core_ready[c, p.rd[c, i]] = begun + p.when[c, i] + p.ready[c, i]
    s.core_ready[c, 0] = 0
    # As riscv/access.py counts repeated loads of devices.
    loads, more = np.int64(0), np.int64(0)
    for i in range(length):
        if p.address[c, i] >= mm.DEVICE_BASE:
            loads += 1
            if i < n:
                more += 1
                s.core_address[c], s.poll_pc[c] = p.address[c, i], p.pc[c, i]
    if loads == 1:
        s.poll_count[c] = (s.poll_count[c] + passes + more) % turn.POLLS
    s.retired[c] += passes * length + n
    p.counted[c] += passes * length + n
    p.begun[c], p.at[c] = begun, n
    ends = n == length
    s.pc[c] = np.uint32(p.head[c] if ends else p.pc[c, n])
    s.agent_next[_FIRST + c] = begun + (p.period[c] if ends else p.when[c, n])
    p.asleep[0] &= ~(np.int64(1) << c)


@njit
def release_all(s: Any, p: Any) -> None:
    """No core sleeps any more."""
    for c in range(CORES):
        if p.asleep[0] >> c & 1:
            release(s, p, np.int64(c))


@njit
def changed(s: Any, p: Any) -> None:
    """An act may have changed what sleeping cores load: those for which it has go on."""
    for c in range(CORES):
        if p.asleep[0] >> c & 1 and not _has_all(s, p, np.int64(c)):
            release(s, p, np.int64(c))


@njit
def asked(s: Any, p: Any) -> None:
    """A window begins: sleeping cores that something outside may have woken go on, or sleep."""
    for c in range(CORES):
        if p.asleep[0] >> c & 1 == 0:
            continue
        is_woken, s.agent_next[_FIRST + c] = s.agent_next[_FIRST + c] != NEVER, NEVER
        if _is_looked_at(s, np.int64(c)) or (is_woken and not _has_all(s, p, np.int64(c))):
            release(s, p, np.int64(c))


@njit
def drawn(s: Any, p: Any) -> None:
    """Other agents may be slow now: sleeping cores for which something is drawn go on."""
    for c in range(CORES):
        if p.asleep[0] >> c & 1 and _is_drawn(s, np.int64(c)):
            release(s, p, np.int64(c))


@njit
def before(s: Any, p: Any, c: Any, word: Any, loads: Any) -> None:
    """Core `c` is about to execute an instruction, which loads from `loads`, while others sleep.

    A store to a device may stop or reset cores, and registers from 0xFFB12000 on show where they
    stand: so all must stand.
    """
    if 0 <= loads < mm.L1_SIZE:
        share_port(s, p)
    elif mm.DEBUG_BASE <= loads < mm.NOC0_BASE and not _CLOCK <= loads < _CLOCK_END:
        release_all(s, p)
    elif word & 0x7F == _STORE:
        address = core.target(s, c, word)
        pushes = mm.INSTRN_BUF_BASE <= address < mm.INSTRN_BUF_END
        if address >= mm.DEVICE_BASE and not pushes and not _is_known(np.int64(0), address):
            release_all(s, p)
