"""Names and source lines of an ELF: which symbol and which line an address belongs to."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from bhemu.errors import InputError
from bhemu.jit import Later
from bhemu.memmap import LOCAL_BASE
from bhemu.program import elf
from bhemu.program.elf import LONGEST_NAME, SHF_ALLOC, CountedBytes, DamagedError, Section
from bhemu.program.files import check_limit, limit
from bhemu.text import printable

if TYPE_CHECKING:
    from bhemu.program import dwarf
else:
    dwarf = Later("bhemu.program.dwarf")

# Line numbers of an ELF, of DWARF 2 to 5, read by pyelftools under a budget.
#
# Line programs stand for themselves: neither .debug_info nor a relocation is needed to read them,
# so an ELF linked with --emit-relocs is read like any other.

_LONGEST_FILE = 255
_ADDRESSES = 0xFFFF_FFFF
_ASSEMBLER, _WORD = (".S", ".s"), 4  # files, bytes of an instruction


class Row(NamedTuple):
    """Addresses `lo` to `hi` (exclusive) come from `file`:`line`."""

    lo: int
    hi: int
    file: str
    line: int


class File(NamedTuple):
    """A file of source, by its name without folders; `folder` as the compiler was given it."""

    name: str
    folder: str


_UNKNOWN = File("?", "")


def _name(file: File) -> str:
    return file.name


def whole_path(file: File) -> str:
    """A file with its folder, as the compiler was given it."""
    return f"{file.folder}/{file.name}" if file.folder else file.name


def rows(
    data: bytes, table: list[Section], shown: Callable[[File], str] = _name
) -> list[Row] | None:
    """The rows in address order, None without a line table; DamagedError when it cannot be read.

    shown: how a file is named. InputError beyond a limit.
    """
    programs = _programs(data, table)
    if programs is None:
        return None
    ordered = sorted(row for _, named, program in programs for row in _rows(program, named, shown))
    return list(_words_of_assembler(ordered, lambda at: _is_tensix(data, table, at)))


def _is_tensix(data: bytes, table: list[Section], address: int) -> bool:
    """Whether a word of the text is none of RISC-V, but one that is pushed to the coprocessor."""
    for one in table:
        at = address - one.address
        if one.flags & SHF_ALLOC and 0 <= at <= one.size - _WORD:
            return one.kind != "SHT_NOBITS" and data[one.offset + at] & 3 != 3
    return False


def _words_of_assembler(rows: list[Row], is_word: Callable[[int], bool]) -> Iterator[Row]:
    """The rows; of an assembler's `.word`, for which it writes none, a row of its own each.

    Such words seem to be of the instruction before them. Where there are as many of them as lines
    up to the next instruction, each is of one of these lines. is_word: whether there is one.
    """
    for row, after in pairwise((*rows, None)):
        assert row is not None
        more = (row.hi - row.lo) // _WORD - 1
        between = 0 if after is None or after.file != row.file else after.line - row.line - 1
        places = range(row.lo + _WORD, row.hi, _WORD)
        if not (
            row.file.endswith(_ASSEMBLER) and 0 < more == between and all(map(is_word, places))
        ):
            yield row
            continue
        for n in range(more + 1):
            low = row.lo + _WORD * n
            yield Row(low, row.hi if n == more else low + _WORD, row.file, row.line + n)


def files(data: bytes, table: list[Section]) -> frozenset[File]:
    """The files that the line programs name, those without code too; errors as of `rows`."""
    return frozenset(file for _, named, _ in _programs(data, table) or () for file in named)


def names(
    data: bytes, table: list[Section], shown: Callable[[File], str] = _name
) -> dict[int, list[str]]:
    """By the offset of a line program its files as DW_AT_call_file counts them.

    shown: how a file is named, without its folder where nothing else is said. Errors as of `rows`.
    """
    found = _programs(data, table) or ()
    return {offset: [shown(file) for file in named] for offset, named, _ in found}


def _programs(data: bytes, table: list[Section]) -> Iterator[tuple[int, list[File], Any]] | None:
    """Of each line program its offset, its files by the file register, and pyelftools' reader."""
    line = elf.debug_section(data, table, "line", "LINE_BYTES")
    if line is None:
        return None
    strings = {
        "DW_FORM_line_strp": elf.debug_section(data, table, "line_str", "LINE_BYTES") or b"",
        "DW_FORM_strp": elf.debug_section(data, table, "str", "LINE_BYTES") or b"",
    }
    return _headers(line, strings)


