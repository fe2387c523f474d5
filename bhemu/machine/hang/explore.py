"""What a core can still do: its code explored for stores and accesses of devices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bhemu import memmap as mm
from bhemu.devices.bus.address_map import INERT, find
from bhemu.devices.bus.window import Effect
from bhemu.riscv import csr
from bhemu.riscv.assembly import RA, SP
from bhemu.riscv.formats import Atomic, Branch, Csr, Fence, IndirectJump, Jump, Load, Store, Upper
from bhemu.riscv.insn import MASK, Instruction
from bhemu.riscv.isa import decode
from bhemu.riscv.isa.rv32i import JAL
from bhemu.riscv.semantics import COMPUTING
from bhemu.tensix.state import HALTED, HELD, L0_LINE, RUNNING

if TYPE_CHECKING:
    from bhemu.machine.tile import Tile

# What a core's device access would give or change while nothing else moves, without doing it.


class Escape(Exception):  # noqa: N818 - an answer, not an error
    """The core may do something that others see, or that is not followed."""


class Waits(Exception):  # noqa: N818 - an answer, not an error
    """The access would wait for `condition`, a number of tensix.status.CONDITIONS."""

    def __init__(self, condition: int) -> None:
        super().__init__(condition)
        self.condition = condition


def is_clock(address: int) -> bool:
    """True for the registers that count time."""
    window = find(address)
    register = None if window is None else window.register(address - window.low)
    return register is not None and register.effect is Effect.CLOCK


def _effect(tile: Any, core: int, address: int, store: bool) -> Effect:
    """What an access that would be done does; raises Waits or Escape."""
    window = find(address)
    if window is None or window.refuses(store, core):
        raise Escape
    effect = window.effect(store, tile.state, core, address - window.low)
    if not isinstance(effect, Effect):
        raise Waits(effect)
    if effect is Effect.CHANGES:
        raise Escape
    return effect


def load(tile: Tile, core: int, address: int, size: int) -> int | None:
    """Value of a device load, None when it varies by itself; raises Waits or Escape."""
    if _effect(tile, core, address, False) in (Effect.VARIES, Effect.CLOCK):
        return None
    s = tile.state
    if address & ~3 in INERT:  # a look must not count as an access
        value = int(s.inert[list(INERT).index(address & ~3)])
        return value >> 8 * (address & 3) & ((1 << 8 * size) - 1)
    before = int(s.core_address[core]), s.detail.copy(), int(s.loaded[0])
    status, value = tile.backend.read(address, size, core)
    s.core_address[core], s.detail[:], s.loaded[0] = before
    if status < 0:
        raise Escape
    if status > 0:
        raise Waits(status)
    return int(value)


# Everywhere a core can get while nothing around it changes: what proves a livelock.
#
# The walk follows a core from where it stands, over the memory and devices as they are.  Values
# that change by themselves (clock, counters of instructions) are unknown, and so become values
# that differ between many visits of the same loop head; a branch on an unknown value goes both
# ways.  So the walk covers at least everything the core can do.  It fails when the core can reach
# anything that others could see or that ends the run: a store that changes a byte, a push, a
# device store, a parked core.  When it does not fail, the core goes round for ever, whatever the
# clock says.  A core that counts and waits for nothing is left alone all the same.

_MANY = 16  # different visits of a loop head before what differs counts as unknown
_PARK = JAL.assemble(0, 0)

Value = int | None  # None = unknown
Sources = frozenset[int]
_NOTHING: Sources = frozenset()


@dataclass(frozen=True)
class Poll:
    """A load that decides where the core goes: instruction, address, value (None = it varies)."""

    pc: int
    address: int
    value: int | None
    size: int = 4


@dataclass(frozen=True)
class Loop:
    """Where a core goes round: its instructions, what it polls; `waits` when it ends blocked."""

    core: int
    pcs: tuple[int, ...]
    polls: tuple[Poll, ...]
    waits: tuple[int, int] | None = None  # pc, condition number


@dataclass(slots=True)
class _State:
    """Registers and local memory of one path; `sources` names the loads of each register."""

    pc: int
    regs: list[Value]
    sources: list[Sources]
    local: dict[int, Value]

    def copy(self, pc: int) -> _State:
        return _State(pc, self.regs.copy(), self.sources.copy(), self.local.copy())

    def key(self) -> tuple[int, tuple[Value, ...], tuple[tuple[int, Value], ...]]:
        return self.pc, tuple(self.regs), tuple(sorted(self.local.items()))


def registers_of(tile: Tile, core: int) -> list[Value]:
    """The registers of a core as it stands."""
    if tile.state.fresh[core]:
        return [0] * 32
    return [tile.backend.engine.read_register(core, i) for i in range(32)]


class _Walk:
    """One exploration of a core of `tile`; `run` gives the Loop or raises Escape."""

    def __init__(self, tile: Tile, core: int, budget: int) -> None:
        self._tile, self._c, self._left = tile, core, budget
        self._s = tile.state
        self._seen: set[object] = set()
        self._heads: dict[object, tuple[int, _State]] = {}
        self._pcs: set[int] = set()
        self._loads: dict[int, Poll] = {}
        self._deciding: set[int] = set()
        self._waits: tuple[int, int] | None = None
        self._widened = False
        self.work: list[_State] = []  # paths that are put off

    def run(self) -> Loop:
        """Follow every path until all are closed."""
        regs = registers_of(self._tile, self._c)
        self.work = [_State(int(self._s.pc[self._c]), regs, [_NOTHING] * 32, {})]
        while self.work:
            state: _State | None = self.work.pop()
            while state is not None:
                state = self.step(state)
        polls = tuple(self._loads[a] for a in sorted(self._deciding))
        if self._widened and all(is_clock(poll.address) for poll in polls):
            raise Escape  # it counts and waits for nothing: at work, as far as one can tell
        return Loop(self._c, tuple(sorted(self._pcs)), polls, self._waits)

    def step(self, state: _State) -> _State | None:
        """Execute one instruction; None when this path is known, waits or has been put off."""
        self._left -= 1
        pc = state.pc
        if self._left < 0 or pc & 3 or not 0 <= pc <= mm.L1_SIZE - 4:
            raise Escape
        word = int(self._s.l1[pc : pc + 4].view("<u4")[0])
        cls = decode(word)
        if cls is None or (cls.execute is None and not issubclass(cls, Store | Fence)):
            raise Escape
        self._pcs.add(pc)
        try:
            target = self._execute(state, word, cls)
        except Waits as wait:
            self._waits = (pc, wait.condition)
            return None
        if target is None:  # an unknown branch: the taken side is put off
            taken = state.copy(pc + Branch.offset.get(word))
            if self._admit(taken):
                self.work.append(taken)
            target = pc + 4
        state.pc = target & MASK
        if target > pc and not issubclass(cls, Branch | IndirectJump):
            return state
        return state if self._admit(state) else None

    # Which states are new

    def _admit(self, state: _State) -> bool:
        """False for a state that an earlier one covers; widens after many visits."""
        key = state.key()
        if key in self._seen:
            return False
        self._seen.add(key)
        head = (state.pc, state.regs[RA], state.regs[SP])
        count, cover = self._heads.get(head, (0, state))
        if count < _MANY:
            self._heads[head] = (count + 1, state.copy(state.pc))
            return True
        self._widened = True  # what differs becomes unknown
        state.regs = [x if x == y else None for x, y in zip(cover.regs, state.regs, strict=True)]
        for at in cover.local.keys() | state.local.keys():
            if self._local(cover, at) != self._local(state, at):
                state.local[at] = None
        same = (value == self._local(cover, at) for at, value in state.local.items())
        if state.regs == cover.regs and all(same):
            return False
        self._heads[head] = (count, state.copy(state.pc))
        return True

    # Instructions

    def _execute(self, state: _State, word: int, cls: type[Instruction]) -> int | None:
        """Perform `word`; the next pc, or None for a branch that may go either way."""
        pc, rd, rs1, rs2 = state.pc, cls.rd.get(word), cls.rs1.get(word), cls.rs2.get(word)
        a, b = state.regs[rs1], state.regs[rs2]
        if word == _PARK:
            raise Escape
        if issubclass(cls, (*COMPUTING, Upper)):
            used = [rs for rs, name in ((rs1, "a"), (rs2, "b")) if name in cls.operands]
            sources = _NOTHING.union(*(state.sources[rs] for rs in used))
            self._set(state, rd, cls.computed(word, pc, state.regs), sources)
        elif issubclass(cls, Branch):
            self._deciding |= state.sources[rs1] | state.sources[rs2]
            if a is None or b is None:
                return None
            return pc + (cls.offset.get(word) if cls.compute(word, 0, a, b) else 4)
        elif issubclass(cls, Jump | IndirectJump):
            if a is None and issubclass(cls, IndirectJump):
                raise Escape
            self._set(state, rd, pc + 4, _NOTHING)
            return cls.compute(word, pc, a or 0, 0)
        else:
            self._memory(state, word, cls, a, b)
        return pc + 4

    def _set(self, state: _State, rd: int, value: Value, sources: Sources) -> None:
        if rd:
            state.regs[rd], state.sources[rd] = value, sources

    # Memory

    def _memory(self, state: _State, word: int, cls: type[Instruction], a: Value, b: Value) -> None:
        if issubclass(cls, Csr):  # changes nothing that others see; what it holds is not followed
            number = cls.csr.get(word)
            if number not in csr.NAMES or (cls.writes(cls.rs1.get(word)) and number != csr.CFG0):
                raise Escape
            self._set(state, cls.rd.get(word), None, _NOTHING)
        elif not issubclass(cls, Fence):
            if a is None:
                raise Escape
            if issubclass(cls, Load):
                address = (a + cls.imm.get(word)) & MASK
                value = self._read(state, address, cls.size)
                value = value if value is None else cls.loaded(value)
                self._loaded(state, word, Poll(state.pc, address, value, cls.size))
            elif issubclass(cls, Store):
                self._store(state, (a + cls.imm.get(word)) & MASK, cls.size, b)
            elif issubclass(cls, Atomic):  # one that changes nothing: a lock that another core has
                old = self._read(state, a, 4) if a < mm.L1_SIZE else None
                if old is None or b is None or cls.changed(old, b) != old:
                    raise Escape
                self._loaded(state, word, Poll(state.pc, a, old))
            else:
                raise Escape

    def _loaded(self, state: _State, word: int, poll: Poll) -> None:
        self._loads[poll.address] = poll
        self._set(state, Instruction.rd.get(word), poll.value, frozenset((poll.address,)))

    def _offset(self, address: int, size: int) -> int | None:
        """Offset in the core's own local memory; Escape across its end or when misaligned."""
        if address & (size - 1):
            raise Escape
        offset = address - mm.LOCAL_BASE
        return offset if 0 <= offset < mm.LOCAL_SIZES[self._c] else None

    def _read(self, state: _State, address: int, size: int) -> Value:
        offset = self._offset(address, size)
        if offset is not None:
            held = self._local(state, offset & ~3)
            return None if held is None else held >> 8 * (offset & 3)
        if address <= mm.L1_SIZE - size:
            there = self._s.l1[address : address + size].tobytes()
            if self._s.l0[0]:  # the core's L0 cache, as long as nothing drops what it holds
                begin = address & -L0_LINE
                lines = self._s.l0_data[self._c][self._s.l0_line[self._c, :, 0] == begin + 1]
                if lines.tobytes()[address - begin :][:size] not in (b"", there):
                    return None
            return int.from_bytes(there, "little")
        return load(self._tile, self._c, address, size)

    def _local(self, state: _State, offset: int) -> Value:
        """Word of local memory: as this path has stored it, else as it is."""
        if offset in state.local:
            return state.local[offset]
        return int(self._s.local[self._c].view("<u4")[offset >> 2])

    def _store(self, state: _State, address: int, size: int, value: Value) -> None:
        """To local memory: part of the path. Anywhere else it must change nothing."""
        offset, mask = self._offset(address, size), (1 << 8 * size) - 1
        if offset is None:
            if address > mm.L1_SIZE - size:
                effect = _effect(self._tile, self._c, address, True)
                changes = effect is not Effect.NONE  # unless it stores what is there
                if changes and (value is None or load(self._tile, self._c, address, 4) != value):
                    raise Escape
            else:
                held = self._s.l1[address : address + size].tobytes()
                if value is None or value & mask != int.from_bytes(held, "little"):
                    raise Escape
            return
        at, shift = offset & ~3, 8 * (offset & 3)
        before = self._local(state, at)
        known = value is not None and (size == 4 or before is not None)
        kept = (before or 0) & ~(mask << shift)
        new = kept | ((value or 0) & mask) << shift if known else None
        state.local.pop(at, None)
        if new is None or new != self._local(state, at):
            state.local[at] = new


