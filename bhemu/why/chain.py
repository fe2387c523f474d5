"""The chain of causes of a place's value: its last change, the inputs of that, and so on."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bhemu.debug.numerics import Trial, datum, element, element_name
from bhemu.devices.bus.address_map import block_name
from bhemu.errors import BhemuError, InputError, Where
from bhemu.jit.record import plain
from bhemu.machine import word_text
from bhemu.machine.core import Core
from bhemu.machine.history import History
from bhemu.machine.resolve import resolve
from bhemu.machine.stop import now
from bhemu.machine.tile import Tile
from bhemu.machine.watchpoints import Change, Span, Watchpoint, spans
from bhemu.memmap import CORE_NAMES, L1_SIZE
from bhemu.program.schema import Program
from bhemu.riscv.formats import Atomic, Branch, Csr, Load, Store
from bhemu.riscv.isa import decode
from bhemu.tensix import dest
from bhemu.tensix.insn import decode as decode_word
from bhemu.tensix.state import MEMBERS, OFFSET, State
from bhemu.why.steps import Word
from bhemu.why.steps import where as place_of

if TYPE_CHECKING:
    from bhemu.why.origin import SeenOf

Spans = tuple[Span, ...]  # of the record: the bytes of a place
Cause = tuple[int, str, Spans]  # clock, place
Made = tuple[Change, int]  # with its clock
_CHANGES = (0x00, 0x55, 0xFF)  # bytes become 0; bytes change some of their bits, or all
_MOVES = "UNPACR PACR MOVA2D MOVB2D MOVD2A MOVD2B MOVB2A SFPLOAD SFPSTORE SFPMOV".split()
_MOST_TOGETHER = 4  # inputs
_MOST, _LREGS = 2, 3  # inputs of a kind, and LRegs, that are named


class Input(NamedTuple):
    """Bytes of one member of the record that decide the result of a word."""

    member: str
    at: int  # in the record
    length: int

    @property
    def span(self) -> Span:
        """Its bytes, to be watched."""
        return Span(self.at, self.length)

    @property
    def text(self) -> str:
        """Its name as `watch` takes it, for example "dst:12"; L1 by address."""
        if self.member == "l1":
            return f"{self.at:#x}:{self.length}"
        number = (self.at - OFFSET[self.member]) // self.length
        shape = next(m.shape for m in MEMBERS if m.name == self.member)
        return ":".join([self.member, *map(str, np.unravel_index(number, shape))])


def inputs(state: State, thread: int, word: int, result: Spans) -> Iterator[Input]:
    """The inputs that decide the result of a word, a few of each kind; the state is before it."""
    trial = Trial(state, thread, word, lambda s: [span.value(s.buffer) for span in result])

    def decides(*parts: tuple[int, int]) -> bool:
        def change(by: int, state: State) -> None:
            for low, high in parts:
                part = state.buffer[low:high]
                part[:] = 0 if by == 0 else part ^ by

        return any(trial.result(partial(change, by)) != trial.plain for by in _CHANGES)

    cls = decode_word(word)
    whole: list[Input] = []
    found = 0
    for member in cls.inputs() if cls else ():
        array = getattr(state, member)
        length = 4 if member == "l1" else int(array.itemsize)  # bytes that go together
        kinds = len(array) if member == "src" else 1  # SrcA and SrcB are two
        size, most = int(array.nbytes) // kinds, _LREGS if member == "lreg" else _MOST // kinds
        for low in range(OFFSET[member], OFFSET[member] + kinds * size, size):
            whole += [Input(member, low, size)] if member != "cc" else []
            for at in _deciding(decides, low, size, length, most):
                found += 1
                yield Input(member, at, length)
    if not found:
        yield from _together(decides, whole, state)


def _together(decides: Callable[..., bool], parts: list[Input], state: State) -> Iterator[Input]:
    """The few inputs that decide together where none does alone; none if they are many."""
    unit = {one.member: int(getattr(state, one.member).itemsize) for one in parts} | {"l1": 4}
    while parts and decides(*((one.at, one.at + one.length) for one in parts)):
        for one in tuple(parts):
            rest = [other for other in parts if other is not one]
            if decides(*((other.at, other.at + other.length) for other in rest)):
                parts = rest
        if len(parts) > _MOST_TOGETHER:
            return
        if all(one.length == unit[one.member] for one in parts):
            yield from parts
            return
        halves = []
        for one in parts:
            size = unit[one.member]
            low = max(one.length // 2 // size * size, size)
            halves += [one._replace(length=low)]
            halves += [one._replace(at=one.at + low, length=one.length - low)]
        parts = [one for one in halves if one.length]


def _deciding(
    decides: Callable[..., bool], start: int, size: int, length: int, most: int
) -> list[int]:
    """The offsets of the groups of `length` bytes that decide, found by halving."""
    found: list[int] = []
    parts = [(start, start + size)]
    while parts and len(found) < most:
        low, high = parts.pop()
        if not decides((low, high)):
            continue
        if high - low <= length:
            found.append(low)
            continue
        middle = low + (high - low) // 2 // length * length
        parts += [(middle, high), (low, middle)]
    return found


WINDOW = 256  # instructions of the core that are looked at


@dataclass(frozen=True)
class Executed:
    """One instruction: its pc and word, the clock before it, and x0-x31 before it."""

    pc: int
    word: int
    clock: int
    regs: tuple[int, ...]


@dataclass(frozen=True)
class Source:
    """The source of a value: a load (its address and width), a constant, a CSR, or not followed."""

    kind: str  # "load", "constant", "csr", "earlier"
    at: Executed | None
    address: int = 0
    size: int = 0


def window(history: History, core: Core) -> list[Executed]:
    """The last instructions that `core` has executed, then the next one; moves the tile back."""
    s = history.tile.state
    c, target = core.index, int(s.retired[core.index])
    history.before(core, max(target - WINDOW, 0))
    executed: list[Executed] = []
    with history.unobserved():
        while int(s.retired[c]) <= target:
            pc = core.pc
            word = int.from_bytes(s.l1[pc : pc + 4].tobytes(), "little") if pc < s.l1.size else 0
            executed.append(Executed(pc, word, now(s), tuple(int(n) for n in core.regs)))
            if int(s.retired[c]) == target:
                break
            history.forward(core, 1)
    return executed


def sources(executed: list[Executed]) -> tuple[Source, ...]:
    """The sources of the value that the last instruction stores."""
    last = executed[-1]
    cls = decode(last.word)
    found: dict[Source, None] = {}
    if cls is not None and issubclass(cls, Store | Atomic):
        _follow(executed, len(executed) - 1, cls.rs2.get(last.word), found, set())
    return tuple(found)


def _follow(
    executed: list[Executed], before: int, register: int, found: dict[Source, None], seen: set[int]
) -> None:
    """Add the sources of the value that `register` holds before instruction number `before`."""
    if register == 0:
        return
    for i in range(before - 1, -1, -1):
        one = executed[i]
        cls = decode(one.word)
        if cls is None or issubclass(cls, Store | Branch) or cls.rd.get(one.word) != register:
            continue
        if i in seen:
            return
        seen.add(i)
        if issubclass(cls, Load | Atomic):
            offset = cls.imm.get(one.word) if issubclass(cls, Load) else 0
            address = (one.regs[cls.rs1.get(one.word)] + offset) & 0xFFFFFFFF
            found[Source("load", one, address, 1 << (one.word >> 12 & 3))] = None
            return
        names = {"a": "rs1", "b": "rs2"}
        csr = issubclass(cls, Csr)
        operands = [] if csr else sorted(cls.operands)
        read = [getattr(cls, names[operand]).get(one.word) for operand in operands]
        if csr or not any(read):
            found[Source("csr" if csr else "constant", one)] = None
        for number in read:
            _follow(executed, i, number, found, seen)
        return
    found[Source("earlier", None)] = None


_ALL_LANES = "SFPENCC"
_REGISTERS = ("src", "dst", "lreg")
_LOOK_BACK, _WIDER = 2000, 8  # clock units before a register is read; how that grows
_OTHER = np.uint8(0x55)  # bits that are changed
MOST = 24  # links of a chain
DEPTH = 8
RELU = "STACC_RELU_ApplyRelu"
ATOMIC = " as an atomic, of what was there and what was sent"
_NO_INPUT, _MADE_0 = "with any one input changed it stays the same", "which makes it 0: it "


@dataclass(frozen=True)
class Link:
    """One cause: a place, its change, the step and clock of the change, a sentence.

    `where` is None if nothing in the run changed the place; then `text` says what that means.
    """

    depth: int
    place: str
    before: int | None
    after: int
    clock: int | None
    where: Where | None
    text: str

    @property
    def moves(self) -> bool:
        """Whether it only moves a value: a NoC request, or a word as UNPACR and PACR."""
        moved = self.where is None or self.where.word is None or self.mnemonic in _MOVES
        return moved and not any(made in self.text for made in (_NO_INPUT, _MADE_0, ATOMIC))

    @property
    def leaves_dst(self) -> bool:
        """Whether it is a NoC request, or a PACR."""
        return self.where is None or self.where.word is None or self.mnemonic == "PACR"

    @property
    def mnemonic(self) -> str:
        """The name of its word or instruction."""
        return str(self.where and self.where.decoded).partition(" ")[0]

    def __str__(self) -> str:
        value = "" if self.before is None else f"{self.before:#x} -> "
        value += f"{self.after:#x}"
        if self.where is None:
            return f"{self.place} = {value}: {self.text}"
        more = f"; {self.text}" if self.text else ""
        return f"{self.place}: {value}, clock {self.clock}, by {self.where}{more}"

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        return {**vars(self), "where": self.where and self.where.as_dict()}


@dataclass
class Chain:
    """Follows causes on a tile that keeps a history; meanwhile the tile moves in time."""

    tile: Tile
    inputs: tuple[tuple[int, int, str], ...] = ()  # [low, high) of L1 that the host filled
    seen: "SeenOf | None" = None
    links: list[Link] = field(default_factory=list)
    _seen: set[tuple[int, int, int]] = field(default_factory=set)

    def why(self, place: str, found: Spans, at: int | None = None) -> list[Link]:
        """The causes of a place's value now or at clock `at`, each after its effect.

        The tile goes back to the clock at which it was.
        """
        stood = now(self.tile.state)
        if at is not None:
            self.go_to(at)
        self._follow(place, found, 0)
        self.go_to(stood)
        return self.links

    def go_to(self, clock: int) -> None:
        """To another moment of the run."""
        with self.tile.history.replaying():
            self.tile.history.to(clock)

    def _follow(self, place: str, found: Spans, depth: int) -> None:
        if len(self.links) >= MOST or depth > DEPTH:
            return
        value, end = found[0].value(self.tile.state.buffer), now(self.tile.state)
        change = self.last_change(place, found)
        clock = now(self.tile.state)
        again = self._last_write(place, found, clock, end)
        change, clock = again or (change, clock)
        if change is None:
            if not place.startswith("cc:"):  # else all lanes are on
                text = self._untouched(found[0])
                self.links.append(Link(depth, place, None, value, None, None, text))
            return
        key = (clock, found[0].at, found[0].length)
        if key in self._seen:
            return
        self._seen.add(key)
        with self.tile.history.replaying():
            self.tile.history.to(clock - 1)
            causes, text = self._causes(change, found)
        if again is not None:
            text = "; ".join(filter(None, ("which it was before", text)))
        link = Link(depth, place, change.before, change.after, clock, change.where, text)
        if place.startswith("cc:") and link.mnemonic == _ALL_LANES:
            return  # no condition
        self.links.append(link)
        for at, name, spans_of in causes:
            self.go_to(at)
            self._follow(name, spans_of, depth + 1)

    def last_change(self, place: str, found: Spans) -> Change | None:
        """The last change before now; the tile is then right after it."""
        with self.tile.stepping.watched.alone(place, found):
            return self.tile.history.last_stop().change

    def _last_write(self, place: str, found: Spans, begin: int, end: int) -> Made | None:
        """The last write between two clocks that left a value, and its clock.

        Of a register of the coprocessor any word, of L1 a PACR.
        """
        member, at = place.partition(":")[0], found[0].at - OFFSET["l1"]
        if member == "cc":
            return self._flags_set(found, begin, end)
        if 0 <= at < L1_SIZE and self.seen is not None:
            start = self.seen.packed(at, end)
            if start is None or start < begin:
                return None
            self.go_to(start)
            return self._write_after(place, found, end, once=True)
        window = _LOOK_BACK
        while member in _REGISTERS and begin < end:
            start = max(end - window, begin)
            self.go_to(start)
            last = self._write_after(place, found, end)
            if last is not None or start == begin:
                return last
            window *= _WIDER
        return None

    def _write_after(
        self, place: str, found: Spans, end: int, *, once: bool = False
    ) -> tuple[Change, int] | None:
        """As _last_write, from here. The place holds other bits meanwhile: to write changes it.

        A word that computes with those gives another value, and is none that is looked for.
        """
        (span, *_), s, last = found, self.tile.state, None
        held = s.buffer[span.at : span.at + span.length]
        kept, value = held.copy(), span.value(s.buffer)
        history, watched = self.tile.history, self.tile.stepping.watched
        with suppress(BhemuError), history.replaying(), watched.alone(place, found):
            while now(s) < end and not (once and last):
                held[:] = kept ^ _OTHER
                stop = self.tile.stepping.run("idle", limit=end - now(s))
                if stop.change is None:
                    break
                if stop.change.after == value:
                    last = replace(stop.change, before=value), now(s)
        return last

    def _flags_set(self, found: Spans, begin: int, end: int) -> Made | None:
        """The last word between two clocks that sets lane flags, which may leave this one."""
        self.go_to(max(begin, end - _LOOK_BACK))
        history, stepping = self.tile.history, self.tile.stepping
        with history.replaying(), history.unobserved(), stepping.recording() as entries:
            stepping.run("idle", limit=end - now(self.tile.state))
        for thread, word, pc, _, clock in reversed(entries):
            cls = decode_word(word)
            if clock <= end and cls and any("cc" in term.space.members for term in cls.writes):
                core = next(c for c in (thread + 1, 0) if self.tile.locate(c, pc)[0] or c == 0)
                where = place_of(self.tile, Word(clock, thread, word, pc, core, pc))
                value = found[0].value(self.tile.state.buffer)
                return Change(Watchpoint(0, "", found), value, value, where), clock
        return None

    def _untouched(self, span: Span) -> str:
        """A sentence about a place that nothing in the run has changed."""
        for low, high, name in self.tile.ranges:
            if low <= span.at < high:
                return f"as loaded from {name}; nothing has changed it since"
        for low, high, name in self.inputs:
            if low <= span.at < high:
                return f"{name}, {span.first - low:#x} bytes from its beginning"
        first = self.tile.history.first
        since = f"clock {first}, where the history begins" if first else "power-up"
        return f"nothing has changed it since {since}"

    def _causes(self, change: Change, found: Spans) -> tuple[list[Cause], str]:
        """(clock, place, spans) of each input of a change, and a sentence; the tile is before."""
        where = change.where
        clock = now(self.tile.state)
        if where.tile != self.tile.xy or (where.thread is None and where.word is None):
            at = found[0].at - OFFSET["l1"]
            source = "" if self.seen is None else self.seen.source(where, at, clock)
            before = [(clock, f"{at & ~3:#x}:4", found)] if source == ATOMIC else []
            return before, f"it came over the NoC{source}"
        if where.thread is not None and where.word is not None:
            return self._causes_of_word(change, found)
        if where.core not in CORE_NAMES:
            return [], ""
        core = self.tile.core[where.core]
        values = sources(window(self.tile.history, core))
        causes, said = [], list[str]()
        for one in values:
            if one.kind == "load" and one.at is not None:
                said.append(f"loaded from {one.address:#x} ({block_name(one.address)})")
                name = f"{one.address:#x}:{one.size}"
                with suppress(InputError):  # a device: said, not followed
                    causes.append((one.at.clock, name, spans(self.tile, core.name, name)))
            elif one.kind == "csr":
                said.append("read from a CSR")
            elif one.kind == "earlier":
                said.append("computed from what the core had before its last 256 instructions")
        if values and all(one.kind == "constant" for one in values):
            said.append("a constant of the code")
        return causes, "; ".join(said)

    def _causes_of_word(self, change: Change, found: Spans) -> tuple[list[Cause], str]:
        """As _causes, of a word; where a PACR makes a value 0 who has set its ReLU is a cause."""
        where, state, text, does = change.where, self.tile.state, "", ""
        assert where.thread is not None and where.word is not None
        clock, deciding = now(state), [*inputs(state, where.thread, where.word, found)]
        cls = decode_word(where.word)
        causes: list[Cause] = [(clock, one.text, (one.span,)) for one in deciding]
        if cls is None or cls.unit == "front":
            return causes, "the inputs of such words are not followed"
        computes = any(one.space.contents and not one.own for one in cls.reads)
        values = (one.span.value(state.buffer) for one in deciding)
        makes_0 = cls.unit == "pack" and change.after == 0 and any(values)
        if (computes and not deciding) or makes_0:
            does = word_text.effective(state, where.thread, where.word)
            text = f"{_MADE_0}{does}" if deciding else f"{_NO_INPUT}{': it ' if does else ''}{does}"
        if "ReLU" in does:
            causes.append((clock, RELU, spans(self.tile, "brisc", RELU)))
        return causes, text


def find(tile: Tile, program: Program, core: str, text: str) -> Spans:
    """The bytes of the record that `text` names: `y[3,5]`, or a place as `watch` takes it."""
    spec, index = element(program, text)
    if spec is None:
        try:
            return spans(tile, core, text)
        except InputError:
            name = text.partition("[")[0].strip()
            output = next((one for one in program.outputs if one.name == name), None)
            if output is None:
                raise
            hint = f"{element_name(name, [0] * len(output.shape))} is its first element"
            raise InputError(f"{text}: {name} is an output", hint=hint) from None
    if spec.dram is not None or spec.tile not in (None, tile.xy):
        name = spec.name
        raise InputError(f"{text}: {name} does not lie in the L1 of this tile", hint="--tile x,y")
    address, mask = datum(resolve(tile, spec.at), spec, index)
    return (Span(address & ~3, 4, mask),)


def links_behind(
    tile: Tile,
    program: Program,
    core: str,
    text: str,
    found: Spans | None = None,
    at: int | None = None,
    seen: "SeenOf | None" = None,
) -> list[Link]:
    """The causes of a place's value on a tile that keeps a history, now or at clock `at`.

    found: the bytes that `text` names, if known. InputError if words take time: then the inputs of
    a word may be gone when it is complete.
    """
    if tile.state.timed[0]:
        text = "causes are followed in runs in which words are complete at the gate"
        hint = "leave --late and --timing away, or watch the place: bhemu step"
        raise InputError(text, hint=hint)
    inputs = []
    for spec in program.inputs:
        if spec.dram is None and (not spec.tiles or tile.xy in spec.tiles):
            low = resolve(tile, spec.at)
            inputs.append((low, low + spec.size, f"input {spec.file.name} of the host"))
    return Chain(tile, tuple(inputs), seen).why(text, found or find(tile, program, core, text), at)


def last_change(tile: Tile, span: Span) -> tuple[Change | None, int]:
    """The last change of bytes of a tile, and its clock; the tile goes back to its clock."""
    chain, stood, change, clock = Chain(tile), tile.clock, None, 0
    with suppress(BhemuError):  # in which the run may have ended
        change = chain.last_change("it", (span,))
        clock = tile.clock
    with suppress(BhemuError):
        chain.go_to(stood)
    return change, clock


_PACKS = 16  # of those between two words that add, of which the state is looked at


def left_in_dst(
    tile: Tile, links: Sequence[Link], packs: Sequence[Word]
) -> tuple[Link, Word] | None:
    """Of the causes of an element a word that adds to what a PACR has packed before; and that.

    packs: the PACRs of the run. The tile keeps a history.
    """
    stood, chain = now(tile.state), Chain(tile)
    dst = [one for one in links if one.place.startswith("dst:") and one.clock is not None]
    try:
        for later, earlier in pairwise(dst):
            if later.place != earlier.place or not later.before:
                continue
            row, low, high = int(later.place.split(":")[1]), earlier.clock or 0, later.clock or 0
            for word in [one for one in packs if low < one.clock < high][:_PACKS]:
                chain.go_to(word.clock - 1)
                does, s = word_text.transfer_of(tile.state, word.thread, word.word), tile.state
                rows = does.rows if isinstance(does, word_text.Pack) else []
                if row in rows or row in [int(plain(dest.row16)(s, one)) for one in rows]:
                    return later, word
    finally:
        chain.go_to(stood)
    return None