def _headers(line: bytes, strings: dict[str, bytes]) -> Iterator[tuple[int, list[File], Any]]:
    from elftools.common.utils import struct_parse
    from elftools.dwarf.lineprogram import LineProgram

    spent, most = 0, limit("LINE_STEPS")

    def take(count: int) -> None:
        nonlocal spent
        spent += count
        if spent > most:
            check_limit("LINE_STEPS", spent, "line numbers")

    at = 0
    while at + 4 <= len(line):
        wide = line[at : at + 4] == b"\xff\xff\xff\xff"
        size = 8 if wide else 4  # bytes of a length
        first = at + (12 if wide else 4)
        end = first + int.from_bytes(line[first - size : first], "little")
        if end > len(line):
            raise DamagedError("a line program ends beyond its section")
        version = int.from_bytes(line[first : first + 2], "little")
        if not 2 <= version <= 5:
            raise DamagedError(f"a line program of DWARF version {version}")
        stream, structs = CountedBytes(line[at:end], take), _structs(64 if wide else 32)
        with _reading():
            header = struct_parse(structs.Dwarf_lineprog_header, stream, 0)
            named = _files_5(header, strings) if version == 5 else _files_2(header)
        begin = first - at + (4 if version == 5 else 2) + size + header.header_length
        if begin > end - at:
            raise DamagedError("the header of a line program ends beyond it")
        yield at, named, LineProgram(header, stream, structs, begin, end - at)
        at = end


@contextmanager
def _reading() -> Iterator[None]:
    """DamagedError for whatever pyelftools raises of a damaged line program."""
    try:
        yield
    except Exception as problem:
        inner: BaseException | None = problem
        while inner is not None:  # pyelftools wraps what its streams raise
            if isinstance(inner, InputError | DamagedError):
                raise inner from None
            inner = inner.__context__
        raise DamagedError(printable(str(problem) or repr(problem))) from problem


@cache
def _structs(bits: int) -> Any:
    """pyelftools' layouts; a count of entries is as many steps, which may be of no bytes each."""
    from elftools.common.construct_utils import ULEB128
    from elftools.dwarf.structs import DWARFStructs

    class Number(ULEB128):
        def _parse(self, stream: Any, context: Any) -> int:
            value = super()._parse(stream, context)
            if str(self.name).endswith("_count"):
                stream.take(value)
            return value

    class Structs(DWARFStructs):
        _structs_cache: ClassVar[dict[Any, Any]] = {}

        def _create_leb128(self) -> None:
            super()._create_leb128()
            self.Dwarf_uleb128 = Number

    structs = Structs(True, bits, 4)
    assert structs.Dwarf_uleb128 is Number
    return structs


def _file(folder: bytes, raw: bytes) -> File:
    path = raw if raw.startswith(b"/") else folder + b"/" + raw
    above, _, name = path[-LONGEST_NAME:].rpartition(b"/")
    shown = printable(name[:_LONGEST_FILE].decode(errors="replace")) or "?"
    return File(shown, above.decode(errors="replace"))


def _files_2(header: Any) -> list[File]:
    """Files of DWARF 2 to 4, which count from 1, as folders do; 0 is that of the compiler."""
    folders = [b"", *header.include_directory]
    held = ((f.name, f.dir_index) for f in header.file_entry)
    return [_UNKNOWN, *(_file(folders[k] if k < len(folders) else b"", name) for name, k in held)]


