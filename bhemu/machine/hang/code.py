"""What a core's program can store and push, read from its code without running it.

Constants are followed through registers (lui, addi, ...) along every path from the core's start
and, with the registers that it has now, from where it stands; an address that is computed
otherwise stays unknown and is not listed, and a jump to such an address is not followed. Words of
the stack frame count as registers: a compiler keeps constants there that it has no register for.

With `held` a word that is loaded counts as the constant that memory holds now, and a function is
followed once for each place that calls it: so are found the stores through a structure, whose
address a core keeps in memory or passes to a function.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from bhemu import memmap as mm
from bhemu.devices.debug_regs import reset_pc
from bhemu.machine.hang.explore import Value, registers_of
from bhemu.memmap import LOCAL_BASE, LOCAL_SIZES
from bhemu.riscv import formats
from bhemu.riscv.assembly import RA, SP
from bhemu.riscv.formats import Atomic, Branch, Fence, IndirectJump, Jump, Load, Store, Upper
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
_FRAME = 32  # words from sp on that are followed
_KEPT_WITH_FRAME = (*_KEPT, *range(32, 32 + _FRAME + 1))
_NO_RESULT = (formats.Pushed, Store, Fence)
_MOP_WORDS = range(mm.MOP_CFG_BASE + 8, mm.MOP_CFG_END, 4)

Registers = tuple[Value, ...]  # x0 to x31, the words of the frame, None if its address is in use
_START: Registers = (0,) + (None,) * (31 + _FRAME) + (0,)


class Pushed(NamedTuple):
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


class CodeStores(NamedTuple):
    """Stores of a program to constant addresses, and Tensix words that it pushes, by pc."""

    stores: list[Stored]
    pushes: list[Pushed]

    def storing(self, address: int, size: int = 4) -> Iterator[Stored]:
        """The stores to any of the `size` bytes at `address`."""
        for one in self.stores:
            if one.address < address + size and address < one.address + one.size:
                yield one


Held = Callable[[int], Value]  # the word that memory holds at an address
At = tuple[int, int]  # a pc, where the call of its function returns to (0: of no call)


def _follow(
    words: Any, starts: Mapping[int, Registers], held: Held | None = None
) -> dict[At, Registers]:
    """Registers before each instruction on the paths from `starts`, which are taken in turn.

    words: of L1. held: loads give what memory holds, and calls are told apart.
    """
    known: dict[At, Registers] = {}
    work: list[At] = []

    def arrive(at: At, registers: Registers) -> None:
        if at[0] & 3 or not 0 <= at[0] <= mm.L1_SIZE - 4:
            return
        if (old := known.get(at)) is not None:
            registers = tuple(x if x == y else None for x, y in zip(old, registers, strict=True))
        if registers != old:
            known[at] = registers
            work.append(at)

    left = _MOST
    for start, at_start in starts.items():
        arrive((start, 0), at_start)
        while work and left:
            left -= 1
            at = work.pop()
            for target, registers in _next(int(words[at[0] >> 2]), at, known, held):
                arrive(target, registers)
    return known


def _next(
    word: int, at: At, known: Mapping[At, Registers], held: Held | None
) -> Iterator[tuple[At, Registers]]:
    """Where an instruction goes on, and the registers there; of a call also where it returns to."""
    cls, registers, (pc, call) = decode(word), known[at], at
    rd, rs1 = Instruction.rd.get(word), Instruction.rs1.get(word)
    after = pc + 4, call
    if word in _ENDS:
        return
    if cls is not None and issubclass(cls, Branch):
        yield after, registers
        yield (pc + cls.offset.get(word), call), registers
    elif cls is not None and issubclass(cls, Jump | IndirectJump):
        a = registers[rs1]
        target = None
        if a is not None or issubclass(cls, Jump):
            target = cls.compute(word, pc, a or 0, 0)
        returns = issubclass(cls, IndirectJump) and not rd and rs1 == RA
        known_there = target is not None and (target, call) in known
        if target is not None and not (returns and known_there):  # a call preserves the rest
            yield (target, pc + 4 if held and rd else call), _with(registers, rd, None)
        if rd:
            kept = _KEPT if registers[-1] is None else _KEPT_WITH_FRAME
            yield after, tuple(x if i in kept else None for i, x in enumerate(registers))
    elif cls is not None and issubclass(cls, Store | Atomic):
        stored = _with_frame(registers, word, cls)
        yield after, stored if issubclass(cls, Store) else _with(stored, rd, None)
    elif cls is not None and issubclass(cls, _NO_RESULT):
        yield after, registers
    elif cls is not None and issubclass(cls, Load):
        yield after, _with(registers, rd, _loaded(registers, word, cls, call, held))
    else:
        is_known = cls is not None and issubclass(cls, (*COMPUTING, Upper))
        value = cls.computed(word, pc, registers[:32]) if cls and is_known else None
        result = _with(registers, rd, value)
        points = rd != SP and SP in (rs1, Instruction.rs2.get(word))
        yield after, (*result[:-1], None) if points else result


def _loaded(registers: Registers, word: int, cls: Any, call: int, held: Held | None) -> Value:
    """What a load gives: a word of the frame, or what memory holds."""
    if cls.size != _WORD_BYTES:
        return None
    slot = _in_frame(cls, word)
    value = None if slot is None else registers[slot]
    base = registers[Instruction.rs1.get(word)]
    if value is not None or held is None or base is None:
        return value
    if call and Instruction.rd.get(word) == RA:  # of a call that has ended
        return None
    return held((base + cls.imm.get(word)) & MASK)


_WORD_BYTES = 4


def _in_frame(cls: Any, word: int) -> int | None:
    """The place among the registers of the word of the frame that a load or store goes to."""
    at = cls.imm.get(word) if Instruction.rs1.get(word) == SP else -1
    return 32 + at // _WORD_BYTES if 0 <= at < _FRAME * _WORD_BYTES else None


def _with_frame(registers: Registers, word: int, cls: Any) -> Registers:
    """The registers after a store; through a pointer it may go to any word of the frame."""
    slot = _in_frame(cls, word) if issubclass(cls, Store) else None
    if slot is not None:
        whole = cls.size == _WORD_BYTES and not cls.imm.get(word) % _WORD_BYTES
        return _with(registers, slot, registers[Instruction.rs2.get(word)] if whole else None)
    return registers if registers[-1] == 0 else _without_frame(registers)


def _without_frame(registers: Registers) -> Registers:
    return (*registers[:32], *_START[32:-1], registers[-1])


def _with(registers: Registers, rd: int, value: Value) -> Registers:
    """The registers with another value of one; with another sp nothing is known of the frame."""
    after = (*registers[:rd], value, *registers[rd + 1 :]) if rd else registers
    return after if rd != SP else _without_frame(after)


def _starts(tile: Tile, core: int) -> dict[int, Registers]:
    """Where to follow a core from, and what its registers hold there.

    Nowhere if it neither runs nor ran, nor has an ELF or a start address of its own.
    """
    s, start = tile.state, int(reset_pc(tile.state, core))
    stands, images = s.core_state[core] != RESET, tile.core[mm.CORE_NAMES[core]].images
    if not (stands or s.retired[core] > 0 or images or start not in (0, mm.RESET_PCS[core])):
        return {}
    starts = {start: _START}
    if stands:
        registers = registers_of(tile, core)
        local, at = s.local[core].view("<u4"), ((registers[SP] or 0) - LOCAL_BASE) // 4
        held = [int(word) for word in local[at : at + _FRAME]] if at >= 0 else []
        frame = (*held, *_START[32:])[:_FRAME]
        inside = range(LOCAL_BASE + 4 * at, LOCAL_BASE + 4 * (at + _FRAME))
        points = any(value in inside for value in (*registers[SP + 1 :], *held))
        starts.setdefault(int(s.pc[core]), (*registers, *frame, None if points else 0))
    return starts


def _holds(tile: Tile, core: int) -> Held:
    """What the memory of a core and L1 hold."""
    local, l1 = tile.state.local[core].view("<u4"), tile.state.l1.view("<u4")

    def held(address: int) -> Value:
        at = address - LOCAL_BASE
        if address & 3:
            return None
        if 0 <= at < LOCAL_SIZES[core]:
            return int(local[at >> 2])
        return int(l1[address >> 2]) if address < mm.L1_SIZE else None

    return held


def code_stores(tile: Tile, core: int, *, held: bool = False) -> CodeStores:
    """What the program of core `core` (0-4) of `tile` can do, as far as constants tell.

    held: also what memory holds now counts as a constant.
    """
    words, found = tile.state.l1.view("<u4"), CodeStores([], [])
    known = _follow(words, _starts(tile, core), _holds(tile, core) if held else None)
    for (pc, _), registers in sorted(known.items(), key=lambda one: one[0]):
        word = int(words[pc >> 2])
        cls = decode(word)
        if cls is not None and issubclass(cls, formats.Pushed):
            if word and core < 4:
                found.pushes.append(Pushed(max(core - 1, 0), cls.pushed(word), pc))
            continue
        base, value = registers[Instruction.rs1.get(word)], registers[Instruction.rs2.get(word)]
        if cls is None or base is None:
            continue
        if issubclass(cls, Atomic):
            found.stores.append(Stored(pc, base, 4, None))
        elif issubclass(cls, Store):
            address = (base + cls.imm.get(word)) & MASK
            found.stores.append(Stored(pc, address, cls.size, value))
            thread = None  # that the word is for: a push or part of a MOP
            if core < 4 and mm.INSTRN_BUF_BASE <= address < mm.INSTRN_BUF_END:
                thread = core - 1 if core else (address - mm.INSTRN_BUF_BASE) >> 16
            elif 0 < core < 4 and address in _MOP_WORDS:
                thread = core - 1
            if thread is not None and value is not None:
                found.pushes.append(Pushed(thread, value, pc))
    return found


def reachable(tile: Tile, core: int, seen: Collection[int] = ()) -> set[int]:
    """The pcs that the program of core `core` may come to, from those that it was `seen` at too."""
    starts = _starts(tile, core) | dict.fromkeys(seen, _START)
    return {pc for pc, _ in _follow(tile.state.l1.view("<u4"), starts)}
