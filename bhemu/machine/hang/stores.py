"""What a core's program can store and push, read from its code without running it.

Constants are followed through registers (lui, addi, ...) along every path from the core's start and
from where it stands; an address that is computed otherwise stays unknown and is not listed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from bhemu import memmap as mm
from bhemu.devices.debug_regs import reset_pc
from bhemu.riscv import formats
from bhemu.riscv.formats import Atomic, Branch, Fence, IndirectJump, Jump, Store, Upper
from bhemu.riscv.insn import MASK, Instruction
from bhemu.riscv.isa import decode
from bhemu.riscv.isa.rv32i import EBREAK, JAL
from bhemu.riscv.semantics import COMPUTING
from bhemu.tensix.state import RESET

if TYPE_CHECKING:
    from bhemu.machine.tile import Tile


_MOST = 100_000  # instructions looked at, revisits included
_ENDS = (0, JAL.assemble(0, 0), EBREAK.match)  # words that a path does not go past
_KEPT = (0, 2, 3, 4, 8, 9, *range(18, 28))  # registers that a call preserves
_NO_RESULT = (formats.Pushed, Store, Fence)
_MOP_WORDS = range(mm.MOP_CFG_BASE + 8, mm.MOP_CFG_END, 4)

Value = int | None
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

    def follow(self, starts: set[int]) -> dict[int, Registers]:
        """Registers before each instruction that the paths from `starts` may reach."""
        for start in starts:
            self._arrive(start, _START)
        for _ in range(_MOST):
            if not self._work:
                break
            pc = self._work.pop()
            for target, registers in self._next(pc, self._known[pc]):
                self._arrive(target, registers)
        return self._known

    def run(self, starts: set[int]) -> CodeStores:
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
            if target is not None:
                yield target, registers
            if cls.rd.get(word):
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


def _after(word: int, pc: int, registers: Registers) -> Registers:
    """Registers behind an instruction that goes on to the next."""
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
    return set(_Scan(tile, core).follow(_starts(tile, core) | set(seen)))


def _starts(tile: Tile, core: int) -> set[int]:
    if not has_program(tile, core):
        return set()
    starts = {reset_pc(tile.state, core)}
    if tile.state.core_state[core] != RESET:
        starts.add(int(tile.state.pc[core]))
    return starts
