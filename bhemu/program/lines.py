"""Line numbers of an ELF: .debug_line of DWARF 2 to 5, read under a budget.

Line programs stand for themselves: neither .debug_info nor a relocation is needed to read them,
so an ELF linked with --emit-relocs is read like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

from bhemu.program import elf, limits
from bhemu.program.elf import LONGEST_NAME, SHF_ALLOC, DamagedError, Section
from bhemu.text import printable

_COPY, _ADVANCE_PC, _ADVANCE_LINE, _SET_FILE = 1, 2, 3, 4
_CONST_ADD_PC, _FIXED_ADVANCE_PC = 8, 9
_END_SEQUENCE, _SET_ADDRESS = 1, 2
_PATH, _FOLDER = 1, 2  # DW_LNCT_path, DW_LNCT_directory_index
_LONGEST_LEB = 10
_LONGEST_FILE = 255
_FIXED = {0x0B: 1, 0x05: 2, 0x06: 4, 0x07: 8, 0x1E: 16}  # DW_FORM_data1 .. data16
_STRING, _BLOCK, _UDATA, _STRP, _LINE_STRP = 0x08, 0x09, 0x0F, 0x0E, 0x1F
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


class _Budget:
    """How much of LINE_STEPS is spent."""

    def __init__(self) -> None:
        self.most, self.spent = limits.limit("LINE_STEPS"), 0

    def take(self, count: int = 1) -> None:
        """Spend; InputError when that is too much."""
        self.spent += count
        if self.spent > self.most:
            limits.check("LINE_STEPS", self.spent, "line numbers")


class _Reader:
    """Values one behind the other; DamagedError at the end of `data`."""

    def __init__(self, data: bytes, at: int, end: int) -> None:
        self.data, self.at, self.end = data, at, end

    def take(self, size: int) -> int:
        """An unsigned little-endian integer."""
        at, self.at = self.at, self.at + size
        if self.at > self.end:
            raise DamagedError("a value ends behind its unit")
        return int.from_bytes(self.data[at : self.at], "little")

    def uleb(self) -> int:
        """An unsigned LEB128 number."""
        value = 0
        for i in range(_LONGEST_LEB):
            byte = self.take(1)
            value |= (byte & 0x7F) << 7 * i
            if byte < 0x80:
                return value
        raise DamagedError("a LEB128 number without end")

    def sleb(self) -> int:
        """A signed LEB128 number."""
        begin = self.at
        value = self.uleb()
        bits = 7 * (self.at - begin)
        return value - (1 << bits) if value >> (bits - 1) else value

    def skip(self, size: int) -> None:
        """Leave `size` bytes out."""
        self.at += size
        if self.at > self.end:
            raise DamagedError("a value ends behind its unit")

    def string(self) -> bytes:
        """Bytes up to a NUL."""
        end = self.data.find(b"\0", self.at, self.end)
        if end < 0:
            raise DamagedError("a name without end")
        begin, self.at = self.at, end + 1
        return self.data[begin:end]


class _Unit(NamedTuple):
    """What the header of a line program says; `files`: by the value of the file register."""

    offset: int
    step: int
    line_base: int
    line_range: int
    lengths: bytes
    files: list[File]


def rows(data: bytes, table: list[Section]) -> list[Row] | None:
    """The rows in address order, None without a line table; DamagedError when it cannot be read.

    InputError beyond a limit.
    """
    budget = _Budget()
    found = _units(data, table, budget)
    if found is None:
        return None
    ordered = sorted(row for one in found for row in _run(*one, budget))
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
    return frozenset(
        file for _, unit in _units(data, table, _Budget()) or () for file in unit.files
    )


def names(data: bytes, table: list[Section]) -> dict[int, list[str]]:
    """By the offset of a line program its files as DW_AT_call_file counts them, without folders.

    Errors as of `rows`.
    """
    found = _units(data, table, _Budget()) or ()
    return {unit.offset: [file.name for file in unit.files] for _, unit in found}


def _units(
    data: bytes, table: list[Section], budget: _Budget
) -> Iterator[tuple[_Reader, _Unit]] | None:
    """Each line program, to be read from its first opcode on, and what its header says."""
    line = elf.debug_section(data, table, "line", "LINE_BYTES")
    if line is None:
        return None
    strings = {
        _LINE_STRP: elf.debug_section(data, table, "line_str", "LINE_BYTES") or b"",
        _STRP: elf.debug_section(data, table, "str", "LINE_BYTES") or b"",
    }
    return _headers(line, strings, budget)


def _headers(
    line: bytes, strings: dict[int, bytes], budget: _Budget
) -> Iterator[tuple[_Reader, _Unit]]:
    at = 0
    while at + 4 <= len(line):
        budget.take()
        begin = at
        at, unit = _unit(line, at)
        yield _header(begin, unit, strings, budget)


def _unit(line: bytes, at: int) -> tuple[int, tuple[_Reader, int]]:
    """(offset behind the unit at `at`, (its contents, bytes of an offset in it))."""
    reader = _Reader(line, at, len(line))
    length, wide = reader.take(4), 4
    if length == 0xFFFF_FFFF:
        length, wide = reader.take(8), 8
    end = reader.at + length
    if end > len(line):
        raise DamagedError("a line program ends behind its section")
    return end, (_Reader(line, reader.at, end), wide)


def _header(
    begin: int, unit: tuple[_Reader, int], strings: dict[int, bytes], budget: _Budget
) -> tuple[_Reader, _Unit]:
    reader, wide = unit
    version = reader.take(2)
    if not 2 <= version <= 5:
        raise DamagedError(f"a line program of DWARF version {version}")
    if version == 5:
        reader.skip(2)  # sizes of an address and of a segment selector
    program = reader.take(wide)
    program += reader.at
    if program > reader.end:
        raise DamagedError("the header of a line program ends behind it")
    step = reader.take(1)
    if version >= 4:
        reader.skip(1)  # operations per instruction: these cores have no VLIW
    reader.skip(1)
    base = (reader.take(1) ^ 0x80) - 0x80
    span, opcodes = reader.take(1), reader.take(1)
    lengths = bytes(reader.take(1) for _ in range(1, opcodes))
    header = _Reader(reader.data, reader.at, program)
    named = _names_5(header, wide, strings, budget) if version == 5 else _names_2(header, budget)
    if not span:
        raise DamagedError("a line program with a line range of 0")
    reader.at = program
    return reader, _Unit(begin, step, base, span, lengths, named)


def _file(folder: bytes, raw: bytes) -> File:
    path = raw if raw.startswith(b"/") else folder + b"/" + raw
    above, _, name = path[-LONGEST_NAME:].rpartition(b"/")
    shown = printable(name[:_LONGEST_FILE].decode(errors="replace")) or "?"
    return File(shown, above.decode(errors="replace"))


def _names_2(reader: _Reader, budget: _Budget) -> list[File]:
    """Names of DWARF 2 to 4: files count from 1, folders too; 0 is that of the compiler."""
    folders = [b""]
    while folder := reader.string():
        budget.take()
        folders.append(folder)
    found = [_UNKNOWN]
    while name := reader.string():
        budget.take()
        k = reader.uleb()
        found.append(_file(folders[k] if k < len(folders) else b"", name))
        for _ in range(2):
            reader.uleb()
    return found


def _names_5(reader: _Reader, wide: int, strings: dict[int, bytes], budget: _Budget) -> list[File]:
    """Names of DWARF 5: files count from 0; a name may lie in another section."""
    folders = _table_5(reader, wide, budget)
    places = _table_5(reader, wide, budget)

    def text(held: bytes | int, form: int) -> bytes:
        if isinstance(held, bytes):
            return held
        section = strings.get(form, b"")
        end = section.find(b"\0", held, held + LONGEST_NAME)
        return section[held : end if end >= 0 else held + LONGEST_NAME]

    above = [text(held, form) for held, form, _ in folders]
    return [
        _file(above[k] if k < len(above) else b"", text(held, form)) for held, form, k in places
    ]


def _table_5(reader: _Reader, wide: int, budget: _Budget) -> list[tuple[bytes | int, int, int]]:
    """(name or its offset, form, number of its folder) of all in a table of folders or files."""
    formats = [(reader.uleb(), reader.uleb()) for _ in range(reader.take(1))]
    count = reader.uleb()
    if not formats:
        return []
    budget.take(count * len(formats))
    found = []
    for _ in range(count):
        path: tuple[bytes | int, int] = (b"", _STRING)
        folder = 0
        for content, form in formats:
            value = _value(reader, form, wide)
            if content == _PATH:
                path = (value, form)
            elif content == _FOLDER and isinstance(value, int):
                folder = value
        found.append((*path, folder))
    return found


def _value(reader: _Reader, form: int, wide: int) -> bytes | int:
    if form == _STRING:
        return reader.string()
    if form in (_STRP, _LINE_STRP):
        return reader.take(wide)
    if form == _UDATA:
        return reader.uleb()
    if form == _BLOCK:
        reader.skip(reader.uleb())
        return 0
    if form in _FIXED:
        return reader.take(_FIXED[form])
    raise DamagedError(f"a name of form {form:#x}")


def _run(reader: _Reader, unit: _Unit, budget: _Budget) -> Iterator[Row]:
    """The rows of a line program: each reaches to the next one of its sequence."""
    first = len(unit.lengths) + 1
    address, file, line = 0, 1, 1
    last: tuple[int, int, int] | None = None
    while reader.at < reader.end:
        budget.take()
        opcode = reader.take(1)
        ended = False
        if opcode >= first:
            advance, delta = divmod(opcode - first, unit.line_range)
            address = address + advance * unit.step & _ADDRESSES
            line += unit.line_base + delta
        elif opcode == 0:
            size = reader.uleb()
            behind = reader.at + size
            kind = reader.take(1) if size else 0
            if kind == _SET_ADDRESS:
                address = reader.take(min(size - 1, 8)) & _ADDRESSES
            reader.at = behind
            ended = kind == _END_SEQUENCE
            if not ended:
                continue
        elif opcode != _COPY:
            address, file, line = _standard(reader, unit, opcode, (address, file, line))
            continue
        if last is not None and address > last[0]:
            held = unit.files[last[1]] if last[1] < len(unit.files) else _UNKNOWN
            yield Row(last[0], address, held.name, last[2])
        last = None if ended else (address, file, line)
        if ended:
            address, file, line = 0, 1, 1


def _standard(
    reader: _Reader, unit: _Unit, opcode: int, state: tuple[int, int, int]
) -> tuple[int, int, int]:
    """(address, file, line) after a standard opcode that adds no row."""
    address, file, line = state
    if opcode == _ADVANCE_PC:
        address += reader.uleb() * unit.step
    elif opcode == _ADVANCE_LINE:
        line += reader.sleb()
    elif opcode == _SET_FILE:
        file = reader.uleb()
    elif opcode == _CONST_ADD_PC:
        address += (255 - len(unit.lengths) - 1) // unit.line_range * unit.step
    elif opcode == _FIXED_ADVANCE_PC:
        address += reader.take(2)
    else:
        for _ in range(unit.lengths[opcode - 1]):
            reader.uleb()
    return address & _ADDRESSES, file, line
