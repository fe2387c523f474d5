"""The tables of an ELF32 file: headers, sections and symbols, each bounded before it is read."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from bhemu import limits
from bhemu.text import printable

HEADER = struct.Struct("<16sHHIIIIIHHHHHH")
_SECTION = struct.Struct("<10I")
_SEGMENT = struct.Struct("<8I")
_SYMBOL = struct.Struct("<IIIBBH")

SHT_NULL, SHT_SYMTAB, SHT_STRTAB, SHT_NOBITS = 0, 2, 3, 8
SHF_ALLOC, SHF_COMPRESSED = 2, 0x800
SHN_UNDEF, SHN_RESERVED, SHN_ABS = 0, 0xFF00, 0xFFF1
STT_NOTYPE, STT_OBJECT, STT_FUNC = 0, 1, 2
PT_LOAD = 1
DYNAMIC = {2: "PT_DYNAMIC", 3: "PT_INTERP", 7: "PT_TLS"}
LONGEST_NAME = 4096


class DamagedError(ValueError):
    """The file contradicts itself."""


class Section(NamedTuple):
    """One section header; `name` is printable."""

    name: str
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int

    def bytes_of(self, data: bytes) -> bytes:
        """The section's bytes in the file."""
        if self.kind == SHT_NOBITS:
            return b""
        if self.offset + self.size > len(data):
            raise DamagedError(f"section {self.name} ends behind the file")
        return data[self.offset : self.offset + self.size]


class Segment(NamedTuple):
    """One program header."""

    kind: int
    offset: int
    vaddr: int
    paddr: int
    filesz: int
    memsz: int
    flags: int
    align: int


class Symbol(NamedTuple):
    """One entry of .symtab; `name` is printable."""

    name: str
    value: int
    size: int
    kind: int
    local: bool
    section: int


def segments(data: bytes, what: str) -> list[Segment]:
    """The program headers; DamagedError, or InputError where there are more than the limit."""
    header = HEADER.unpack_from(data)
    offset, size, count = header[5], header[9], header[10]
    limits.check("ELF_SEGMENTS", count, f"{what}: program headers")
    if count and size != _SEGMENT.size:
        raise DamagedError(f"program headers of {size} bytes")
    if offset + size * count > len(data):
        raise DamagedError("program headers end behind the file")
    return [Segment(*_SEGMENT.unpack_from(data, offset + i * size)) for i in range(count)]


def sections(data: bytes, what: str) -> list[Section]:
    """The section headers; DamagedError, or InputError where there are more than the limit."""
    if len(data) < HEADER.size or data[:5] != b"\x7fELF\x01":
        raise DamagedError("no ELF32 header")
    header = HEADER.unpack_from(data)
    offset, size, count, names_at = header[6], *header[11:]
    limits.check("ELF_SECTIONS", count, f"{what}: section headers")
    if count and size != _SECTION.size:
        raise DamagedError(f"section headers of {size} bytes")
    if offset + size * count > len(data):
        raise DamagedError("section headers end behind the file")
    rows = [_SECTION.unpack_from(data, offset + i * size) for i in range(count)]
    if not count:
        return []
    if names_at >= count:
        raise DamagedError(f"section names in section {names_at} of {count}")
    start, length = rows[names_at][4:6]
    strings = data[start : start + length]
    return [Section(name_at(strings, row[0]), *row[1:7]) for row in rows]


def symbols(data: bytes, table: list[Section], what: str) -> Iterator[Symbol]:
    """The entries of .symtab, none without one; DamagedError, or InputError beyond a limit."""
    section = next((s for s in table if s.name == ".symtab"), None)
    if section is None:
        return
    if section.kind != SHT_SYMTAB:
        raise DamagedError(f"section .symtab is of type {section.kind}")
    if not section.link < len(table) or table[section.link].kind != SHT_STRTAB:
        raise DamagedError("the symbols have no names")
    entries = section.bytes_of(data)
    limits.check("ELF_SYMBOLS", len(entries) // _SYMBOL.size, f"{what}: symbols")
    strings = table[section.link].bytes_of(data)
    known: dict[int, str] = {}
    left = limits.limit("ELF_NAMES")
    whole = len(entries) - len(entries) % _SYMBOL.size
    for at, value, size, info, _, index in _SYMBOL.iter_unpack(entries[:whole]):
        name = known.get(at)
        if name is None:
            name = known[at] = name_at(strings, at)
            left -= len(name)
            if left < 0:
                most = limits.limit("ELF_NAMES")
                limits.check("ELF_NAMES", most - left, f"{what}: symbol names")
        yield Symbol(name, value, size, info & 15, info >> 4 == 0, index)


def name_at(strings: bytes, at: int) -> str:
    """The NUL-terminated name at offset `at`, cut where it is longer than any real one."""
    if at > len(strings):
        raise DamagedError(f"a name at {at:#x} of {len(strings):#x} bytes of names")
    end = strings.find(b"\0", at, at + LONGEST_NAME)
    if end < 0:
        end = min(at + LONGEST_NAME, len(strings))
    return printable(strings[at:end].decode(errors="replace"))
