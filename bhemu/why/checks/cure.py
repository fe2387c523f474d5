"""The check "cure": the one change of a wrong program with which it ends correctly."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from operator import methodcaller
from typing import Any, NamedTuple

import numpy as np

from bhemu import memmap as mm
from bhemu.devices.bus.address_map import device_name
from bhemu.errors import InputError, Where
from bhemu.launch import feed
from bhemu.machine.error_text import where_core
from bhemu.machine.hang.givers import reachable
from bhemu.machine.tile import Tile
from bhemu.program import toml
from bhemu.program.schema import SAVED_STATE, Program
from bhemu.program.specs import InputSpec, OutputSpec
from bhemu.program.tensor import DTYPES, LAYOUTS
from bhemu.riscv.assembly import NOP, jal, li, ttinsn
from bhemu.riscv.formats import Pushed, Store
from bhemu.riscv.isa import decode as decode_riscv
from bhemu.tensix import config_fields, thread_fields
from bhemu.tensix.config import CONFIG_WORDS
from bhemu.tensix.frontend import FROM_MOP
from bhemu.tensix.insn import decode, disassemble
from bhemu.tensix.observe import FIRST_CORE, WORDS_AND_STORES
from bhemu.why.check import Check, Context
from bhemu.why.findings import Finding, outside_helpers, place

# The edits that are tried: each changes one line, and invents nothing. It removes the line's act,
# or replaces it by what stands elsewhere in the same program.

_TP = 4  # the register that no compiler uses
_VALUES = 2  # of a line that are kept: one more than of a line that always gives away the same
Code = Mapping[int, tuple[int, ...]]  # by pc the instructions that stand there instead


@dataclass
class Act:
    """A line that pushes a word or stores to a device, with all copies that the compiler has made.

    `address`: of the store, None for a word of the code itself. `thread`: that of a word. `values`:
    at most two that it pushes or stores. `held`: its instructions by pc. `first`, `clock`: number
    and clock of its first act; clock None if no log has it.
    """

    tile: Tile
    core: int
    where: Where
    address: int | None
    thread: int | None
    first: int
    clock: int | None
    values: tuple[int, ...] = ()
    held: dict[int, int] = field(default_factory=dict)

    @property
    def word(self) -> int | None:
        """The Tensix word that it pushes or stores to a MOP's template, if always the same."""
        at, words = self.address, (mm.INSTRN_BUF_BASE, mm.INSTRN_BUF_END)
        if at is not None and mm.MOP_CFG_BASE <= at < mm.MOP_CFG_END:
            words = mm.MOP_CFG_BASE + 8, mm.MOP_CFG_END
        pushes = at is None or words[0] <= at < words[1]
        return self.values[0] if pushes and len(self.values) == 1 else None

    def left_out(self) -> Code:
        """The code without the act."""
        return dict.fromkeys(self.held, (NOP,))

    def giving(self, value: int) -> Code:
        """The code with another value."""
        if self.address is None:
            return dict.fromkeys(self.held, (ttinsn(value),))
        load, rs2 = li(_TP, value), 31 << 20
        return {pc: (*load, word & ~rs2 | _TP << 20) for pc, word in self.held.items()}

    def put(self, tile: Tile, code: Code, room: int) -> None:
        """Change a tile that has the same ELF; `room`: the address for code that does not fit."""
        name, words = mm.CORE_NAMES[self.core], tile.state.l1.view("<u4")
        mine = self.tile.core[name].images
        for pc, instead in code.items():
            own = next(image for image in mine if image.lookup(pc))
            for image in tile.core[name].images:
                at = pc + image.offset - own.offset
                if image.data != own.data or words[at >> 2] != self.held[pc]:
                    continue
                if len(instead) == 1:
                    words[at >> 2] = instead[0]
                    continue
                words[at >> 2] = jal(0, room - at)
                for word in (*instead, jal(0, at + 4 - room - 4 * len(instead))):
                    words[room >> 2] = word
                    room += 4
        tile.state.flush[:] = 1


