"""Who could end a wait: what a core's program can store and push, read from its code without
running it, the words that threads hold, and where a request to the NoC goes.

Constants are followed through registers (lui, addi, ...) along every path from the core's start
and, with the registers that it has now, from where it stands; an address that is computed
otherwise stays unknown and is not listed, and a jump to such an address is not followed. Words of
the stack frame count as registers: a compiler keeps constants there that it has no register for.

With `held` a word that is loaded counts as the constant that memory holds now, and a function is
followed once for each place that calls it: so are found the stores through a structure, whose
address a core keeps in memory or passes to a function.

What a core has passed is told by its code from where it stands alone, on to the returns that its
stack holds: an instruction to which no path leads ends no wait any more. Where a path goes on to
an address that is not known, nothing is said to be passed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from bhemu import memmap as mm
from bhemu.devices.debug_regs import reset_pc
from bhemu.machine.error_text import outside_headers, where_core
from bhemu.machine.hang.explore import Loop, Value, Wanted, registers_of
from bhemu.noc.grid import number_at
from bhemu.riscv import formats
from bhemu.riscv.assembly import RA, SP
from bhemu.riscv.formats import Atomic, Branch, Fence, IndirectJump, Jump, Load, Store, Upper
from bhemu.riscv.insn import MASK, Instruction
from bhemu.riscv.isa import decode
from bhemu.riscv.isa.rv32i import EBREAK, JAL
from bhemu.riscv.semantics import COMPUTING
from bhemu.tensix import state as st
from bhemu.tensix.insn import decode as decode_word
from bhemu.tensix.insn import disassemble, effects
from bhemu.tensix.spaces import Effect

if TYPE_CHECKING:
    from bhemu.machine.controls import Controls
    from bhemu.machine.tile import Tile

_MOST = 100_000  # instructions looked at, revisits included
_ENDS = (0, JAL.assemble(0, 0), EBREAK.match)  # words that a path does not go past
_KEPT = (0, 2, 3, 4, 8, 9, *range(18, 28))  # registers that a call preserves
_FRAME = 32  # words from sp on that are followed
_WORD_BYTES = 4
_KEPT_WITH_FRAME = (*_KEPT, *range(32, 32 + _FRAME + 1))
_NO_RESULT = (formats.Pushed, Store, Fence)
_MOP_WORDS = range(mm.MOP_CFG_BASE + 8, mm.MOP_CFG_END, 4)

Registers = tuple[Value, ...]  # x0 to x31, the words of the frame, None if its address is in use
_START: Registers = (0,) + (None,) * (31 + _FRAME) + (0,)


class Word(NamedTuple):
    """A Tensix word that thread `thread` still holds, or that a core's program pushes to it."""

    word: int
    thread: int
    who: str
    how: str
    core: int
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
    pushes: list[Word]

    def storing(self, address: int, size: int = 4) -> Iterator[Stored]:
        """The stores to any of the `size` bytes at `address`."""
        for one in self.stores:
            if one.address < address + size and address < one.address + one.size:
                yield one


Held = Callable[[int, int], Value]  # the word that an address holds, for a register
At = tuple[int, int]  # a pc, where the call of its function returns to (0: of no call)


