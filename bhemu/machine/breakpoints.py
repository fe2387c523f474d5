"""Breakpoints: where they go, their conditions, the record where compiled code finds them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bhemu import arguments
from bhemu.arguments import did_you_mean
from bhemu.errors import InputError
from bhemu.machine.resolve import LINE, code_address, line_address
from bhemu.memmap import CORE_NAMES, L1_SIZE
from bhemu.program.coordinates import At
from bhemu.tensix.insn import instructions
from bhemu.tensix.state import THREADS, WORD_BREAKPOINTS, State

if TYPE_CHECKING:
    from bhemu.machine.core import Core
    from bhemu.machine.tile import Tile

MOST = 16  # per core, as the record has room for
ALL = tuple(range(THREADS))


@dataclass(frozen=True, repr=False)
class _Numbered:
    number: int

    def __repr__(self) -> str:
        return f"<{self}>"

    def __str__(self) -> str:
        return f"breakpoint {self.number}: {self.place}"

    @property
    def place(self) -> str:
        """Where it is, in words."""
        raise NotImplementedError


@dataclass(frozen=True, repr=False)
class Breakpoint(_Numbered):
    """One breakpoint: its number, the core and addresses, and what the user wrote."""

    core: int
    address: int
    text: str
    copies: tuple[int, ...] = ()  # where else that code is, where the compiler has inlined it

    @property
    def place(self) -> str:
        """For example "trisc1 0x0001403C main"."""
        return f"{CORE_NAMES[self.core]} 0x{self.address:08X} {self.text}"


@dataclass(frozen=True, repr=False)
class WordBreakpoint(_Numbered):
    """A breakpoint on Tensix words: the bits of `mask` that must be as in `value`; threads."""

    mask: int
    value: int
    threads: tuple[int, ...]
    text: str

    @property
    def place(self) -> str:
        """For example "T2 PACR last=1"."""
        names = "" if self.threads == ALL else "".join(f"T{t} " for t in self.threads)
        return f"{names}{self.text}"


def word_pattern(name: str, fields: Mapping[str, int]) -> tuple[int, int]:
    """(mask, value) of a mnemonic with values of its fields; InputError for what is not there."""
    known_words = {cls.name: cls for cls in instructions().values()}
    cls = known_words.get(name) if isinstance(name, str) else None
    if cls is None:
        raise InputError(f"no Tensix instruction {name}", hint=did_you_mean(name, known_words))
    declared = {field.name: field for field in cls.fields}
    mask, value = 0xFF000000, cls.opcode << 24
    for field, wanted in fields.items():
        if field not in declared:
            known = ", ".join(declared) or "none"
            raise InputError(f"{name} has no field {field}", hint=f"its fields: {known}")
        own = declared[field]
        if not 0 <= arguments.integer(field, wanted, -arguments.MOST) <= own.max:
            raise InputError(f"{field}={wanted} does not fit", hint=f"0 to {own.max}")
        mask, value = mask | own.mask, value | wanted << own.lo
    return mask, value


def checked(address: int) -> int:
    """`address`, where a core may stand; InputError elsewhere."""
    if address % 4 or not 0 <= address < L1_SIZE:
        raise InputError(f"{address:#x} is no code address (a multiple of 4 in L1)")
    return address


class Breakpoints:
    """The numbered breakpoints and the temporary ones of a command that runs."""

    def __init__(self, s: State, numbers: Iterator[int]) -> None:
        self._s, self._numbers = s, numbers
        self.points: dict[int, Breakpoint] = {}
        self.words: dict[int, WordBreakpoint] = {}
        # (core, address): a command that runs wants to be told, whatever a breakpoint there asks
        self.visited: set[tuple[int, int]] = set()

    def add(self, core: int, address: int, text: str, copies: tuple[int, ...] = ()) -> Breakpoint:
        """Set one; InputError when an address is no code address or all places are taken."""
        for each in (address, *copies):
            old = self.at(core, checked(each))
            if old is not None:
                raise InputError(f"{old} is set there already")
        self._write(core, [*self._addresses(core), address, *copies])
        point = Breakpoint(next(self._numbers), core, address, text, copies)
        self.points[point.number] = point
        return point

    def add_word(self, name: str, threads: tuple[int, ...], **fields: int) -> WordBreakpoint:
        """Stop a thread before such a word executes."""
        mask, value = word_pattern(name, fields)
        if len(self.words) >= WORD_BREAKPOINTS:
            raise InputError(
                f"there is room for {WORD_BREAKPOINTS} breakpoints on words",
                hint="delete one first",
            )
        text = " ".join((name, *(f"{field}={n}" for field, n in fields.items())))
        point = WordBreakpoint(next(self._numbers), mask, value, threads, text)
        self.words[point.number] = point
        self._write_words()
        return point

    def _write_words(self) -> None:
        for i, point in enumerate(self.words.values()):
            whose = sum(1 << t for t in point.threads)
            self._s.word_break[i] = point.mask, point.value, whose, point.number
        self._s.word_break_count[0] = len(self.words)

    def delete(self, number: int | None) -> None:
        """Remove one, or all."""
        there = [*self.points, *self.words]
        if number is not None and number not in there:
            known = ", ".join(map(str, there)) or "there are none"
            raise InputError(f"no breakpoint {number}", hint=known)
        for n in there if number is None else [number]:
            if self.words.pop(n, None) is None:
                core = self.points.pop(n).core
                self._write(core, self._addresses(core))
        self._write_words()

    def at(self, core: int, address: int) -> Breakpoint | None:
        """The breakpoint there."""
        own = (p for p in self.points.values() if p.core == core)
        return next((p for p in own if address in (p.address, *p.copies)), None)

    @contextmanager
    def temporary(self, core: int, addresses: Sequence[int]) -> Iterator[None]:
        """More addresses for as long as the context lasts."""
        visited = self.visited
        self._write(core, [*dict.fromkeys([*self._addresses(core), *addresses])])
        self.visited = visited | {(core, address) for address in addresses}
        try:
            yield
        finally:
            self.visited = visited
            self._write(core, self._addresses(core))

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """No breakpoint stops anything for as long as the context lasts."""
        counts, words = self._s.breakpoint_count.copy(), int(self._s.word_break_count[0])
        self._s.breakpoint_count[:] = self._s.word_break_count[0] = 0
        try:
            yield
        finally:
            self._s.breakpoint_count[:] = counts
            self._s.word_break_count[0] = words

    def skip(self, core: int) -> None:
        """Let `core` leave the address where it stands, if that holds a breakpoint."""
        s = self._s
        here = s.breakpoint[core, : s.breakpoint_count[core]]
        s.breakpoint_skip[core] = int(s.pc[core] in here)

    def _addresses(self, core: int) -> list[int]:
        own = (p for p in self.points.values() if p.core == core)
        return [address for p in own for address in (p.address, *p.copies)]

    def _write(self, core: int, addresses: list[int]) -> None:
        if len(addresses) > MOST:
            raise InputError(
                f"{CORE_NAMES[core]} has room for {MOST} breakpoints", hint="delete one first"
            )
        self._s.breakpoint[core, : len(addresses)] = addresses
        self._s.breakpoint_count[core] = len(addresses)
        self._s.breakpoint_skip[core] = 0


class CodePlace(NamedTuple):
    """Code of a core; `note`: what else must be said of it, "" for nothing."""

    core: Core
    address: int
    note: str = ""


def code_places(tile: Tile, core: Core, at: At, own: bool = False) -> list[CodePlace]:
    """Where to stop for `at`: an address, a symbol, a function or FILE:LINE; never empty.

    `core` is preferred, and with `own` the only one; without `own` it may be the code of another. A
    function has several places where the compiler has inlined it, a line too; a line without code
    stands for the next one that has some.
    """
    others = [] if own else [one for one in tile.core.values() if one.index != core.index]
    line = LINE.fullmatch(at) if isinstance(at, str) else None
    if line:
        return _lines(core, others, Path(line[1]).name, int(line[2]))
    if isinstance(at, str) and re.fullmatch(r"[A-Za-z_]\w*", at):
        for group in ([core], others):
            found = [one for one in group if _entries(one, at)]
            if len(found) > 1:
                names = ", ".join(one.name for one in found)
                text = f"{at} is a function of several cores: {names}"
                raise InputError(text, hint=f"name one: break {at} {found[0].name}")
            if found:
                return [CodePlace(found[0], address) for address in _entries(found[0], at)]
    address = code_address(tile, core, at)
    holders = [one for one in (core, *others) if _holds(tile, one, address)]
    if not holders or holders[0].index == core.index:
        return [CodePlace(core, address)]
    if len(holders) > 1:
        names = ", ".join(one.name for one in holders)
        raise InputError(f"the code at {address:#x} is that of {names}", hint="name the core")
    return [CodePlace(holders[0], address, f"that is code of {holders[0].name}")]


def _entries(core: Core, name: str) -> list[int]:
    """Where function `name` of a core begins, its inlined copies included."""
    found = set()
    for symbols in core.images:
        if name in symbols.names:
            found.add(symbols.address(name))
        found.update(symbols.entries(name))
    return sorted(found)


def _holds(tile: Tile, core: Core, address: int) -> bool:
    """Whether an ELF of the core brought what lies at an address of L1."""
    mine = {symbols.path for symbols in core.images}
    return any(low <= address < high and Path(n).name in mine for low, high, n in tile.ranges)


def _lines(core: Core, others: Iterable[Core], file: str, line: int) -> list[CodePlace]:
    for one in (core, *others):
        found = [found for symbols in one.images if (found := symbols.line_places(file, line))]
        if found:
            number, addresses = min(found)
            note = "" if one.index == core.index else f"that is code of {one.name}"
            if number != line:
                note = f"{file}:{line} has no code, the next line that has some is {file}:{number}"
            return [CodePlace(one, address, note) for address in addresses]
    return [CodePlace(core, line_address(core, file, line))]  # which says that there is none


Condition = Callable[[Any], object]  # asked with the tile


@dataclass
class Asked:
    """Of one breakpoint or watchpoint; `hits` counts the stops at which its condition held."""

    condition: Condition | None = None
    text: str = ""
    ignore: int = 0
    hits: int = 0

    def lines(self) -> list[str]:
        """As `info breakpoints` shows it."""
        shown = [f"  only if {self.text}"] if self.condition is not None else []
        shown += [f"  the next {self.ignore} are ignored"] if self.ignore else []
        return shown + (
            [f"  hit {self.hits} time{'' if self.hits == 1 else 's'}"] if self.hits else []
        )


class Conditions:
    """The wishes by number."""

    def __init__(self) -> None:
        self._asked: dict[int, Asked] = {}
        self.counting = True  # False while the past runs again

    def of(self, number: int) -> Asked:
        """Those of a breakpoint, which are made now if there are none."""
        return self._asked.setdefault(number, Asked())

    def ask(self, number: int, condition: Condition | None, ignore: int, text: str = "") -> None:
        """Stop at `number` only if condition(tile), and not the first `ignore` times."""
        text = text or getattr(condition, "__name__", "")
        ignore = arguments.integer("ignore", ignore)
        self._asked[number] = Asked(condition, text, ignore, self.of(number).hits)

    def forget(self, number: int) -> None:
        """A breakpoint was deleted."""
        self._asked.pop(number, None)

    def stops(self, number: int, tile: object) -> bool:
        """Whether a run ends at breakpoint `number`, which was reached."""
        one = self.of(number)
        if one.condition is not None and not one.condition(tile):
            return False
        if not self.counting:
            return True
        one.hits += 1
        if one.ignore:
            one.ignore -= 1
            return False
        return True