def acts(context: Context, tile: Tile) -> list[Act]:
    """The lines of a tile's code that act in a run, in the order of its log, without firmware."""
    found: dict[tuple[int, int], Act] = {}
    for number, (agent, value, pc, origin, clock) in enumerate(tile.log):
        core, address, thread = agent - FIRST_CORE, origin, None
        if agent < FIRST_CORE:
            cores = (core for core in (agent + 1, 0) if tile.locate(core, pc)[0] is not None)
            core, address, thread = next(cores, -1), mm.INSTRN_BUF_BASE, agent
        cls = decode_riscv(tile.read32(pc)) if core >= 0 else None
        from_mop = thread is not None and origin == FROM_MOP
        if from_mop or not issubclass(cls or object, Pushed | Store):
            continue  # or what a REPLAY plays of a MOP
        if (act := found.get((core, pc))) is None:
            at = None if issubclass(cls or object, Pushed) else address
            act = Act(tile, core, where_core(tile, core, int(pc)), at, thread, number, clock)
            found[core, pc] = act
        if value not in act.values and len(act.values) < _VALUES:
            act.values += (value,)
    for core in range(1, len(mm.CORE_NAMES) - 1):  # MOP and REPLAY, which no log has
        own = {pc for known, pc in found if known == core}
        for pc in sorted(reachable(tile, core, own) - own):
            cls = decode_riscv(held := tile.read32(pc))
            value = cls.pushed(held) if cls and issubclass(cls, Pushed) else 0
            word = decode(value)
            if held and word and word.unit == "front" and tile.locate(core, pc)[0]:
                where = where_core(tile, core, int(pc))
                act = Act(tile, core, where, None, core - 1, len(tile.log), None, (value,))
                found[core, pc] = act
    lines = dict[object, Act]()
    for (core, pc), act in found.items():
        if context.in_firmware(tile, core, pc):
            continue
        if act.address is not None:  # a helper: the line that calls it
            act.where = outside_helpers(tile, act.where)
        line = act.where.file, act.where.line or pc
        key = core, line, act.address, act.thread, act.values
        lines.setdefault(key, act).held[pc] = tile.read32(pc)
    return sorted(lines.values(), key=lambda act: (act.first, act.core, min(act.held)))


_MOST = 8  # values that a field has elsewhere: those of the nearest lines
_SAME_BITS = {"fp32", "tf32"}  # read alike, the one less closely


class Edit(NamedTuple):
    """One change: its place, the clock of its first act, a text; `cures`: asks the trials."""

    where: Where
    clock: int | None
    text: str
    cures: Callable[[Any], bool]


# PROGRAM.toml: a dtype or layout.


def of_file(program: Program) -> Iterator[Edit]:
    """The edits of PROGRAM.toml, first those that need no run."""
    if (path := program.path) is None:
        return
    at = partial(toml.line_of_key, path)

    def edit(line: int, text: str, cures: Callable[[Any], bool]) -> Edit:
        return Edit(Where(file=path.name, line=line), None, text, cures)

    for i, output in enumerate(program.outputs):
        for key, value in _other(output):
            given: Any = {key: value}
            text = f"output {output.name}: {key} = {value} instead of {getattr(output, key)}"
            if {output.dtype, value} != _SAME_BITS:
                read = methodcaller("read", i, replace(output, **given))
                yield edit(at("output", i, key), text, read)
    for i, source in enumerate(program.inputs):
        for key, value in _other(source):
            given = {key: value, "convert": "nearest"}
            text = f"input {source.file.name}: {key} = {value} instead of {getattr(source, key)}"
            change = partial(feed, program=program, source=replace(source, **given))
            yield edit(at("input", i, key), text, methodcaller("changed", change))


def _other(spec: InputSpec | OutputSpec) -> Iterator[tuple[str, str]]:
    """The other dtypes and layouts of a tensor."""
    yield from (("layout", layout) for layout in LAYOUTS if layout != spec.layout)
    yield from (("dtype", dtype) for dtype in DTYPES if dtype != spec.dtype)


# Code: a word left out, a field as elsewhere, two operands exchanged.


class _Part(NamedTuple):
    """A field of a word or store; fields of one `kind` hold the same sort of number."""

    kind: tuple[str, str]
    name: str
    whole: int
    shift: int
    mask: int

    @property
    def now(self) -> int:
        return self.whole >> self.shift & self.mask

    def put(self, value: int) -> int:
        return self.whole & ~(self.mask << self.shift) | value << self.shift