def _files_5(header: Any, strings: dict[str, bytes]) -> list[File]:
    """Files of DWARF 5, which count from 0; a name may lie in another section."""

    def texts(kind: str, held: list[Any]) -> list[bytes]:
        forms = {one.content_type: one.form for one in header[f"{kind}_entry_format"]}
        form = forms.get("DW_LNCT_path")
        if form is None:
            return [b""] * len(held)
        if form not in strings:
            return [bytes(one.DW_LNCT_path) for one in held]
        section = strings[form]
        found = []
        for one in held:
            end = section.find(b"\0", one.DW_LNCT_path, one.DW_LNCT_path + LONGEST_NAME)
            found.append(section[one.DW_LNCT_path : end if end >= 0 else None][:LONGEST_NAME])
        return found

    folders = texts("directory", header.directories)
    folder = [one.get("DW_LNCT_directory_index", 0) for one in header.file_names]
    return [
        _file(folders[k] if isinstance(k, int) and k < len(folders) else b"", name)
        for k, name in zip(folder, texts("file_name", header.file_names), strict=True)
    ]


def _rows(program: Any, named: list[File], shown: Callable[[File], str]) -> list[Row]:
    """The rows of a line program: each reaches to the next one of its sequence."""
    with _reading():
        entries = program.get_entries()
    found: list[Row] = []
    last = None
    for state in (entry.state for entry in entries if entry.state is not None):
        address = state.address & _ADDRESSES
        if last is not None and address > last.address & _ADDRESSES:
            held = named[last.file] if last.file < len(named) else _UNKNOWN
            found.append(Row(last.address & _ADDRESSES, address, shown(held), last.line))
        last = None if state.end_sequence else state
    return found


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
            import difflib  # takes milliseconds, which few runs need

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
    def rows(self) -> list[Row]:
        """The line table in the order of addresses, which are those of linking."""
        return self._lines[0]

    @cached_property
    def library(self) -> frozenset[str]:
        """Names of the files that tt-metal or tt-llk has and kernels include."""
        folders: dict[str, list[str]] = defaultdict(list)
        with suppress(InputError, elf.DamagedError):
            for file in files(self.data, elf.sections(self.data, self.path)):
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

    def _named(self) -> Iterator[elf.Symbol]:
        """The symbols without undefined ones, local labels (.L...) and mapping symbols ($x, $d)."""
        for symbol in self._table[0]:
            plain = symbol.section != elf.SHN_UNDEF and symbol.name[:1] not in ("", ".", "$")
            if plain and symbol.kind in _TYPE_ORDER:
                yield symbol

    @cached_property
    def _by_name(self) -> dict[str, set[int]]:
        local: dict[str, set[int]] = defaultdict(set)
        shared: dict[str, set[int]] = defaultdict(set)
        clones: dict[str, set[int]] = defaultdict(set)
        for symbol in self._named():
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
        sections = self._table[1]
        best: dict[int, tuple[tuple[int, int], elf.Symbol]] = {}
        for symbol in self._named():
            if symbol.section >= min(len(sections), elf.SHN_RESERVED):
                continue
            if not sections[symbol.section].flags & elf.SHF_ALLOC:
                continue
            rank = (_TYPE_ORDER[symbol.kind], int(symbol.local))
            if symbol.value not in best or rank < best[symbol.value][0]:
                best[symbol.value] = (rank, symbol)
        return list(_to_spans([best[start][1] for start in sorted(best)], sections))

    @cached_property
    def _lines(self) -> tuple[list[Row], str]:
        """(rows in address order, problem). Lines decorate messages: damage must not stop a run."""
        try:
            found = rows(self.data, elf.sections(self.data, self.path))
        except elf.DamagedError as error:
            return [], f"{self.path}: damaged DWARF line table: {error}"
        except InputError as error:
            return [], f"{self.path}: no source lines: {error.message}; {error.hint}"
        if found is None:
            return [], f"{self.path}: no DWARF line table; compile with -g"
        return found, ""


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
