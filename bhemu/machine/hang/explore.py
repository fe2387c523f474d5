"""What a core can still do: its code explored for stores and accesses of devices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bhemu import memmap as mm
from bhemu.devices.bus.address_map import INERT, find
from bhemu.devices.bus.window import Effect, Window
from bhemu.devices.debug_regs import reset_pc
from bhemu.memmap import L1_SIZE, LOCAL_BASE, LOCAL_SIZES
from bhemu.riscv import csr, formats
from bhemu.riscv.assembly import RA, SP
from bhemu.riscv.formats import Atomic, Branch, Csr, Fence, IndirectJump, Jump, Load, Store, Upper
from bhemu.riscv.insn import MASK, Instruction
from bhemu.riscv.isa import decode
from bhemu.riscv.isa.rv32i import EBREAK, JAL
from bhemu.riscv.semantics import COMPUTING
from bhemu.tensix.state import HALTED, HELD, L0_LINE, RESET, RUNNING

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


def _effect(tile: Any, core: int, address: int, store: bool) -> tuple[Window, Effect]:
    """The window of an access that would be done, and what it does; raises Waits or Escape."""
    window = find(address)
    if window is None or window.refuses(store, core):
        raise Escape
    effect = window.effect(store, tile.state, core, address - window.low)
    if not isinstance(effect, Effect):
        raise Waits(effect)
    if effect is Effect.CHANGES:
        raise Escape
    return window, effect


def load(tile: Tile, core: int, address: int, size: int) -> int | None:
    """Value of a device load, None when it varies by itself; raises Waits or Escape."""
    _, effect = _effect(tile, core, address, False)
    if effect in (Effect.VARIES, Effect.CLOCK):
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


def store(tile: Tile, core: int, address: int, value: int | None) -> None:
    """Nothing, for a device store that would change nothing; else raises Waits or Escape."""
    _, effect = _effect(tile, core, address, True)
    if effect is Effect.NONE:
        return
    if value is None or load(tile, core, address, 4) != value:
        raise Escape


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


class _State:
    """Registers and local memory of one path; `sources` names the loads of each register."""

    __slots__ = ("local", "pc", "regs", "sources")

    def __init__(
        self, pc: int, regs: list[Value], sources: list[Sources], local: dict[int, Value]
    ) -> None:
        self.pc, self.regs, self.sources, self.local = pc, regs, sources, local

    def copy(self, pc: int) -> _State:
        return _State(pc, self.regs.copy(), self.sources.copy(), self.local.copy())

    def key(self) -> tuple[int, tuple[Value, ...], tuple[tuple[int, Value], ...]]:
        return self.pc, tuple(self.regs), tuple(sorted(self.local.items()))


def _registers(tile: Tile, core: int) -> list[Value]:
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

    def run(self) -> Loop:
        """Follow every path until all are closed."""
        regs = _registers(self._tile, self._c)
        self._work = [_State(int(self._s.pc[self._c]), regs, [_NOTHING] * 32, {})]
        while self._work:
            state: _State | None = self._work.pop()
            while state is not None:
                state = self._step(state)
        polls = tuple(self._loads[a] for a in sorted(self._deciding))
        if self._widened and all(is_clock(poll.address) for poll in polls):
            raise Escape  # it counts and waits for nothing: at work, as far as one can tell
        return Loop(self._c, tuple(sorted(self._pcs)), polls, self._waits)

    def _step(self, state: _State) -> _State | None:
        """Execute one instruction; None when this path is known, waits or has been put off."""
        self._left -= 1
        pc = state.pc
        if self._left < 0 or pc & 3 or not 0 <= pc <= L1_SIZE - 4:
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
                self._work.append(taken)
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
        self._widened = True
        if not self._widen(cover, state):
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
        if issubclass(cls, COMPUTING):
            used = [rs for rs, name in ((rs1, "a"), (rs2, "b")) if name in cls.operands]
            sources = _NOTHING.union(*(state.sources[rs] for rs in used))
            self._set(state, rd, cls.computed(word, pc, state.regs), sources)
        elif issubclass(cls, Upper):
            self._set(state, rd, cls.compute(word, pc, 0, 0), _NOTHING)
        elif issubclass(cls, Branch):
            for rs in (cls.rs1.get(word), cls.rs2.get(word)):
                self._deciding |= state.sources[rs]
            if a is None or b is None:
                return None
            return state.pc + (cls.offset.get(word) if cls.compute(word, 0, a, b) else 4)
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
        if issubclass(cls, Csr):
            self._csr(state, word, cls)
        elif issubclass(cls, Fence):
            return
        elif a is None:
            raise Escape
        elif issubclass(cls, Load):
            self._load(state, word, cls, (a + cls.imm.get(word)) & MASK)
        elif issubclass(cls, Store):
            self._store(state, (a + cls.imm.get(word)) & MASK, cls.size, b)
        elif issubclass(cls, Atomic):
            self._atomic(state, word, cls, a, b)
        else:
            raise Escape

    def _csr(self, state: _State, word: int, cls: type[Csr]) -> None:
        """A CSR changes nothing that others see; what it holds is not followed."""
        number = cls.csr.get(word)
        if number not in csr.NAMES or (cls.writes(cls.rs1.get(word)) and number != csr.CFG0):
            raise Escape
        self._set(state, cls.rd.get(word), None, _NOTHING)

    def _load(self, state: _State, word: int, cls: type[Load], address: int) -> None:
        value = self._read(state, address, cls.size)
        if value is not None:
            value = cls.loaded(value)
        self._loads[address] = Poll(state.pc, address, value, cls.size)
        self._set(state, cls.rd.get(word), value, frozenset((address,)))

    def _offset(self, address: int, size: int) -> int | None:
        """Offset in the core's own local memory; Escape across its end or when misaligned."""
        if address & (size - 1):
            raise Escape
        offset = address - LOCAL_BASE
        return offset if 0 <= offset < LOCAL_SIZES[self._c] else None

    def _read(self, state: _State, address: int, size: int) -> Value:
        offset = self._offset(address, size)
        if offset is not None:
            held = self._local(state, offset & ~3)
            return None if held is None else held >> 8 * (offset & 3)
        if address <= L1_SIZE - size:
            if self._stale(address, size):
                return None
            return int.from_bytes(self._s.l1[address : address + size].tobytes(), "little")
        return load(self._tile, self._c, address, size)

    def _stale(self, address: int, size: int) -> bool:
        """The core's L0 cache holds other bytes, for as long as nothing drops them."""
        if not self._s.l0[0]:
            return False
        begin = address & -L0_LINE
        lines = self._s.l0_data[self._c][self._s.l0_line[self._c, :, 0] == begin + 1]
        held = lines.tobytes()[address - begin :][:size]
        return bool(held) and held != self._s.l1[address : address + size].tobytes()

    def _local(self, state: _State, offset: int) -> Value:
        """Word of local memory: as this path has stored it, else as it is."""
        if offset in state.local:
            return state.local[offset]
        return int(self._s.local[self._c].view("<u4")[offset >> 2])

    def _store(self, state: _State, address: int, size: int, value: Value) -> None:
        """To local memory: part of the path. Anywhere else it must change nothing."""
        offset = self._offset(address, size)
        if offset is not None:
            self._store_local(state, offset, size, value)
        elif address > L1_SIZE - size:
            store(self._tile, self._c, address, value)
        else:
            held = int.from_bytes(self._s.l1[address : address + size].tobytes(), "little")
            if value is None or value & ((1 << 8 * size) - 1) != held:
                raise Escape

    def _store_local(self, state: _State, offset: int, size: int, value: Value) -> None:
        at, shift = offset & ~3, 8 * (offset & 3)
        held, mask = self._local(state, at), ((1 << 8 * size) - 1) << shift
        known = value is not None and (size == 4 or held is not None)
        new = (((held or 0) & ~mask) | ((value or 0) << shift & mask)) if known else None
        state.local.pop(at, None)
        if new is None or new != self._local(state, at):
            state.local[at] = new

    def _atomic(
        self, state: _State, word: int, cls: type[Atomic], address: int, operand: Value
    ) -> None:
        """An atomic operation that changes nothing is a load: a lock that another core holds."""
        old = self._read(state, address, 4) if address < L1_SIZE else None
        if old is None or operand is None or cls.changed(old, operand) != old:
            raise Escape
        self._loads[address] = Poll(state.pc, address, old)
        self._set(state, cls.rd.get(word), old, frozenset((address,)))

    def _widen(self, cover: _State, state: _State) -> bool:
        """Make what differs from `cover` unknown; False when `cover` allows all of it already."""
        known = cover.regs.copy()
        state.regs = [x if x == y else None for x, y in zip(known, state.regs, strict=True)]
        for at in cover.local.keys() | state.local.keys():
            if self._local(cover, at) != self._local(state, at):
                state.local[at] = None
        return state.regs != known or any(
            value != self._local(cover, at) for at, value in state.local.items()
        )


