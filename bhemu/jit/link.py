"""A relocatable object of ELF for x86-64, as LLVM writes it, made into an image.

Sections are laid out one behind the other; references between them are resolved here.  What
remains for loading are the addresses of other libraries' functions, through one table, and
absolute addresses in data.
"""

import mmap
import struct
from typing import NamedTuple

from bhemu.errors import Internal
from bhemu.jit.machine_code import Fix, Image

_PROGBITS, _SYMTAB, _RELA, _NOBITS = 1, 2, 4, 8
_WRITE, _ALLOC, _EXECUTE = 1, 2, 4
_COMMON = 0xFFF2
_ABSOLUTE, _RELATIVE, _CALL = 1, 2, 4  # R_X86_64_64, PC32, PLT32
_TABLE = (9, 41, 42)  # GOTPCREL, GOTPCRELX, REX_GOTPCRELX
_JUMP = bytes.fromhex("ff25")  # jmp *offset(%rip)
_SKIPPED = (".eh_frame",)  # nothing unwinds through compiled code


class _Section(NamedTuple):
    name: str
    kind: int
    flags: int
    content: bytes
    size: int
    link: int
    info: int
    align: int


class _Symbol(NamedTuple):
    name: str
    section: int  # 0: of another library
    value: int
    size: int


class _Relocation(NamedTuple):
    section: int
    place: int
    kind: int
    symbol: _Symbol
    addend: int


def _name(table: bytes, at: int) -> str:
    return table[at : table.index(b"\0", at)].decode()


class Object:
    """What an object file holds."""

    def __init__(self, data: bytes) -> None:
        if data[:6] != b"\x7fELF\x02\x01" or data[18:20] != b"\x3e\x00":
            raise Internal("compiled code is no object for x86-64")
        start = struct.unpack_from("<Q", data, 40)[0]
        width, count, names = struct.unpack_from("<HHH", data, 58)
        raw = [struct.unpack_from("<IIQQQQIIQQ", data, start + i * width) for i in range(count)]
        table = data[raw[names][4] : raw[names][4] + raw[names][5]]
        self.sections = [
            _Section(
                name=_name(table, name),
                kind=kind,
                flags=flags,
                content=b"" if kind == _NOBITS else data[at : at + size],
                size=size,
                link=link,
                info=info,
                align=max(align, 1),
            )
            for name, kind, flags, _, at, size, link, info, align, _ in raw
        ]
        self.symbols = self._symbols()
        self.relocations = self._relocations()

    def _symbols(self) -> list[_Symbol]:
        found = []
        for section in self.sections:
            if section.kind == _SYMTAB:
                names = self.sections[section.link].content
                for name, _, _, where, value, size in struct.iter_unpack(
                    "<IBBHQQ", section.content
                ):
                    found.append(_Symbol(_name(names, name), where, value, size))
        return found

    def _relocations(self) -> list[_Relocation]:
        found = []
        for section in self.sections:
            if section.kind == _RELA and self.loaded(section.info):
                for place, info, addend in struct.iter_unpack("<QQq", section.content):
                    symbol = self.symbols[info >> 32]
                    kind = info & 0xFFFFFFFF
                    found.append(_Relocation(section.info, place, kind, symbol, addend))
        return found

    def loaded(self, number: int) -> bool:
        """Whether a section becomes part of the image."""
        section = self.sections[number]
        kept = section.kind in (_PROGBITS, _NOBITS) and section.flags & _ALLOC
        return bool(kept) and section.name not in _SKIPPED


class _Layout:
    """Places sections and resolves references; the last part is a table of addresses."""

    def __init__(self, made: Object) -> None:
        self.made = made
        self.content = bytearray()
        self.start: dict[int, int] = {}  # of a section
        self.common: dict[str, int] = {}
        self.slots: dict[tuple[str, int], int] = {}  # (symbol or "", offset): place in the table
        self.jumps: dict[str, int] = {}
        self.fixes: list[Fix] = []
        self._place(writable=False)
        self._jumps()
        self._align(mmap.PAGESIZE)
        self.writable = len(self.content)
        self._place(writable=True)
        for symbol in made.symbols:
            if symbol.section == _COMMON:
                self._align(symbol.value)
                self.common[symbol.name] = len(self.content)
                self.content += bytes(symbol.size)
        self._align(8)
        self._resolve()

    def _align(self, size: int) -> None:
        self.content += bytes(-len(self.content) % size)

    def _place(self, writable: bool) -> None:
        for number, section in enumerate(self.made.sections):
            if self.made.loaded(number) and bool(section.flags & _WRITE) == writable:
                self._align(section.align)
                self.start[number] = len(self.content)
                self.content += section.content or bytes(section.size)

    def _jumps(self) -> None:
        """Room for a jump to each function of another library that is called directly."""
        for reference in self.made.relocations:
            name = reference.symbol.name
            called = reference.kind in (_RELATIVE, _CALL) and reference.symbol.section == 0
            if called and name not in self.jumps:
                self._align(8)
                self.jumps[name] = len(self.content)
                self.content += bytes(8)

    def where(self, symbol: _Symbol) -> tuple[str, int]:
        """(symbol of another library, 0) or ("", offset in the image)."""
        if symbol.section == 0:
            return symbol.name, 0
        if symbol.section == _COMMON:
            return "", self.common[symbol.name]
        return "", self.start[symbol.section] + symbol.value

    def _slot(self, target: tuple[str, int]) -> int:
        """Place in the table that holds an address."""
        if target not in self.slots:
            self.slots[target] = len(self.content)
            self.fixes.append(Fix(len(self.content), *target))
            self.content += bytes(8)
        return self.slots[target]

    def _resolve(self) -> None:
        for name, at in self.jumps.items():
            offset = self._slot((name, 0)) - (at + 6)
            self.content[at : at + 6] = _JUMP + offset.to_bytes(4, "little", signed=True)
        for reference in self.made.relocations:
            place = self.start[reference.section] + reference.place
            name, offset = self.where(reference.symbol)
            if reference.kind == _ABSOLUTE:
                if place < self.writable:
                    raise Internal("compiled code has an address among its constants")
                self.fixes.append(Fix(place, name, offset + reference.addend))
                continue
            if reference.kind in _TABLE:
                target = self._slot((name, offset))
            elif reference.kind in (_RELATIVE, _CALL):
                target = self.jumps[name] if name else offset
            else:
                raise Internal(f"compiled code has a relocation of type {reference.kind}")
            distance = target + reference.addend - place
            self.content[place : place + 4] = distance.to_bytes(4, "little", signed=True)


def image(data: bytes, function: str) -> Image:
    """The image of an object file, called at a function."""
    made = Object(data)
    layout = _Layout(made)
    entry = next(s for s in made.symbols if s.name == function and s.section)
    return Image(
        layout.where(entry)[1], layout.writable, tuple(layout.fixes), bytes(layout.content)
    )
