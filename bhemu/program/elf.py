"""ELF32 files: their tables, each bounded before it is read; names and lines of addresses."""

from __future__ import annotations

import io
import os
import re
import struct
import zlib
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from bhemu.errors import InputError
from bhemu.jit import Later
from bhemu.memmap import LOCAL_BASE
from bhemu.program import files
from bhemu.text import printable

if TYPE_CHECKING:
    from bhemu.program import dwarf
else:
    dwarf = Later("bhemu.program.dwarf")

HEADER = struct.Struct("<16sHHIIIIIHHHHHH")
_SEGMENT = struct.Struct("<IIIIIII4x")
_SECTION = struct.Struct("<IIIIIII12x")
_SYMBOL = struct.Struct("<IIIBBH")
_LOCAL = 0  # STB_LOCAL

SHF_ALLOC, SHF_EXECINSTR, SHF_COMPRESSED = 2, 4, 0x800
SHN_UNDEF, SHN_RESERVED, SHN_ABS = 0, 0xFF00, 0xFFF1
# Names by number; another number is its own name.
_SEGMENT_KINDS = {1: "PT_LOAD", 2: "PT_DYNAMIC", 3: "PT_INTERP", 7: "PT_TLS"}
_SECTION_KINDS = dict(
    enumerate(f"SHT_{name}" for name in "NULL PROGBITS SYMTAB STRTAB RELA".split())
) | {8: "SHT_NOBITS"}
_SYMBOL_KINDS = dict(
    enumerate(f"STT_{name}" for name in "NOTYPE OBJECT FUNC SECTION FILE COMMON TLS".split())
)
DYNAMIC = ("PT_DYNAMIC", "PT_INTERP", "PT_TLS")
LONGEST_NAME = 4096
WORD = 16  # bytes of one read that cost a step more
_ELFCOMPRESS_ZLIB = 1


class DamagedError(ValueError):
    """The file contradicts itself."""