def _follow(
    words: Any, starts: Mapping[int, Registers], held: Held | None = None, *, joins: bool = False
) -> tuple[dict[At, Registers], bool]:
    """Registers before each instruction on the paths from `starts`, which are taken in turn, and
    whether all paths were followed that it knows.

    words: of L1. held: loads give what memory holds, and calls are told apart. joins: what a
    function returns with counts also where it has returned to before.
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
            before = {at: known[at]} if joins else known
            for target, registers in _next(int(words[at[0] >> 2]), at, before, held):
                arrive(target, registers)
    return known, not work


def _next(
    word: int, at: At, known: Mapping[At, Registers], held: Held | None
) -> Iterator[tuple[At, Registers]]:
    """Where an instruction goes on, and the registers there; of a call also where it returns to."""
    registers, (pc, call) = known[at], at
    cls: Any = decode(word) or object
    rd, rs1 = Instruction.rd.get(word), Instruction.rs1.get(word)
    after = pc + 4, call
    if word in _ENDS:
        return
    if issubclass(cls, Branch):
        yield after, registers
        yield (pc + cls.offset.get(word), call), registers
    elif issubclass(cls, Jump | IndirectJump):
        a = registers[rs1]
        known_target = a is not None or issubclass(cls, Jump)
        target = cls.compute(word, pc, a or 0, 0) if known_target else None
        returns = issubclass(cls, IndirectJump) and not rd and rs1 == RA
        known_there = target is not None and (target, call) in known
        if target is not None and not (returns and known_there):  # a call preserves the rest
            yield (target, pc + 4 if held and rd else call), _with(registers, rd, None)
        if rd:
            kept = _KEPT if registers[-1] is None else _KEPT_WITH_FRAME
            yield after, tuple(x if i in kept else None for i, x in enumerate(registers))
    elif issubclass(cls, Store | Atomic):
        slot = _in_frame(cls, word) if issubclass(cls, Store) else None
        if slot is not None:
            whole = cls.size == _WORD_BYTES and not cls.imm.get(word) % _WORD_BYTES
            value = registers[Instruction.rs2.get(word)] if whole else None
            registers = _with(registers, slot, value)
        elif registers[-1] is None:  # through a pointer it may go to any word of the frame
            registers = _without_frame(registers)
        yield after, registers if issubclass(cls, Store) else _with(registers, rd, None)
    elif issubclass(cls, _NO_RESULT):
        yield after, registers
    elif issubclass(cls, Load):
        yield after, _with(registers, rd, _loaded(registers, word, cls, call, held))
    else:
        is_known = issubclass(cls, (*COMPUTING, Upper))
        value = cls.computed(word, pc, registers[:32]) if is_known else None
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
    return held((base + cls.imm.get(word)) & MASK, Instruction.rd.get(word))


def _in_frame(cls: Any, word: int) -> int | None:
    """The place among the registers of the word of the frame that a load or store goes to."""
    at = cls.imm.get(word) if Instruction.rs1.get(word) == SP else -1
    return 32 + at // _WORD_BYTES if 0 <= at < _FRAME * _WORD_BYTES else None


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
    stands, images = s.core_state[core] != st.RESET, tile.core[mm.CORE_NAMES[core]].images
    if not (stands or s.retired[core] > 0 or images or start not in (0, mm.RESET_PCS[core])):
        return {}
    starts = {start: _START}
    if stands:
        starts.setdefault(int(s.pc[core]), _standing(tile, core))
    return starts


def _standing(tile: Tile, core: int) -> Registers:
    """The registers and the frame of a core as it stands."""
    registers = registers_of(tile, core)
    local, at = tile.state.local[core].view("<u4"), ((registers[SP] or 0) - mm.LOCAL_BASE) // 4
    held = [int(word) for word in local[at : at + _FRAME]] if at >= 0 else []
    frame = (*held, *_START[32:])[:_FRAME]
    inside = range(mm.LOCAL_BASE + 4 * at, mm.LOCAL_BASE + 4 * (at + _FRAME))
    points = any(value in inside for value in (*registers[SP + 1 :], *held))
    return (*registers, *frame, None if points else 0)


def _holds(tile: Tile, core: int, address: int) -> Value:
    """The word of a core's local memory or of L1 at an address."""
    at = address - mm.LOCAL_BASE
    if address & 3:
        return None
    if 0 <= at < mm.LOCAL_SIZES[core]:
        return int(tile.state.local[core].view("<u4")[at >> 2])
    return int(tile.state.l1.view("<u4")[address >> 2]) if address < mm.L1_SIZE else None


def code_stores(tile: Tile, core: int, held: bool, awaited: Collection[int]) -> CodeStores:
    """What the program of core `core` (0-4) of `tile` can do, as far as constants tell.

    held: also what memory holds now counts as a constant, except at the addresses `awaited`.
    """
    words, found = tile.state.l1.view("<u4"), CodeStores([], [])

    def holds(address: int, _: int) -> Value:
        return None if address in awaited else _holds(tile, core, address)

    def pushed(word: int, thread: int, pc: int) -> None:
        found.pushes.append(Word(word, thread, mm.CORE_NAMES[core], "in its program", core, pc))

    known, _ = _follow(words, _starts(tile, core), holds if held else None)
    for (pc, _), registers in sorted(known.items(), key=lambda one: one[0]):
        word = int(words[pc >> 2])
        cls = decode(word)
        if cls is not None and issubclass(cls, formats.Pushed):
            if word and core < 4:
                pushed(cls.pushed(word), max(core - 1, 0), pc)
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
                pushed(value, thread, pc)
    return found


