"""Breakpoints of a tile, kept in the record where the compiled loop looks for them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from bhemu.arguments import did_you_mean
from bhemu.errors import InputError
from bhemu.memmap import CORE_NAMES, L1_SIZE
from bhemu.tensix.insn import REGISTRY
from bhemu.tensix.state import THREADS, WORD_BREAKPOINTS, State

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
    known_words = {cls.name: cls for cls in REGISTRY.values()}
    cls = known_words.get(name)
    if cls is None:
        raise InputError(f"no Tensix instruction {name}", hint=did_you_mean(name, known_words))
    declared = {field.name: field for field in cls.fields}
    mask, value = 0xFF000000, cls.opcode << 24
    for field, wanted in fields.items():
        if field not in declared:
            known = ", ".join(declared) or "none"
            raise InputError(f"{name} has no field {field}", hint=f"its fields: {known}")
        own = declared[field]
        if not 0 <= wanted <= own.max:
            raise InputError(f"{field}={wanted} does not fit", hint=f"0 to {own.max}")
        mask, value = mask | own.mask, value | wanted << own.lo
    return mask, value


class Breakpoints:
    """The numbered breakpoints and the temporary ones of a command that runs."""

    def __init__(self, s: State, numbers: Iterator[int]) -> None:
        self._s, self._numbers = s, numbers
        self.points: dict[int, Breakpoint] = {}
        self.words: dict[int, WordBreakpoint] = {}
        self._visited: set[tuple[int, int]] = set()

    def add(self, core: int, address: int, text: str, copies: tuple[int, ...] = ()) -> Breakpoint:
        """Set one; InputError when an address is no code address or all places are taken."""
        for each in (address, *copies):
            if each % 4 or not 0 <= each < L1_SIZE:
                raise InputError(f"{each:#x} is no code address (a multiple of 4 in L1)")
            old = self.at(core, each)
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

    def is_visited(self, core: int, address: int) -> bool:
        """True where a command that runs wants to be told, whatever a breakpoint there asks."""
        return (core, address) in self._visited

    def delete(self, number: int | None) -> None:
        """Remove one, or all."""
        if number is None or number in self.words:
            for n in list(self.words) if number is None else [number]:
                del self.words[n]
            self._write_words()
            if number is not None:
                return
        if number is not None and number not in self.points:
            known = ", ".join(str(n) for n in (*self.points, *self.words)) or "there are none"
            raise InputError(f"no breakpoint {number}", hint=known)
        for n in list(self.points) if number is None else [number]:
            core = self.points.pop(n).core
            self._write(core, self._addresses(core))

    def at(self, core: int, address: int) -> Breakpoint | None:
        """The breakpoint there."""
        own = (p for p in self.points.values() if p.core == core)
        return next((p for p in own if address in (p.address, *p.copies)), None)

    @contextmanager
    def temporary(self, core: int, addresses: Sequence[int]) -> Iterator[None]:
        """More addresses for as long as the context lasts."""
        visited = self._visited
        self._write(core, [*dict.fromkeys([*self._addresses(core), *addresses])])
        self._visited = visited | {(core, address) for address in addresses}
        try:
            yield
        finally:
            self._visited = visited
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
