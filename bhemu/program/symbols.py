"""Names and source lines of an ELF: which symbol and which line of source an address belongs to."""

from __future__ import annotations

import difflib
import io
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from bhemu.errors import InputError
from bhemu.memmap import LOCAL_BASE

_SHF_ALLOC = 2
_NAMED_TYPES = ("STT_NOTYPE", "STT_OBJECT", "STT_FUNC")
# Between equal addresses the name a person would use wins: functions, then data, then labels.
_TYPE_ORDER = {"STT_FUNC": 0, "STT_OBJECT": 1, "STT_NOTYPE": 2}


class _Span(NamedTuple):
    """Addresses `lo` to `hi` (exclusive) carry `name`."""

    lo: int
    hi: int
    name: str


class _Row(NamedTuple):
    """Addresses `lo` to `hi` (exclusive) come from `file`:`line`."""

    lo: int
    hi: int
    file: str
    line: int


class Symbols:
    """Symbols and DWARF line table of one ELF, both parsed when first asked for.

    `data` is the ELF's bytes, `path` its name for messages. `offset` is the number of bytes by
    which the image was moved in L1: addresses given and returned are those of the running image,
    and addresses in local RAM do not move.
    """

    def __init__(self, data: bytes, path: str, offset: int = 0) -> None:
        self._data = data
        self.path = path
        self.offset = offset

    def moved(self, offset: int) -> Symbols:
        """The same symbols for an image placed `offset` bytes away from its link address."""
        return Symbols(self._data, self.path, offset)

    def lookup(self, pc: int) -> tuple[str, int] | None:
        """(name, distance from it) of the function, object or label that holds address `pc`."""
        address = self._unmoved(pc)
        index = bisect_right(self._spans, address, key=lambda span: span.lo) - 1
        if index < 0 or address >= self._spans[index].hi:
            return None
        span = self._spans[index]
        return span.name, address - span.lo

    def address(self, name: str) -> int:
        """Address of a symbol; InputError when there is none, or several static ones."""
        found = self._by_name.get(name)
        if found is None:
            near = difflib.get_close_matches(name, self._by_name, n=3, cutoff=0.6)
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
        address = self._unmoved(pc)
        index = bisect_right(self._rows, address, key=lambda row: row.lo) - 1
        if index < 0 or address >= self._rows[index].hi:
            return None
        return self._rows[index].file, self._rows[index].line

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Every name `address` knows, sorted."""
        return tuple(sorted(self._by_name))

    @property
    def line_problem(self) -> str:
        """Why there are no source lines: "" when there are, else one sentence."""
        return self._lines[1]

    def _unmoved(self, address: int) -> int:
        return address if address >= LOCAL_BASE else address - self.offset

    def _moved(self, address: int) -> int:
        return address if address >= LOCAL_BASE else address + self.offset

    @property
    def _rows(self) -> list[_Row]:
        return self._lines[0]

    def _open(self) -> Any:
        from elftools.elf.elffile import ELFFile  # slow to import, and rarely wanted

        return ELFFile(io.BytesIO(self._data))

    @cached_property
    def _table(self) -> tuple[list[Any], list[Any]]:
        """(symbol entries, sections)."""
        try:
            elf = self._open()
            table = elf.get_section_by_name(".symtab")
            entries = [] if table is None else list(table.iter_symbols())
            return entries, list(elf.iter_sections())
        except Exception as error:  # the parser raises many unrelated types on damaged input
            raise InputError(f"{self.path}: damaged symbol table: {error}") from error

    @cached_property
    def _by_name(self) -> dict[str, set[int]]:
        local: dict[str, set[int]] = defaultdict(set)
        shared: dict[str, set[int]] = defaultdict(set)
        for symbol in self._table[0]:
            if _is_noise(symbol) or symbol["st_info"]["type"] not in _NAMED_TYPES:
                continue
            absolute = symbol["st_shndx"] == "SHN_ABS"
            value = symbol["st_value"] if absolute else self._moved(symbol["st_value"])
            is_local = symbol["st_info"]["bind"] == "STB_LOCAL"
            (local if is_local else shared)[symbol.name].add(value)
        return {**local, **shared}

    @cached_property
    def _spans(self) -> list[_Span]:
        """Spans by address; a label without a size reaches to the next symbol."""
        entries, sections = self._table
        best: dict[int, tuple[tuple[int, int], Any]] = {}
        for symbol in entries:
            index = symbol["st_shndx"]
            kind = symbol["st_info"]["type"]
            if _is_noise(symbol) or kind not in _NAMED_TYPES or not isinstance(index, int):
                continue
            if index >= len(sections) or not sections[index]["sh_flags"] & _SHF_ALLOC:
                continue
            rank = (_TYPE_ORDER[kind], int(symbol["st_info"]["bind"] == "STB_LOCAL"))
            start = symbol["st_value"]
            if start not in best or rank < best[start][0]:
                best[start] = (rank, symbol)
        return list(_to_spans([best[start][1] for start in sorted(best)], sections))

    @cached_property
    def _lines(self) -> tuple[list[_Row], str]:
        """(rows in address order, problem). Lines decorate messages: damage must not stop a run."""
        try:
            elf = self._open()
            if not elf.has_dwarf_info():
                return [], f"{self.path}: no DWARF line table; compile with -g"
            return sorted(_rows_of(elf.get_dwarf_info())), ""
        except Exception as error:  # the parser raises many unrelated types on damaged input
            return [], f"{self.path}: damaged DWARF line table: {error}"


def _is_noise(symbol: Any) -> bool:
    """Undefined symbols, assembler-local labels (.L...) and mapping symbols ($x, $d)."""
    return symbol["st_shndx"] == "SHN_UNDEF" or not symbol.name or symbol.name[0] in ".$"


def _to_spans(symbols: list[Any], sections: list[Any]) -> Iterator[_Span]:
    covered = 0
    for i, symbol in enumerate(symbols):
        start, size = symbol["st_value"], symbol["st_size"]
        if not size and start < covered:
            continue  # a label inside a function: the function's name says more
        section = sections[symbol["st_shndx"]]
        end = section["sh_addr"] + section["sh_size"]
        if size:
            end = start + size
        elif i + 1 < len(symbols):
            end = min(end, symbols[i + 1]["st_value"])
        covered = max(covered, end if size else 0)
        if end > start:
            yield _Span(start, end, symbol.name)


def _rows_of(dwarf: Any) -> Iterator[_Row]:
    for unit in dwarf.iter_CUs():
        program = dwarf.line_program_for_CU(unit)
        if program is None:
            continue
        names = _file_names(program)
        previous: Any = None
        for entry in program.get_entries():
            state = entry.state
            if state is None:
                continue
            if previous is not None and state.address > previous.address:
                name = names.get(previous.file, "?")
                yield _Row(previous.address, state.address, name, previous.line)
            previous = None if state.end_sequence else state


def _file_names(program: Any) -> dict[int, str]:
    """File register value -> name: files count from 1 up to DWARF 4 and from 0 in DWARF 5."""
    first = 0 if program["version"] >= 5 else 1
    return {
        index: PurePosixPath(entry.name.decode(errors="replace")).name
        for index, entry in enumerate(program["file_entry"], start=first)
    }
