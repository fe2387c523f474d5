"""Names and source lines of an ELF: which symbol and which line of source an address belongs to."""

from __future__ import annotations

import difflib
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from typing import NamedTuple

from bhemu.errors import InputError
from bhemu.memmap import LOCAL_BASE
from bhemu.program import elf, lines
from bhemu.program.dwarf import Debug, Inlined

# Between equal addresses the name a person would use wins: functions, then data, then labels.
_TYPE_ORDER = {"STT_FUNC": 0, "STT_OBJECT": 1, "STT_NOTYPE": 2}
# What a compiler adds to the name of a static that it kept apart or specialised.
_CLONE = re.compile(r"(?:\.(?:lto_priv|constprop|isra|llvm|__uniq)(?:\.[0-9]+)?)+")
# Folders of tt-metal and tt-llk that kernels include from.
_LIBRARY = re.compile(r"/tt_metal/(hw|tt-llk|hostdevcommon|api)/|/tt_llk_|/kernel_lib(/|$)|/sfpi/")
_MOST_SUGGESTED_FROM = 10_000


class Move(NamedTuple):
    """A segment linked for `vaddr` whose bytes lie at `paddr`."""

    vaddr: int
    paddr: int
    size: int


class _Span(NamedTuple):
    """Addresses `lo` to `hi` (exclusive) carry `name`."""

    lo: int
    hi: int
    name: str