def explore(tile: Tile, core: int, budget: int) -> Loop | None:
    """The loop that core `core` (0-4) can never leave, or None: it can, or `budget` was too small.

    budget: instructions to follow.
    """
    try:
        return _Walk(tile, core, budget).run()
    except Escape:
        return None


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


# What a core's program can store and push, read from its code without running it.
#
# Constants are followed through registers (lui, addi, ...) along every path from the core's start
# and, with the registers that it has now, from where it stands; an address that is computed
# otherwise stays unknown and is not listed, and a jump to such an address is not followed.

_MOST = 100_000  # instructions looked at, revisits included
_ENDS = (0, JAL.assemble(0, 0), EBREAK.match)  # words that a path does not go past
_KEPT = (0, 2, 3, 4, 8, 9, *range(18, 28))  # registers that a call preserves
_NO_RESULT = (formats.Pushed, Store, Fence)
_MOP_WORDS = range(mm.MOP_CFG_BASE + 8, mm.MOP_CFG_END, 4)

Registers = tuple[Value, ...]
_START: Registers = (0,) + (None,) * 31


@dataclass(frozen=True)
class Pushed:
    """A Tensix word in a program: which thread gets it, the instruction that pushes it."""

    thread: int
    word: int
    pc: int


class Stored(NamedTuple):
    """A store to a constant address: the instruction, where, bytes, value (None = unknown)."""

    pc: int
    address: int
    size: int
    value: Value

    def changes(self, address: int, size: int, held: int) -> bool:
        """Whether it may leave anything but `held` in the `size` bytes at `address`."""
        if self.value is None:
            return True
        shared = range(max(self.address, address), min(self.address + self.size, address + size))
        return any(
            self.value >> 8 * (at - self.address) & 0xFF != held >> 8 * (at - address) & 0xFF
            for at in shared
        )


