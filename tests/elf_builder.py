"""Minimal ELF files for tests, built field by field so that each one can be wrong."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

PT_LOAD = 1
PT_DYNAMIC = 2
PT_RISCV_ATTRIBUTES = 0x7000_0003
LOCAL = 0xFFB0_0000
TYPES = {"NOTYPE": 0, "OBJECT": 1, "FUNC": 2, "FILE": 4}
SHN_ABS = 0xFFF1


@dataclass
class Seg:
    """One program header; `paddr` and `memsz` follow from the rest unless given."""

    vaddr: int
    data: bytes = b"\x13\x00\x00\x00"
    paddr: int | None = None
    memsz: int | None = None
    flags: int = 5
    kind: int = PT_LOAD


@dataclass
class Sec:
    """One section that occupies memory but no bytes of the file."""

    name: str
    addr: int
    size: int = 0x100


@dataclass
class Raw:
    """One section of bytes in the file that occupies no memory."""

    name: str
    data: bytes
    flags: int = 0
    kind: int = 1


@dataclass
class Sym:
    """One symbol; `section` is a section's name, or None for an absolute symbol."""

    name: str
    value: int
    size: int = 0
    kind: str = "FUNC"
    section: str | None = ".text"
    shared: bool = True


@dataclass
class Elf:
    """A whole ELF32 file; `bytes(elf)` builds it."""

    segments: list[Seg] = field(default_factory=list)
    sections: list[Sec] = field(default_factory=list)
    symbols: list[Sym] = field(default_factory=list)
    raw: list[Raw] = field(default_factory=list)
    entry: int = 0x1_0000
    ei_class: int = 1
    ei_data: int = 1
    machine: int = 243
    kind: int = 2

    def _tables(self, start: int) -> tuple[bytes, list[tuple[int, ...]]]:
        """(contents of string and symbol tables, section headers)."""
        names = b"\0" + b"\0".join(s.name.encode() for s in self.symbols) + b"\0"
        index = {section.name: i + 1 for i, section in enumerate(self.sections)}
        symbols = bytes(16)
        for sym in self.symbols:
            at = names.index(b"\0" + sym.name.encode() + b"\0") + 1
            info = (int(sym.shared) << 4) | TYPES[sym.kind]
            where = SHN_ABS if sym.section is None else index[sym.section]
            symbols += struct.pack("<IIIBBH", at, sym.value, sym.size, info, 0, where)
        titles = [s.name for s in self.sections] + [".symtab", ".strtab", ".shstrtab"]
        titles += [raw.name for raw in self.raw]
        shstr = b"\0" + b"\0".join(t.encode() for t in titles) + b"\0"
        title = [shstr.index(b"\0" + t.encode() + b"\0") + 1 for t in titles]
        n = len(self.sections)
        headers: list[tuple[int, ...]] = [(0,) * 10]
        for i, section in enumerate(self.sections):  # NOBITS, ALLOC
            headers.append((title[i], 8, 2, section.addr, start, section.size, 0, 0, 4, 0))
        strings = start + len(symbols)
        end = strings + len(names)
        headers.append((title[n], 2, 0, 0, start, len(symbols), n + 2, 1, 4, 16))
        headers.append((title[n + 1], 3, 0, 0, strings, len(names), 0, 0, 1, 0))
        headers.append((title[n + 2], 3, 0, 0, end, len(shstr), 0, 0, 1, 0))
        contents = symbols + names + shstr
        for raw, at in zip(self.raw, title[n + 3 :], strict=True):
            place = start + len(contents)
            headers.append((at, raw.kind, raw.flags, 0, place, len(raw.data), 0, 0, 1, 0))
            contents += raw.data
        return contents, headers

    def __bytes__(self) -> bytes:
        offset = 52 + 32 * len(self.segments)
        program, contents = b"", b""
        for seg in self.segments:
            paddr = seg.vaddr if seg.paddr is None else seg.paddr
            memsz = len(seg.data) if seg.memsz is None else seg.memsz
            at = offset + len(contents)
            fields = (seg.kind, at, seg.vaddr, paddr, len(seg.data), memsz, seg.flags, 4)
            program += struct.pack("<8I", *fields)
            contents += seg.data
        tables, headers = self._tables(offset + len(contents))
        shoff = offset + len(contents) + len(tables)
        ident = b"\x7fELF" + bytes([self.ei_class, self.ei_data, 1]) + bytes(9)
        head = struct.pack(
            "<16sHHIIIIIHHHHHH",
            *(ident, self.kind, self.machine, 1, self.entry, 52, shoff, 0),
            *(52, 32, len(self.segments), 40, len(headers), len(self.sections) + 3),
        )
        return (
            head + program + contents + tables + b"".join(struct.pack("<10I", *h) for h in headers)
        )