def reachable(tile: Tile, core: int, seen: Collection[int] = ()) -> set[int]:
    """The pcs that the program of core `core` may come to, from those that it was `seen` at too."""
    starts = _starts(tile, core) | dict.fromkeys(seen, _START)
    return {pc for pc, _ in _follow(tile.state.l1.view("<u4"), starts)[0]}


def _ahead(tile: Tile, core: int) -> set[int] | None:
    """The pcs that a core that runs or is blocked may come to from where it stands.

    A kernel that has come back to firmware has ended. None if a path could not be followed.
    """
    s, program = tile.state, tile.machine.loop.program
    if s.core_state[core] not in (st.RUNNING, st.BLOCKED):
        return None
    words, ends = s.l1.view("<u4").copy(), set[int]()
    if program is not None and program.firmware is not None:
        firmware = {str(path) for path in program.firmware.elfs.values()}
        for low, high, path in tile.ranges:
            if path in firmware:
                words[low >> 2 : high >> 2] = 0
                ends.update(range(low, high, 4))
    stands = int(s.pc[core])
    if stands >= mm.L1_SIZE or not words[stands >> 2]:
        return None

    def holds(address: int, register: int) -> Value:  # what called a function stays as it is
        return _holds(tile, core, address) if register == RA else None

    known, whole = _follow(words, {stands: _standing(tile, core)}, holds, joins=True)
    for (pc, call), registers in known.items():
        cls = decode(word := int(words[pc >> 2])) or object
        if word in _ENDS or not issubclass(cls, Jump | IndirectJump):
            continue
        rd, rs1 = Instruction.rd.get(word), Instruction.rs1.get(word)
        indirect = issubclass(cls, IndirectJump)
        returns = indirect and not rd and rs1 == RA and call
        if rd not in (0, RA) or (indirect and not returns and registers[rs1] is None):
            return None
    return ends.union(pc for pc, _ in known) if whole else None


# Agents that could have released a wait: threads by their words, cores by what they can store.

_NAMED = 4  # releasers for one wait
NO_MORE = "does not come there again from where it stands"
_NO_STORE = "no store to {:#x} was found in as much of its code as could be followed"
_RELEASE_WIDTHS = {1: "byte ", 2: "half-word ", 4: ""}
_STATES = {
    st.RESET: "is in reset: no core or host has released it",
    st.BLOCKED: "is blocked itself",
    st.PARKED: "has parked",
    st.ASSERTED: "stands on ebreak",
    st.HALTED: "is halted through its debug port",
}


@dataclass(frozen=True)
class Releaser:
    """One that could end a wait: its name, by what, from where, and what it does at present.

    `able` is False for the only one that may, when no code of it was found that would, and for a
    core that has `passed` that instruction and does not come there again; `given`: how often it
    has written to the word over the NoC; `core` and `pc`: the instruction of `place`, where there
    is one, and `line` its line outside of headers.
    """

    who: str
    how: str
    place: str
    state: str
    able: bool = True
    given: int | None = None
    core: int | None = None
    pc: int | None = None
    line: str = ""
    passed: bool = False

    @property
    def means(self) -> str:
        """By what, and the line outside of headers."""
        return f"{self.how}, {self.line}" if self.line else self.how

    def __str__(self) -> str:
        at = f" at {self.place}" if self.place else ""
        if self.passed:
            return f"{self.who} ({self.how}{at}) {NO_MORE}: it {self.state}"
        if not self.able:
            return f"only {self.who} may release it, and {self.how}; it {self.state}{at}"
        return f"could have been released by {self.who} ({self.how}{at}), which {self.state}"


def _expands(word: int) -> bool:
    """Whether a Tensix word may bring others that were pushed before it, as MOP and REPLAY do."""
    cls = decode_word(word)
    return cls is not None and cls.unit == "front"