def explore(tile: Tile, core: int, budget: int) -> Loop | None:
    """The loop that core `core` (0-4) can never leave, or None: it can, or `budget` was too small.

    budget: instructions to follow.
    """
    try:
        return _Walk(tile, core, budget).run()
    except Escape:
        return None


_FOLLOWED = 200  # instructions from a load to where its value decides
DECIMAL, _WORD = 1 << 10, 4  # from which on values are shown in hex; bytes
_MORE, _COUNTED = 4, 64  # values after the present one that are tried, of a count of pages


@dataclass(frozen=True)
class Wanted:
    """The value of a polled word with which its loop ends; `more`: any higher one as well."""

    value: int
    more: bool

    def __str__(self) -> str:
        shown = str(self.value) if self.value < DECIMAL else f"{self.value:#x}"
        return f"{shown} or more" if self.more else shown


def wanted(tile: Tile, loop: Loop, poll: Poll) -> Wanted | None:
    """The least value after the present one with which a core goes on, else one before it.

    None if none was found, or if it goes on with any other value.
    """
    held, words = poll.value, tile.state.l1.view("<u4")
    if held is None or poll.size != _WORD:
        return None

    def goes_on(value: int) -> bool:
        walk, pc = _Walk(tile, loop.core, _FOLLOWED), poll.pc
        try:
            state = walk.step(_State(pc, registers_of(tile, loop.core), [_NOTHING] * 32, {}))
            if state is not None:
                state.regs[Instruction.rd.get(int(words[pc >> 2]))] = value & MASK
            while state is not None and state.pc in loop.pcs and state.pc != pc:
                state = walk.step(state)
        except Escape:
            return False
        return state is not None and state.pc not in loop.pcs and not walk.work

    regs, used = registers_of(tile, loop.core), set[int]()
    for word in (int(words[pc >> 2]) for pc in loop.pcs):
        if issubclass(decode(word) or object, Branch):
            used |= {Instruction.rs1.get(word), Instruction.rs2.get(word)}
    near = {value + d for i in used if (value := regs[i]) is not None for d in (0, 1, -1)}
    near = {value for value in near | {0} if 0 <= value <= MASK and value != held}
    most = _COUNTED if mm.OVERLAY_BASE <= poll.address < mm.OVERLAY_END else _MORE
    after = [held + n for n in range(1, most + 1)] + sorted(n for n in near if n > held)
    found = next((n for n in after if goes_on(n)), None)
    bits = [1 << n for n in range(32) if 1 << n > held]  # as `>> 16` asks for a value or more
    if found is None and (least := next((n for n in bits if goes_on(n)), MASK)) < MASK >> 1:
        higher = {n for n in bits if n > least}
        every = all(goes_on(n) for n in higher | {n - 1 for n in higher} | {MASK})
        found = least if every and not goes_on(least - 1) else None
    if found is None:
        before = sorted((n for n in near | {held - 1} if 0 <= n < held), reverse=True)
        found = next((n for n in before if goes_on(n)), None)
        return None if found is None else Wanted(found, more=False)
    more = goes_on(found + 1) and goes_on(found + _MORE)
    others = {held ^ 1 << 31, *range(max(held - 2, 0), held)}
    if found == held + 1 and more and all(goes_on(n) for n in others):
        return None
    return Wanted(found, more)


def livelock(tile: Tile, budget: int) -> tuple[Loop, ...]:
    """Loops of all running cores when none of them can ever leave its own, else nothing.

    With cores held back by a debugger nothing is proved.
    """
    states = tile.state.core_state
    if HELD in states or HALTED in states:
        return ()
    loops = []
    for core in np.flatnonzero(states == RUNNING):
        loop = explore(tile, int(core), budget)
        if loop is None:
            return ()
        loops.append(loop)
    return tuple(loops)