class CountedBytes(io.BytesIO):
    """A section as pyelftools reads it: every access is a step, told to `take`."""

    def __init__(self, data: bytes, take: Callable[[int], None]) -> None:
        super().__init__(data)
        self.take, self._single = take, 0

    def read(self, size: int | None = -1, /) -> bytes:
        """As of a file; DamagedError in a number of thousands of bytes."""
        found = super().read(size)
        self.take(1 + len(found) // WORD)
        self._single = self._single + 1 if size == 1 and found >= b"\x80" else 0
        if self._single > LONGEST_NAME:
            raise DamagedError("a LEB128 number without end")
        return found

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """As of a file."""
        self.take(1)
        return super().seek(offset, whence)

    def tell(self) -> int:
        """As of a file."""
        self.take(1)
        return super().tell()


class Section(NamedTuple):
    """One section header; `name` is printable, `kind` as in "SHT_PROGBITS"."""

    name: str
    kind: str
    flags: int
    address: int
    offset: int
    size: int
    link: int

    def bytes_of(self, data: bytes) -> bytes:
        """The section's bytes in the file, as they are there."""
        if self.kind == "SHT_NOBITS":
            return b""
        if self.offset + self.size > len(data):
            raise DamagedError(f"section {self.name} ends beyond the file")
        return data[self.offset : self.offset + self.size]


class Segment(NamedTuple):
    """One program header; `kind` as in "PT_LOAD"."""

    kind: str
    offset: int
    vaddr: int
    paddr: int
    filesz: int
    memsz: int
    flags: int


class Symbol(NamedTuple):
    """One entry of .symtab; `name` is printable, `kind` as in "STT_FUNC"."""

    name: str
    value: int
    size: int
    kind: str
    local: bool
    section: int


def _table(
    data: bytes, source: str, first: int, form: struct.Struct, limit: str
) -> list[tuple[int, ...]]:
    """The headers of a table, which lies in the file; `first`: of its fields in HEADER."""
    if len(data) < HEADER.size or data[:5] != b"\x7fELF\x01":
        raise DamagedError("no ELF32 header")
    header = HEADER.unpack_from(data)
    offset, size, count = header[first], *header[9 if first == 5 else 11 :][:2]
    files.check_limit(limit, count, source)
    if count and size != form.size:
        raise DamagedError(f"{source.rpartition(': ')[2]} of {size} bytes")
    if offset + size * count > len(data):
        raise DamagedError(f"{source.rpartition(': ')[2]} end beyond the file")
    return [*form.iter_unpack(data[offset : offset + form.size * count])]


def segments(data: bytes, source: str) -> list[Segment]:
    """The program headers; DamagedError, or InputError where there are more than the limit."""
    rows = _table(data, f"{source}: program headers", 5, _SEGMENT, "ELF_SEGMENTS")
    return [Segment(_name_of(kind, _SEGMENT_KINDS), *rest) for kind, *rest in rows]


def sections(data: bytes, source: str) -> list[Section]:
    """The section headers; DamagedError, or InputError where there are more than the limit."""
    rows = _table(data, f"{source}: section headers", 6, _SECTION, "ELF_SECTIONS")
    if not rows:
        return []
    names_at = HEADER.unpack_from(data)[13]
    if names_at >= len(rows):
        raise DamagedError(f"section names in section {names_at} of {len(rows)}")
    start, length = rows[names_at][4:6]
    strings = data[start : start + length]
    return [
        Section(_name_at(strings, name), _name_of(kind, _SECTION_KINDS), *rest)
        for name, kind, *rest in rows
    ]


def symbols(data: bytes, table: list[Section], source: str) -> Iterator[Symbol]:
    """The entries of .symtab, none without one; DamagedError, or InputError beyond a limit."""
    if (section := next((s for s in table if s.name == ".symtab"), None)) is None:
        return
    if section.kind != "SHT_SYMTAB":
        raise DamagedError(f"section .symtab is of type {section.kind}")
    if not section.link < len(table) or table[section.link].kind != "SHT_STRTAB":
        raise DamagedError("the symbols have no names")
    count = len(section.bytes_of(data)) // _SYMBOL.size
    files.check_limit("ELF_SYMBOLS", count, f"{source}: symbols")
    strings = table[section.link].bytes_of(data)
    known: dict[int, str] = {}
    total = 0  # characters of all names
    entries = section.bytes_of(data)[: count * _SYMBOL.size]
    for at, value, size, info, _, place in _SYMBOL.iter_unpack(entries):
        if (name := known.get(at)) is None:
            name = known[at] = _name_at(strings, at)
            total += len(name)
            files.check_limit("ELF_NAMES", total, f"{source}: symbol names")
        kind = _name_of(info & 15, _SYMBOL_KINDS)
        yield Symbol(name, value, size, kind, info >> 4 == _LOCAL, place)


def debug_section(data: bytes, table: list[Section], name: str, limit: str) -> bytes | None:
    """The section .debug_NAME, unpacked where it is compressed; None where there is none.

    DamagedError, or InputError where it has more bytes than the limit.
    """
    section = next((s for s in table if s.name in (f".debug_{name}", f".zdebug_{name}")), None)
    if section is None:
        return None
    raw = section.bytes_of(data)
    if section.name.startswith(".z"):
        if raw[:4] != b"ZLIB" or len(raw) < 12:
            raise DamagedError(f"{section.name} is not compressed as its name says")
        return _inflated(raw[12:], int.from_bytes(raw[4:12], "big"), section.name, limit)
    if section.flags & SHF_COMPRESSED:
        kind, size = (int.from_bytes(raw[i : i + 4], "little") for i in (0, 4))
        if len(raw) < 12 or kind != _ELFCOMPRESS_ZLIB:
            raise DamagedError(f"{section.name} is compressed by method {kind}, which is not read")
        return _inflated(raw[12:], size, section.name, limit)
    files.check_limit(limit, len(raw), f"{section.name}: bytes")
    return raw


def _inflated(raw: bytes, size: int, name: str, limit: str) -> bytes:
    files.check_limit(limit, size, f"{name}: bytes")
    try:
        unpacked = zlib.decompressobj().decompress(raw, size + 1)
    except zlib.error as error:
        raise DamagedError(f"{name}: {error}") from error
    if len(unpacked) != size:
        raise DamagedError(f"{name} does not unpack to {size} bytes")
    return unpacked


def _name_of(number: int, names: Mapping[int, str]) -> str:
    return names.get(number) or f"{number:#x}"


def text_at(strings: bytes, at: int) -> bytes:
    """The NUL-terminated name at offset `at`, cut where it is longer than any real one."""
    if at > len(strings):
        raise DamagedError(f"a name at {at:#x} of {len(strings):#x} bytes of names")
    end = strings.find(b"\0", at, at + LONGEST_NAME)
    return strings[at : end if end >= 0 else at + LONGEST_NAME]


def _name_at(strings: bytes, at: int) -> str:
    return printable(text_at(strings, at).decode(errors="replace"))


# Names and source lines: which symbol and which line an address belongs to.

# Between equal addresses the name a person would use wins: functions, then data, then labels.
_TYPE_ORDER = {"STT_FUNC": 0, "STT_OBJECT": 1, "STT_NOTYPE": 2}
# What a compiler adds to the name of a static that it kept apart or specialised.
_CLONE = re.compile(r"(?:\.(?:lto_priv|constprop|isra|llvm|__uniq)(?:\.[0-9]+)?)+")
# Folders of tt-metal, tt-llk and bhemu that kernels include from.
_LIBRARY = re.compile(
    r"/tt_metal/(hw|tt-llk|hostdevcommon|api)/|/tt_llk_|/kernel_lib(/|$)|/sfpi/"
    r"|(^|/)bhemu/kernel/c/(kernel|lib)(/|$)"
)
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


def holding(parts: Sequence[Any], address: int) -> Any:
    """The one of spans or rows in the order of addresses that holds an address, or None."""
    index = bisect_right(parts, address, key=lambda part: part.lo) - 1
    return parts[index] if index >= 0 and address < parts[index].hi else None


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
            if (span := holding(self._spans, address)) is not None:
                return span.name, address - span.lo
        return None

    def address(self, name: str) -> int:
        """Address of a symbol; InputError when there is none, or several static ones."""
        if (found := self._by_name.get(name)) is None:
            import difflib  # takes milliseconds, which few runs need

            few = len(self._by_name) <= _MOST_SUGGESTED_FROM
            near = difflib.get_close_matches(name, self._by_name, n=3) if few else []
            hint = f"did you mean {', '.join(near)}?" if near else "list them: readelf -s"
            raise InputError(f"{self.path}: no symbol {name}", hint=hint)
        if len(found) > 1:
            places = ", ".join(f"0x{value:08X}" for value in sorted(found))
            text = f"{self.path}: symbol {name} stands for several addresses: {places}"
            raise InputError(text, hint="give the address instead")
        return next(iter(found))

    def line(self, pc: int) -> tuple[str, int] | None:
        """(file name without folders, line number) of the code at `pc`, None where unknown."""
        for address in self.linked(pc):
            if (row := holding(self.rows, address)) is not None:
                return row.file, row.line
        return None

    @cached_property
    def debug(self) -> dwarf.Debug:
        """What .debug_info says, at the addresses of linking."""
        return dwarf.Debug(self.data, self.path)

    def inlined(self, pc: int) -> dwarf.Inlined:
        """Which function the source line of `pc` is in, and through which inlined calls."""
        for address in self.linked(pc):
            found = self.debug.calls(address)
            if found.function is not None:
                return found
        return dwarf.Inlined(None, ())

    def entries(self, function: str) -> list[int]:
        """Where a function begins: itself and every inlined copy, in the running image."""
        return [self.running(address) for address in self.debug.entries(function)]

    def line_places(self, file: str, line: int) -> tuple[int, list[int]] | None:
        """(line, where its code begins in each function and inlined copy); None without code.

        A line that has no code stands for the next one of its file that has some.
        """
        line = min((r.line for r in self.rows if r.file == file and r.line >= line), default=-1)
        first: dict[object, int] = {}
        for row in self.rows:
            if (row.file, row.line) == (file, line):
                block = self.debug.owner(row.lo)
                owner = (self.lookup(self.running(row.lo)) or ("",))[0] if block is None else block
                first.setdefault(owner, row.lo)
        return (line, [self.running(at) for at in sorted(first.values())]) if first else None

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

    def running(self, address: int) -> int:
        """Where code linked at `address` runs."""
        for move in self.moves:
            if move.vaddr <= address < move.vaddr + move.size:
                return address - move.vaddr + move.paddr + self.offset
        return self._moved(address)

    def _moved(self, address: int) -> int:
        return address if address >= LOCAL_BASE else address + self.offset

    @property
    def rows(self) -> list[dwarf.Row]:
        """The line table in the order of addresses, which are those of linking."""
        return self._lines[0]

    @cached_property
    def library(self) -> frozenset[str]:
        """Names of the files that tt-metal, tt-llk or bhemu has and kernels include."""
        folders: dict[str, list[str]] = defaultdict(list)
        with suppress(InputError, DamagedError):
            for file in dwarf.files(self.data, sections(self.data, self.path)):
                folders[file.name].append(file.folder)
        return frozenset(
            name for name, several in folders.items() if all(map(_LIBRARY.search, several))
        )

    @cached_property
    def _table(self) -> tuple[list[Symbol], list[Section]]:
        """(symbol entries, sections)."""
        try:
            table = sections(self.data, self.path)
            return list(symbols(self.data, table, self.path)), table
        except DamagedError as error:
            raise InputError(f"{self.path}: damaged symbol table: {error}") from error

    def _named(self) -> Iterator[Symbol]:
        """The symbols without undefined ones, local labels (.L...) and mapping symbols ($x, $d)."""
        for symbol in self._table[0]:
            plain = symbol.section != SHN_UNDEF and symbol.name[:1] not in ("", ".", "$")
            if plain and symbol.kind in _TYPE_ORDER:
                yield symbol

    @cached_property
    def _by_name(self) -> dict[str, set[int]]:
        local: dict[str, set[int]] = defaultdict(set)
        shared: dict[str, set[int]] = defaultdict(set)
        clones: dict[str, set[int]] = defaultdict(set)
        for symbol in self._named():
            value = symbol.value if symbol.section == SHN_ABS else self._moved(symbol.value)
            (local if symbol.local else shared)[symbol.name].add(value)
            name, dot, rest = symbol.name.partition(".")
            if dot and _CLONE.fullmatch(dot + rest):
                clones[name].add(value)
        return {**clones, **local, **shared}

    @cached_property
    def _spans(self) -> list[_Span]:
        """Spans by address; a label without a size reaches to the next symbol."""
        sections = self._table[1]
        best: dict[int, tuple[tuple[int, int], Symbol]] = {}
        for symbol in self._named():
            if symbol.section >= min(len(sections), SHN_RESERVED):
                continue
            if not sections[symbol.section].flags & SHF_ALLOC:
                continue
            rank = (_TYPE_ORDER[symbol.kind], int(symbol.local))
            if symbol.value not in best or rank < best[symbol.value][0]:
                best[symbol.value] = (rank, symbol)
        found, covered, starts = list[_Span](), 0, sorted(best)
        for start, following in zip(starts, (*starts[1:], None), strict=False):
            symbol = best[start][1]
            if not symbol.size and start < covered:
                continue  # a label inside a function: the function's name says more
            section = sections[symbol.section]
            end = section.address + section.size
            if symbol.size:
                end = start + symbol.size
                covered = max(covered, end)
            elif following is not None:
                end = min(end, following)
            if end > start:
                found.append(_Span(start, end, symbol.name))
        return found

    @cached_property
    def _lines(self) -> tuple[list[dwarf.Row], str]:
        """(rows in address order, problem). Lines decorate messages: damage must not stop a run."""
        try:
            found = dwarf.rows(self.data, sections(self.data, self.path))
        except DamagedError as error:
            return [], f"{self.path}: damaged DWARF line table: {error}"
        except InputError as error:
            return [], f"{self.path}: no source lines: {error.message}; {error.hint}"
        if found is None:
            return [], f"{self.path}: no DWARF line table; compile with -g"
        return found, ""