def _parts(act: Act) -> Iterator[_Part]:
    """The fields of a line's constant value: of a Tensix word, of a Config word."""
    word, at = act.word, act.address or 0
    if word is None:
        if len(act.values) == 1 and mm.TENSIX_CFG_BASE <= at < mm.TENSIX_CFG_END:
            number = (at - mm.TENSIX_CFG_BASE) // 4 % CONFIG_WORDS
            yield from _named(config_fields, number, act.values[0])
        return
    cls = decode(word)
    if cls is None:
        return
    register = cls.operands(word).get("setc16_reg")
    named = [] if register is None else [*_named(thread_fields, register, word)]
    yield from named
    for one in cls.fields:
        if not (named and one.name == "setc16_value"):
            kind = cls.unit, one.name
            yield _Part(kind, f"{cls.name} {one.name}", word, one.lo, (1 << one.width) - 1)


def _named(space: Any, number: int, whole: int) -> Iterator[_Part]:
    """The fields of a word of Config or ThreadConfig; names of one kind differ only in digits."""
    for name, one in vars(space).items():
        if isinstance(one, config_fields.Field) and one.word == number:
            kind = space.__name__, re.sub(r"\d", "", name)
            yield _Part(kind, name, whole, one.shift, one.mask)


def of_code(acts: Sequence[Act], nearest: Iterable[Act]) -> Iterator[Edit]:
    """The edits of a program's code, those of `nearest` in this order.

    acts: of all its tiles whose code differs, each tile's in the order of the run.
    """
    known: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for act in acts:
        for part in _parts(act):
            known.setdefault(part.kind, []).append((act.first, part.now))
    for act in nearest:
        edit = partial(Edit, act.where, act.clock)
        what, word = disassemble(act.values[0]), act.word
        if word is None and act.address is not None:
            sets = [f"{part.name} = {part.now:#x}" for part in _parts(act) if part.now]
            name = ", ".join(sets) or device_name(act.address, act.core).partition(",")[0]
            what = f"the store of {name}" if sets else f"the store of {act.values[0]:#x} to {name}"
            if len(act.values) > 1:
                what = f"every store of this line to {name}"
        yield edit(f"{what} is left out", methodcaller("edited", act, act.left_out()))
        for part in _parts(act):
            elsewhere = sorted(known[part.kind], key=lambda at: (abs(at[0] - act.first), at))
            values = dict.fromkeys(n for _, n in elsewhere if n != part.now and n <= part.mask)
            for value in [*values][:_MOST]:
                text = f"{part.name} = {value:#x} instead of {part.now:#x}"
                yield edit(text, methodcaller("edited", act, act.giving(part.put(value))))
        if word is None or (cls := decode(word)) is None:
            continue
        for one, two in combinations(cls.fields, 2):
            a, b = one.get(word), two.get(word)
            if a != b and one.width == two.width > 1:
                other = two.put(one.put(word, b), a)
                text = f"{disassemble(other)} instead of {disassemble(word)}"
                yield edit(text, methodcaller("edited", act, act.giving(other)))


# The search.

_RUNS, _MORE = 20, 1_500_000_000  # plain runs, and instructions of 2 ns, that a search may take
_TRIAL, _TILE = 1_000_000, 500_000  # instructions besides, and for each further tile
_RECORDED = 1_000_000  # clock units in which lines are seen to act
_LEAST, _TIMES = 200_000, 2  # clock units of a changed run, and times the first run's
_ROOM, _REACH = 1 << 10, 1 << 20  # bytes for instructions that are added, and how far a jump goes