@dataclass
class CodeStores:
    """Constant addresses that a program stores to, and Tensix words that it pushes."""

    core: int
    stores: dict[int, list[Stored]] = field(default_factory=lambda: defaultdict(list))
    pushes: list[Pushed] = field(default_factory=list)

    def storing(self, address: int, size: int = 4) -> Iterator[Stored]:
        """The stores to any of the `size` bytes at `address`."""
        for at, found in self.stores.items():
            if at < address + size:
                yield from (store for store in found if address < at + store.size)


def _join(a: Registers | None, b: Registers) -> Registers:
    if a is None:
        return b
    return tuple(x if x == y else None for x, y in zip(a, b, strict=True))


class _Scan:
    """The paths of one core, followed until nothing new is known at any instruction."""

    def __init__(self, tile: Tile, core: int) -> None:
        self._words = tile.state.l1.view("<u4")
        self._core = core
        self._known: dict[int, Registers] = {}
        self._work: list[int] = []

    def follow(self, starts: Mapping[int, Registers]) -> dict[int, Registers]:
        """Registers before each instruction on the paths from `starts`, which are taken in turn."""
        left = _MOST
        for start, at_start in starts.items():
            self._arrive(start, at_start)
            while self._work and left:
                left -= 1
                pc = self._work.pop()
                for target, registers in self._next(pc, self._known[pc]):
                    self._arrive(target, registers)
        return self._known

    def run(self, starts: Mapping[int, Registers]) -> CodeStores:
        """What the instructions on those paths do."""
        found = CodeStores(self._core)
        known = self.follow(starts)
        for pc in sorted(known):
            self._note(found, pc, known[pc])
        return found

    def _arrive(self, pc: int, registers: Registers) -> None:
        if pc & 3 or not 0 <= pc <= mm.L1_SIZE - 4:
            return
        joined = _join(self._known.get(pc), registers)
        if joined != self._known.get(pc):
            self._known[pc] = joined
            self._work.append(pc)

    def _word(self, pc: int) -> int:
        return int(self._words[pc >> 2])

    def _next(self, pc: int, registers: Registers) -> Iterator[tuple[int, Registers]]:
        word = self._word(pc)
        cls, a = decode(word), registers[Instruction.rs1.get(word)]
        if word in _ENDS:
            return
        if cls is not None and issubclass(cls, Branch):
            yield pc + 4, registers
            yield pc + cls.offset.get(word), registers
        elif cls is not None and issubclass(cls, Jump | IndirectJump):
            known = a is not None or issubclass(cls, Jump)
            target = cls.compute(word, pc, a or 0, 0) if known else None
            link = cls.rd.get(word)
            if target is not None and not (_is_return(word, cls) and target in self._known):
                at_target = (*registers[:link], None, *registers[link + 1 :]) if link else registers
                yield target, at_target
            if link:
                kept = tuple(x if i in _KEPT else None for i, x in enumerate(registers))
                yield pc + 4, kept
        else:
            yield pc + 4, _after(word, pc, registers)

    def _note(self, found: CodeStores, pc: int, registers: Registers) -> None:
        """Enter what the instruction at `pc` pushes or stores."""
        word = self._word(pc)
        cls = decode(word)
        if cls is None:
            return
        if issubclass(cls, formats.Pushed):
            if word and self._core < 4:
                found.pushes.append(Pushed(max(self._core - 1, 0), cls.pushed(word), pc))
            return
        base, value = registers[cls.rs1.get(word)], registers[cls.rs2.get(word)]
        if base is None:
            return
        if issubclass(cls, Atomic):
            found.stores[base].append(Stored(pc, base, 4, None))
        elif issubclass(cls, Store):
            address = (base + cls.imm.get(word)) & MASK
            found.stores[address].append(Stored(pc, address, cls.size, value))
            thread = self._target(address)
            if thread is not None and value is not None:
                found.pushes.append(Pushed(thread, value, pc))

    def _target(self, address: int) -> int | None:
        """Thread that a word stored to `address` is for: a push or part of a MOP."""
        if self._core > 3:
            return None
        if mm.INSTRN_BUF_BASE <= address < mm.INSTRN_BUF_END:
            return (address - mm.INSTRN_BUF_BASE) >> 16 if self._core == 0 else self._core - 1
        return self._core - 1 if self._core and address in _MOP_WORDS else None