class Symbols:
    """Symbols and DWARF line table of one ELF, both parsed when first asked for.

    `data` is the ELF's bytes, `path` its name for messages. `offset` is the number of bytes by
    which the image was moved in L1: addresses given and returned are those of the running image,
    and addresses in local RAM do not move. Code that runs where `moves` put it, not where it was
    linked, has its names and lines there too. Names are printable: other characters are escaped.
    """

    def __init__(self, data: bytes, path: str, offset: int = 0, moves: Sequence[Move] = ()) -> None:
        self.data, self.moves = data, tuple(moves)
        self.path = path
        self.offset = offset

    def moved(self, offset: int) -> Symbols:
        """The same symbols for an image placed `offset` bytes away from its link address."""
        if offset == self.offset:
            return self  # with the tables that are parsed already
        return Symbols(self.data, self.path, offset, self.moves)

    def lookup(self, pc: int) -> tuple[str, int] | None:
        """(name, distance from it) of the function, object or label that holds address `pc`."""
        for address in self.linked(pc):
            index = bisect_right(self._spans, address, key=lambda span: span.lo) - 1
            if index >= 0 and address < self._spans[index].hi:
                return self._spans[index].name, address - self._spans[index].lo
        return None

    def address(self, name: str) -> int:
        """Address of a symbol; InputError when there is none, or several static ones."""
        found = self._by_name.get(name)
        if found is None:
            few = len(self._by_name) <= _MOST_SUGGESTED_FROM
            near = difflib.get_close_matches(name, self._by_name, n=3) if few else []
            hint = f"did you mean {', '.join(near)}?" if near else "list them: readelf -s"
            raise InputError(f"{self.path}: no symbol {name}", hint=hint)
        if len(found) > 1:
            places = ", ".join(f"0x{value:08X}" for value in sorted(found))
            raise InputError(
                f"{self.path}: symbol {name} stands for several addresses: {places}",
                hint="give the address instead",
            )
        return next(iter(found))

    def line(self, pc: int) -> tuple[str, int] | None:
        """(file name without folders, line number) of the code at `pc`, None where unknown."""
        for address in self.linked(pc):
            index = bisect_right(self.rows, address, key=lambda row: row.lo) - 1
            if index >= 0 and address < self.rows[index].hi:
                return self.rows[index].file, self.rows[index].line
        return None

    @cached_property
    def debug(self) -> Debug:
        """What .debug_info says, at the addresses of linking."""
        return Debug(self.data, self.path)

    def inlined(self, pc: int) -> Inlined:
        """Which function the source line of `pc` is in, and through which inlined calls."""
        for address in self.linked(pc):
            found = self.debug.calls(address)
            if found.function is not None:
                return found
        return Inlined(None, ())

    def entries(self, function: str) -> list[int]:
        """Where a function begins: itself and every inlined copy, in the running image."""
        return [self._running(address) for address in self.debug.entries(function)]

    def line_places(self, file: str, line: int) -> tuple[int, list[int]] | None:
        """(line, where its code begins in each function and inlined copy); None without code.

        A line that has no code stands for the next one of its file that has some.
        """
        line = min((r.line for r in self.rows if r.file == file and r.line >= line), default=-1)
        first: dict[object, int] = {}
        for row in self.rows:
            if (row.file, row.line) == (file, line):
                block = self.debug.owner(row.lo)
                owner = (self.lookup(self._running(row.lo)) or ("",))[0] if block is None else block
                first.setdefault(owner, row.lo)
        return (line, [self._running(at) for at in sorted(first.values())]) if first else None

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Every name `address` knows, sorted."""
        return tuple(sorted(self._by_name))

    @property
    def line_problem(self) -> str:
        """Why there are no source lines: "" when there are, else one sentence."""
        return self._lines[1]

    def linked(self, address: int) -> Iterator[int]:
        """Where the byte at `address` may have been linked."""
        if address >= LOCAL_BASE:
            yield address
            return
        address -= self.offset
        yield address
        for move in self.moves:
            if move.paddr <= address < move.paddr + move.size:
                yield address - move.paddr + move.vaddr

    def _running(self, address: int) -> int:
        """Where code linked at `address` runs."""
        for move in self.moves:
            if move.vaddr <= address < move.vaddr + move.size:
                return address - move.vaddr + move.paddr + self.offset
        return self._moved(address)

    def _moved(self, address: int) -> int:
        return address if address >= LOCAL_BASE else address + self.offset

    @property
    def rows(self) -> list[lines.Row]:
        """The line table in the order of addresses, which are those of linking."""
        return self._lines[0]

    @cached_property
    def library(self) -> frozenset[str]:
        """Names of the files that tt-metal or tt-llk has and kernels include."""
        folders: dict[str, list[str]] = defaultdict(list)
        with suppress(InputError, elf.DamagedError):
            for file in lines.files(self.data, elf.sections(self.data, self.path)):
                folders[file.name].append(file.folder)
        return frozenset(
            name for name, several in folders.items() if all(map(_LIBRARY.search, several))
        )

    @cached_property
    def _table(self) -> tuple[list[elf.Symbol], list[elf.Section]]:
        """(symbol entries, sections)."""
        try:
            table = elf.sections(self.data, self.path)
            return list(elf.symbols(self.data, table, self.path)), table
        except elf.DamagedError as error:
            raise InputError(f"{self.path}: damaged symbol table: {error}") from error

    @cached_property
    def _by_name(self) -> dict[str, set[int]]:
        local: dict[str, set[int]] = defaultdict(set)
        shared: dict[str, set[int]] = defaultdict(set)
        clones: dict[str, set[int]] = defaultdict(set)
        for symbol in self._table[0]:
            if _is_noise(symbol) or symbol.kind not in _TYPE_ORDER:
                continue
            absolute = symbol.section == elf.SHN_ABS
            value = symbol.value if absolute else self._moved(symbol.value)
            (local if symbol.local else shared)[symbol.name].add(value)
            name, dot, rest = symbol.name.partition(".")
            if dot and _CLONE.fullmatch(dot + rest):
                clones[name].add(value)
        return {**clones, **local, **shared}

    @cached_property
    def _spans(self) -> list[_Span]:
        """Spans by address; a label without a size reaches to the next symbol."""
        entries, sections = self._table
        best: dict[int, tuple[tuple[int, int], elf.Symbol]] = {}
        for symbol in entries:
            if _is_noise(symbol) or symbol.kind not in _TYPE_ORDER:
                continue
            if symbol.section >= min(len(sections), elf.SHN_RESERVED):
                continue
            if not sections[symbol.section].flags & elf.SHF_ALLOC:
                continue
            rank = (_TYPE_ORDER[symbol.kind], int(symbol.local))
            if symbol.value not in best or rank < best[symbol.value][0]:
                best[symbol.value] = (rank, symbol)
        return list(_to_spans([best[start][1] for start in sorted(best)], sections))

    @cached_property
    def _lines(self) -> tuple[list[lines.Row], str]:
        """(rows in address order, problem). Lines decorate messages: damage must not stop a run."""
        try:
            found = lines.rows(self.data, elf.sections(self.data, self.path))
        except elf.DamagedError as error:
            return [], f"{self.path}: damaged DWARF line table: {error}"
        except InputError as error:
            return [], f"{self.path}: no source lines: {error.message}; {error.hint}"
        if found is None:
            return [], f"{self.path}: no DWARF line table; compile with -g"
        return found, ""


def _is_noise(symbol: elf.Symbol) -> bool:
    """Undefined symbols, assembler-local labels (.L...) and mapping symbols ($x, $d)."""
    return symbol.section == elf.SHN_UNDEF or not symbol.name or symbol.name[0] in ".$"


def _to_spans(symbols: list[elf.Symbol], sections: list[elf.Section]) -> Iterator[_Span]:
    covered = 0
    for i, symbol in enumerate(symbols):
        start, size = symbol.value, symbol.size
        if not size and start < covered:
            continue  # a label inside a function: the function's name says more
        section = sections[symbol.section]
        end = section.address + section.size
        if size:
            end = start + size
        elif i + 1 < len(symbols):
            end = min(end, symbols[i + 1].value)
        covered = max(covered, end if size else 0)
        if end > start:
            yield _Span(start, end, symbol.name)