class _Trials:
    """One machine on which a program is run again and again from its launch on."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._machine = context.launch(engine="compiled", livelock=0, **context.alone)
        self._start = self._machine.snapshot()
        self._limit = max(_LEAST, _TIMES * (context.end - int(self._machine.clock)))
        self._tiles = context.tiles(self._machine)
        held = [(one.state.l1 != 0).reshape(-1, _ROOM).any(axis=1) for one in self._tiles]
        free = np.flatnonzero(~np.any(held, axis=0)[: _REACH // _ROOM])
        self._room = int(free[-1]) * _ROOM if free.size else 0  # which code reaches by one jump

    def acts(self) -> list[Act]:
        """The acts of lines in the unchanged run; an ELF of several tiles counts once."""
        self._machine.restore(self._start)
        kinds, found = self._context.first(self._machine, 0), dict[object, Act]()
        for tile in kinds:
            tile.log, tile.state.trace[0] = [], WORDS_AND_STORES
        self._context.finish(self._machine, limit=_RECORDED)
        for tile in kinds:
            tile.drain_log()
            tile.state.trace[0] = 0
            for act in acts(self._context, tile):
                pc, images = min(act.held), tile.core[mm.CORE_NAMES[act.core]].images
                for image in (one for one in images if one.lookup(pc)):
                    same = act.core, image.data, pc - image.offset, act.address, act.values
                    found.setdefault(same, act)
            tile.log = []
        return list(found.values())

    def changed(self, change: Callable[[Any], None]) -> bool:
        """Whether the program ends correctly after a change of the launched machine."""
        self._machine.restore(self._start)
        try:
            change(self._machine)
        except InputError:
            return False
        self._context.work += _TRIAL + _TILE * (len(self._tiles) - 1)
        ended, seen = self._context.finish(self._machine, limit=self._limit), self._context.symptom
        return (seen.error is not None or ended.outputs != seen.outputs) and ended.fine

    def edited(self, act: Act, code: Code) -> bool:
        """Whether it ends correctly with other code for a line, on all tiles that have the line."""
        more = 4 * sum(len(words) + 1 for words in code.values() if len(words) > 1)
        if more > (_ROOM if self._room else 0):
            return False

        def change(_: object) -> None:
            for tile in self._tiles:
                act.put(tile, code, self._room)

        return self.changed(change)

    def read(self, number: int, spec: OutputSpec) -> bool:
        """Whether the unchanged run is right if an output is read as `spec` says."""
        seen = self._context.symptom
        others = [one for n, one in enumerate(seen.results) if n != number]
        try:
            report = spec.check(seen.machine.output(spec)[1])
        except InputError:  # what is expected is not exact so, or it ends outside of memory
            return False
        mine = report is not None and report.equal
        return seen.error is None and mine and all(one.equal for one in others)


def _run(context: Context) -> Sequence[Finding]:
    judged = any(spec.expect is not None for spec in context.program.outputs)
    if context.symptom.fine or not judged or context.program.kind == SAVED_STATE:
        return []
    trials, before = _Trials(context), context.work
    if trials.changed(lambda _: None):
        return []  # it needs no more than time
    bound = context.work + _RUNS * (context.work - before) + _MORE
    every, touched = trials.acts(), [(one.core, one.file, one.line) for one, _ in context.touched]
    clock = next((clock for _, clock in context.touched if clock is not None), 0)

    def distance(act: Act) -> tuple[int, bool, int, int]:
        """From the lines that made the first wrong element or met the error."""
        mine = mm.CORE_NAMES[act.core], act.where.file, act.where.line
        at = touched.index(mine) if mine in touched else len(touched)
        away = context.end if act.clock is None else abs(clock - act.clock)
        return at, mine[0] not in [core for core, _, _ in touched], away, act.first

    edits = [*of_file(context.program), *of_code(every, sorted(every, key=distance))]
    found, tried = dict[object, list[Edit]](), 0
    for edit in edits:
        if context.work > bound or len(found) > 1:
            break
        tried += 1
        if edit.cures(trials):
            line = edit.where.core, edit.where.file, edit.where.line or edit.where.pc
            found.setdefault(line, []).append(edit)
    if len(found) != 1:
        return []
    most = "" if tried == len(edits) else f", the first of {len(edits)}"
    told = f"{tried} changes were tried{most}; those that cure are all of this line, which need not"
    told += " be the mistake"
    (cures,) = found.values()
    where, when, text, _ = cures[0]
    at = f"{where.file}:{where.line}" if where.line else f"pc {where.pc or 0:#x}"
    at = f"{where.core} {at}" if where.core else at
    evidence = (told, *(f"with this as well: {one.text}" for one in cures[1:]))
    text = f"the run also ends correctly if {at} is changed: {text}"
    return [Finding("cure", "note", text, place(where, when), {}, evidence, "")]


CHECK = Check(
    name="cure",
    proves="that the run also ends correctly with a change of one line, and with no change of"
    " another line that was tried: a note, and the last; not that this line is the wrong one",
    misses="whatever takes another change: tried are a word left out, a field as it stands"
    " elsewhere in the program, two operands exchanged, a dtype or layout of PROGRAM.toml; where"
    " two lines cure, nothing is told; it is not asked where something waits, another check has"
    " found something, or no output is compared",
    cost="only where a run went wrong and nothing else was found: at most 20 runs and 3 s",
    applies=lambda seen: 0 if seen.fine else 6,
    run=_run,
)
