"""The tables of an ELF32 file, each bounded before it is read, and sections for pyelftools."""

from __future__ import annotations

import io
import os
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from bhemu.program import files
from bhemu.text import printable

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


def _table(data: bytes, source: str, first: int, want: int, limit: str) -> int:
    """How many headers a table has, which lies in the file; `first`: of its fields in HEADER."""
    if len(data) < HEADER.size or data[:5] != b"\x7fELF\x01":
        raise DamagedError("no ELF32 header")
    header = HEADER.unpack_from(data)
    offset, size, count = header[first], *header[9 if first == 5 else 11 :][:2]
    files.check_limit(limit, count, source)
    if count and size != want:
        raise DamagedError(f"{source.rpartition(': ')[2]} of {size} bytes")
    if offset + size * count > len(data):
        raise DamagedError(f"{source.rpartition(': ')[2]} end beyond the file")
    return int(count)


def segments(data: bytes, source: str) -> list[Segment]:
    """The program headers; DamagedError, or InputError where there are more than the limit."""
    if not _table(data, f"{source}: program headers", 5, _SEGMENT.size, "ELF_SEGMENTS"):
        return []
    at, count = HEADER.unpack_from(data)[5], HEADER.unpack_from(data)[10]
    rows = _SEGMENT.iter_unpack(data[at : at + count * _SEGMENT.size])
    return [Segment(_name_of(kind, _SEGMENT_KINDS), *rest) for kind, *rest in rows]


def sections(data: bytes, source: str) -> list[Section]:
    """The section headers; DamagedError, or InputError where there are more than the limit."""
    count = _table(data, f"{source}: section headers", 6, _SECTION.size, "ELF_SECTIONS")
    if not count:
        return []
    names_at = HEADER.unpack_from(data)[13]
    if names_at >= count:
        raise DamagedError(f"section names in section {names_at} of {count}")
    at = HEADER.unpack_from(data)[6]
    rows = [*_SECTION.iter_unpack(data[at : at + count * _SECTION.size])]
    start, length = rows[names_at][4:6]
    strings = data[start : start + length]
    return [
        Section(name_at(strings, name), _name_of(kind, _SECTION_KINDS), *rest)
        for name, kind, *rest in rows
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
    files.check_limit("ELF_SYMBOLS", count, f"{source}: symbols")
    strings = table[section.link].bytes_of(data)
    known: dict[int, str] = {}
    left = files.limit("ELF_NAMES")
    entries = section.bytes_of(data)[: count * _SYMBOL.size]
    for at, value, size, info, _, place in _SYMBOL.iter_unpack(entries):
        name = known.get(at)
        if name is None:
            name = known[at] = name_at(strings, at)
            left -= len(name)
            if left < 0:
                most = files.limit("ELF_NAMES")
                files.check_limit("ELF_NAMES", most - left, f"{source}: symbol names")
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


def name_at(strings: bytes, at: int) -> str:
    """The NUL-terminated name at offset `at`, cut where it is longer than any real one."""
    if at > len(strings):
        raise DamagedError(f"a name at {at:#x} of {len(strings):#x} bytes of names")
    end = strings.find(b"\0", at, at + LONGEST_NAME)
    if end < 0:
        end = min(at + LONGEST_NAME, len(strings))
    return printable(strings[at:end].decode(errors="replace"))