class Agents:
    """A tile that stands still, looked at from all sides; programs are read once."""

    def __init__(self, tile: Tile, loops: Iterable[Loop]) -> None:
        self.tile, self.s = tile, tile.state
        self.loops = {loop.core: loop for loop in loops}
        self._code = cache(partial(code_stores, tile))
        self._ahead = cache(partial(_ahead, tile))

    def stores(self, core: int, *, held: bool = False, later: bool = False) -> CodeStores:
        """What the program of `core` can do; `held`: as far as memory tells, too; `later`: the
        words that it waits for will be others."""
        polls = self.loops[core].polls if later and core in self.loops else ()
        return self._code(core, held, frozenset(poll.address for poll in polls))

    def comes(self, core: int, pc: int) -> bool:
        """Whether a core may come to an instruction, from where it stands."""
        ahead = self._ahead(core)
        return ahead is None or pc in ahead

    def _plays(self, thread: int) -> bool:
        """Whether a word that a thread was pushed may come again: by a MOP or REPLAY, or by a word
        that is not known."""
        if any(one.thread == thread and _expands(one.word) for one in self._held()):
            return True
        fifo = mm.INSTRN_BUF_BASE, mm.INSTRN_BUF_END - mm.INSTRN_BUF_BASE
        for core in range(st.CORES - 1):
            known = {one.pc for one in self.stores(core).storing(*fifo) if one.value is not None}
            held = self.stores(core, held=True)
            pcs = {one.pc for one in held.storing(*fifo)} - known
            pcs |= {one.pc for one in held.pushes if one.thread == thread and _expands(one.word)}
            if any(self.comes(core, pc) for pc in pcs):
                return True
        return False

    def place(self, core: int, pc: int) -> str:
        """`function+0x10 (file:line)` of a pc, or the pc; with the core's name."""
        return str(replace(where_core(self.tile, core, pc), tile=None))

    def line(self, core: int, pc: int) -> str:
        """`file:line` of a pc, outside of headers if a call leads there; "" if unknown."""
        where = outside_headers(where_core(self.tile, core, pc))
        return f"{where.file}:{where.line}" if where.file and where.line else ""

    def core_state(self, core: int) -> str:
        """What a core does at present, as the end of "..., which "."""
        if core in self.loops:
            return "goes round in a loop itself"
        return _STATES.get(int(self.s.core_state[core]), "runs")

    def thread_state(self, t: int) -> str:
        """What a thread does at present."""
        return "is blocked itself" if self.s.gate_full[t] else "has no word to execute"

    # Tensix words

    def _held(self) -> Iterator[Word]:
        """Every word that a thread holds, with what would bring it forward."""
        s = self.s
        for t in range(st.THREADS):
            gate, mop = (s.gate_core[t], s.gate_pc[t]), (s.mop_core[t], s.mop_pc[t])
            has = [(s.gate_word[t], "at its own gate", *gate)] if s.gate_full[t] else []
            for k in range(int(s.play_left[t])):
                i = (int(s.play_at[t]) + k) & 31
                has.append((s.replay[t, i], "in its replay buffer", gate[0], s.replay_pc[t, i]))
            for i in range(2, 9) if s.mop_on[t] else ():
                has.append((s.mop_live[t, i], "in the MOP it expands", *mop))
            for k in range(int(s.fifo_read[t]), int(s.fifo_write[t])):
                i = k % st.FIFO_DEPTH
                place = s.fifo_core[t, i], s.fifo_pc[t, i]
                has.append((s.fifo[t, i], "queued behind its head", *place))
            for word, how, core, pc in has:
                yield Word(int(word), t, f"thread T{t}", how, int(core), int(pc))

    def words(self, *, held: bool = False) -> Iterator[Word]:
        """Every word that a thread holds or a program pushes, with what would bring it forward."""
        yield from self._held()
        for core in range(st.CORES - 1):
            yield from self.stores(core, held=held).pushes

    def by_words(self, wanted: Effect, *, held: bool = False) -> list[Releaser]:
        """Threads and cores that hold or push a word with this effect.

        held: also one that a core computes from what memory holds.
        """
        found: dict[str, Releaser] = {}
        places = set()
        for w in self.words(held=held):
            known = w.who in found and found[w.who].able
            if known or (w.core, w.pc) in places or wanted not in effects(w.word):
                continue
            places.add((w.core, w.pc))  # a word that a thread holds is not still to be pushed
            one = self.acts(w.core, w.pc, f"{disassemble(w.word)} {w.how}")
            if w.who == f"thread T{w.thread}":
                state = self.thread_state(w.thread)
                one = replace(one, who=w.who, state=state, able=True, passed=False)
            elif one.passed and self._plays(w.thread):
                one = replace(one, able=True, passed=False)
            if one.able or w.who not in found:
                found[w.who] = one
        return list(found.values())[:_NAMED]

    # Stores

    def by_stores(
        self, address: int, beside: int, size: int = 4, held: int | None = None,
        wanted: Wanted | None = None,
    ) -> list[Releaser]:  # fmt: skip
        """Cores other than `beside` whose program stores anything but `held` to those bytes.

        wanted: what is waited for; a store of another known word does not end the wait.
        """
        found = []

        def ends(one: Stored) -> bool:
            if held is not None and not one.changes(address, size, held):
                return False
            if wanted is None or one.value is None or one.size != _WORD_BYTES:
                return True
            return one.value >= wanted.value if wanted.more else one.value == wanted.value

        for core in (core for core in range(st.CORES) if core != beside):
            if changes := [one for one in self._storing(core, address, size) if ends(one)]:
                found.append(self.store(core, *changes))
        return found[:_NAMED]

    def _storing(self, core: int, address: int, size: int) -> Iterator[Stored]:
        """The stores of a core to these bytes; what memory holds may be stored later as well."""
        plain = list(self.stores(core).storing(address, size))
        yield from plain
        words, known = self.s.l1.view("<u4"), {(one.pc, one.address) for one in plain}
        for one in self.stores(core, held=True).storing(address, size):
            if (one.pc, one.address) not in known:
                zero = not Instruction.rs2.get(int(words[one.pc >> 2]))
                yield one._replace(value=0 if zero else None)

    def by_store_of(self, core: int, window: int) -> list[Releaser]:
        """The only core that may end a wait, by a store to `window`."""
        if stores := [*self.stores(core).storing(window)]:
            return [self.store(core, *stores)]
        return [self.core(core, _NO_STORE.format(window), able=False)]

    def store(self, core: int, *stores: Stored) -> Releaser:
        """The releaser that the first of its stores to which a core may come makes of it."""
        store = next((one for one in stores if self.comes(core, one.pc)), stores[0])
        what = "" if store.value is None else f" of {store.value:#x}"
        how = f"{_RELEASE_WIDTHS[store.size]}store{what} to {store.address:#x}"
        return self.acts(core, int(store.pc), how)

    def acts(self, core: int, pc: int, how: str) -> Releaser:
        """The releaser that an instruction makes of a core."""
        name, place, state = mm.CORE_NAMES[core], self.place(core, pc), self.core_state(core)
        able, line = self.comes(core, pc), self.line(core, pc)
        return Releaser(name, how, place, state, able, None, core, pc, line, not able)

    def core(self, core: int, how: str, *, able: bool = True) -> Releaser:
        """A core where it stands."""
        in_reset = self.s.core_state[core] == st.RESET
        place = "" if in_reset else self.place(core, int(self.s.pc[core]))
        return Releaser(mm.CORE_NAMES[core], how, place, self.core_state(core), able)

    def thread(self, t: int) -> Releaser:
        """A thread with the word at its head."""
        s, how, place = self.s, "no word at its gate", ""
        if s.gate_full[t]:
            place = self.place(int(s.gate_core[t]), int(s.gate_pc[t]))
            how = f"{disassemble(int(s.gate_word[t]))} at its head"
        return Releaser(f"thread T{t}", how, place, self.thread_state(t))


def name_of(tile: Tile) -> str:
    """A tile in words, as in the names of its agents."""
    return f"({tile.xy[0]},{tile.xy[1]})"


def arrivals(
    chip: Controls, tile: Tile, address: int | None = None
) -> Iterator[tuple[Tile, int, int, int]]:
    """Sender, core, pc and round of the writes to a word that are remembered, the last first; of
    those to any word without an address."""
    s = tile.state
    count = int(s.noc_arrivals[0])
    by_number = {number_at(other.xy): other for other in chip.tiles_made()}
    for k in range(count - 1, max(count - st.NOC_ARRIVED, 0) - 1, -1):
        at, n, t, core, pc, when = (int(word) for word in s.noc_arrived[k % st.NOC_ARRIVED])
        if address is None or (at < address + 4 and address < at + n):
            yield by_number[t], core, pc, when
