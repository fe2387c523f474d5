"""The tables of an ELF32 file as pyelftools reads them, each bounded before it is read."""

from __future__ import annotations

import io
import os
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from bhemu.program import limits
from bhemu.text import printable

HEADER = struct.Struct("<16sHHIIIIIHHHHHH")
_SYMBOL = struct.Struct("<IIIBBH")  # thousands of them: pyelftools takes 60 us each
_SECTION_SIZE, _SEGMENT_SIZE = 40, 32
_LOCAL = 0  # STB_LOCAL

SHF_ALLOC, SHF_EXECINSTR, SHF_COMPRESSED = 2, 4, 0x800
SHN_UNDEF, SHN_RESERVED, SHN_ABS = 0, 0xFF00, 0xFFF1
_RESERVED = {"SHN_UNDEF": SHN_UNDEF, "SHN_ABS": SHN_ABS}  # any other name: SHN_RESERVED
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


@cache
def _structs() -> Any:
    """pyelftools' layouts of ELF32, little-endian, for RISC-V."""
    from elftools.elf.structs import ELFStructs  # imported late: bhemu must start fast

    structs = ELFStructs(little_endian=True, elfclass=32)
    structs.create_basic_structs()
    structs.create_advanced_structs("ET_EXEC", "EM_RISCV", "ELFOSABI_SYSV")
    return structs


def _rows(data: bytes, layout: Any, at: int, size: int, count: int) -> list[Any]:
    """`count` records of a layout, `size` bytes each, from offset `at`; DamagedError."""
    from elftools.common.exceptions import ELFError
    from elftools.common.utils import struct_parse

    stream = io.BytesIO(data)
    try:
        return [struct_parse(layout, stream, at + i * size) for i in range(count)]
    except ELFError as problem:
        raise DamagedError(printable(str(problem))) from problem


def _enum_name(kind: Any) -> str:
    """The name of an enumerated value; pyelftools leaves unknown ones as numbers."""
    return kind if isinstance(kind, str) else f"{kind:#x}"


def _table(data: bytes, source: str, first: int, want: int, limit: str) -> int:
    """How many headers a table has, which lies in the file; `first`: of its fields in HEADER."""
    if len(data) < HEADER.size or data[:5] != b"\x7fELF\x01":
        raise DamagedError("no ELF32 header")
    header = HEADER.unpack_from(data)
    offset, size, count = header[first], *header[9 if first == 5 else 11 :][:2]
    limits.check(limit, count, source)
    if count and size != want:
        raise DamagedError(f"{source.rpartition(': ')[2]} of {size} bytes")
    if offset + size * count > len(data):
        raise DamagedError(f"{source.rpartition(': ')[2]} end beyond the file")
    return int(count)


def segments(data: bytes, source: str) -> list[Segment]:
    """The program headers; DamagedError, or InputError where there are more than the limit."""
    if not _table(data, f"{source}: program headers", 5, _SEGMENT_SIZE, "ELF_SEGMENTS"):
        return []
    fields = ("p_offset", "p_vaddr", "p_paddr", "p_filesz", "p_memsz", "p_flags")
    at, count = HEADER.unpack_from(data)[5], HEADER.unpack_from(data)[10]
    found = _rows(data, _structs().Elf_Phdr, at, _SEGMENT_SIZE, count)
    return [Segment(_enum_name(h["p_type"]), *(h[name] for name in fields)) for h in found]


def sections(data: bytes, source: str) -> list[Section]:
    """The section headers; DamagedError, or InputError where there are more than the limit."""
    count = _table(data, f"{source}: section headers", 6, _SECTION_SIZE, "ELF_SECTIONS")
    if not count:
        return []
    names_at = HEADER.unpack_from(data)[13]
    if names_at >= count:
        raise DamagedError(f"section names in section {names_at} of {count}")
    fields = ("sh_flags", "sh_addr", "sh_offset", "sh_size", "sh_link")
    headers = _rows(data, _structs().Elf_Shdr, HEADER.unpack_from(data)[6], _SECTION_SIZE, count)
    start, length = headers[names_at]["sh_offset"], headers[names_at]["sh_size"]
    strings = data[start : start + length]
    return [
        Section(
            name_at(strings, h["sh_name"]), _enum_name(h["sh_type"]), *(h[name] for name in fields)
        )
        for h in headers
    ]


def symbols(data: bytes, table: list[Section], source: str) -> Iterator[Symbol]:
    """The entries of .symtab, none without one; DamagedError, or InputError beyond a limit."""
    section = next((s for s in table if s.name == ".symtab"), None)
    if section is None:
        return
    if section.kind != "SHT_SYMTAB":
        raise DamagedError(f"section .symtab is of type {section.kind}")
    if not section.link < len(table) or table[section.link].kind != "SHT_STRTAB":
        raise DamagedError("the symbols have no names")
    count = len(section.bytes_of(data)) // _SYMBOL.size
    limits.check("ELF_SYMBOLS", count, f"{source}: symbols")
    strings = table[section.link].bytes_of(data)
    kinds, places = _names_of_symbols()
    known: dict[int, str] = {}
    left = limits.limit("ELF_NAMES")
    entries = section.bytes_of(data)[: count * _SYMBOL.size]
    for at, value, size, info, _, place in _SYMBOL.iter_unpack(entries):
        name = known.get(at)
        if name is None:
            name = known[at] = name_at(strings, at)
            left -= len(name)
            if left < 0:
                most = limits.limit("ELF_NAMES")
                limits.check("ELF_NAMES", most - left, f"{source}: symbol names")
        if place in places:
            place = _RESERVED.get(places[place], SHN_RESERVED)
        kind = kinds.get(info & 15, f"{info & 15:#x}")
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
    limits.check(limit, len(raw), f"{section.name}: bytes")
    return raw


def _inflated(raw: bytes, size: int, name: str, limit: str) -> bytes:
    limits.check(limit, size, f"{name}: bytes")
    try:
        unpacked = zlib.decompressobj().decompress(raw, size + 1)
    except zlib.error as error:
        raise DamagedError(f"{name}: {error}") from error
    if len(unpacked) != size:
        raise DamagedError(f"{name} does not unpack to {size} bytes")
    return unpacked


@cache
def _names_of_symbols() -> tuple[dict[int, str], dict[int, str]]:
    """Names of the types of symbols and of the sections that are none, by number."""
    from elftools.elf import enums

    kinds, places = enums.ENUM_ST_INFO_TYPE, enums.ENUM_ST_SHNDX
    return _by_number(kinds), _by_number(places)


def _by_number(names: Mapping[str, int]) -> dict[int, str]:
    return {number: name for name, number in names.items() if isinstance(number, int)}


def name_at(strings: bytes, at: int) -> str:
    """The NUL-terminated name at offset `at`, cut where it is longer than any real one."""
    if at > len(strings):
        raise DamagedError(f"a name at {at:#x} of {len(strings):#x} bytes of names")
    end = strings.find(b"\0", at, at + LONGEST_NAME)
    if end < 0:
        end = min(at + LONGEST_NAME, len(strings))
    return printable(strings[at:end].decode(errors="replace"))
