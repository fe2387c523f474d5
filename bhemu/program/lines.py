"""Line numbers of an ELF, of DWARF 2 to 5, read by pyelftools under a budget.

Line programs stand for themselves: neither .debug_info nor a relocation is needed to read them,
so an ELF linked with --emit-relocs is read like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

from bhemu.errors import InputError
from bhemu.program import elf, limits
from bhemu.program.elf import LONGEST_NAME, SHF_ALLOC, CountedBytes, DamagedError, Section
from bhemu.text import printable

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


def rows(data: bytes, table: list[Section]) -> list[Row] | None:
    """The rows in address order, None without a line table; DamagedError when it cannot be read.

    InputError beyond a limit.
    """
    programs = _programs(data, table)
    if programs is None:
        return None
    ordered = sorted(row for _, named, program in programs for row in _rows(program, named))
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
    for row, behind in pairwise((*rows, None)):
        assert row is not None
        more = (row.hi - row.lo) // _WORD - 1
        between = 0 if behind is None or behind.file != row.file else behind.line - row.line - 1
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


def names(data: bytes, table: list[Section]) -> dict[int, list[str]]:
    """By the offset of a line program its files as DW_AT_call_file counts them, without folders.

    Errors as of `rows`.
    """
    found = _programs(data, table) or ()
    return {offset: [file.name for file in named] for offset, named, _ in found}


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

    spent, most = 0, limits.limit("LINE_STEPS")

    def take(count: int) -> None:
        nonlocal spent
        spent += count
        if spent > most:
            limits.check("LINE_STEPS", spent, "line numbers")

    at = 0
    while at + 4 <= len(line):
        wide = line[at : at + 4] == b"\xff\xff\xff\xff"
        size = 8 if wide else 4  # bytes of a length
        first = at + (12 if wide else 4)
        end = first + int.from_bytes(line[first - size : first], "little")
        if end > len(line):
            raise DamagedError("a line program ends behind its section")
        version = int.from_bytes(line[first : first + 2], "little")
        if not 2 <= version <= 5:
            raise DamagedError(f"a line program of DWARF version {version}")
        stream, structs = CountedBytes(line[at:end], take), _structs(64 if wide else 32)
        with _reading():
            header = struct_parse(structs.Dwarf_lineprog_header, stream, 0)
            named = _files_5(header, strings) if version == 5 else _files_2(header)
        begin = first - at + (4 if version == 5 else 2) + size + header.header_length
        if begin > end - at:
            raise DamagedError("the header of a line program ends behind it")
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


def _rows(program: Any, named: list[File]) -> list[Row]:
    """The rows of a line program: each reaches to the next one of its sequence."""
    with _reading():
        entries = program.get_entries()
    found: list[Row] = []
    last = None
    for state in (entry.state for entry in entries if entry.state is not None):
        address = state.address & _ADDRESSES
        if last is not None and address > last.address & _ADDRESSES:
            held = named[last.file] if last.file < len(named) else _UNKNOWN
            found.append(Row(last.address & _ADDRESSES, address, held.name, last.line))
        last = None if state.end_sequence else state
    return found