def _is_return(word: int, cls: type[Instruction]) -> bool:
    """Whether it returns to after a call, where what a call preserves is known already."""
    return issubclass(cls, IndirectJump) and not cls.rd.get(word) and cls.rs1.get(word) == RA


def _after(word: int, pc: int, registers: Registers) -> Registers:
    """Registers after an instruction that goes on to the next."""
    cls, rd = decode(word), Instruction.rd.get(word)
    if rd == 0 or (cls is not None and issubclass(cls, _NO_RESULT)):
        return registers
    if cls is None or not issubclass(cls, (*COMPUTING, Upper)):
        return (*registers[:rd], None, *registers[rd + 1 :])
    return (*registers[:rd], cls.computed(word, pc, registers), *registers[rd + 1 :])


def has_program(tile: Tile, core: int) -> bool:
    """True for a core that runs or ran, or that has an ELF or a start address of its own."""
    s = tile.state
    if s.core_state[core] != RESET or s.retired[core] > 0 or tile.core[mm.CORE_NAMES[core]].images:
        return True
    return reset_pc(s, core) not in (0, mm.RESET_PCS[core])


def code_stores(tile: Tile, core: int) -> CodeStores:
    """What the program of core `core` (0-4) of `tile` can do, as far as constants tell."""
    starts = _starts(tile, core)
    return _Scan(tile, core).run(starts) if starts else CodeStores(core)


def reachable(tile: Tile, core: int, seen: Collection[int] = ()) -> set[int]:
    """The pcs that the program of core `core` may come to, from those that it was `seen` at too."""
    return set(_Scan(tile, core).follow(_starts(tile, core) | dict.fromkeys(seen, _START)))


def _starts(tile: Tile, core: int) -> dict[int, Registers]:
    """Where to follow a core from, and what its registers hold there."""
    if not has_program(tile, core):
        return {}
    starts = {reset_pc(tile.state, core): _START}
    if tile.state.core_state[core] != RESET:
        starts.setdefault(int(tile.state.pc[core]), tuple(_registers(tile, core)))
    return starts
