"""Machine code of entries: linked, packed, loaded."""

import ctypes
import functools
import json
import mmap
import struct
from typing import Any, NamedTuple

from bhemu.errors import Internal

# Machine code that loads without the tools that made it.
#
# An image is a piece of memory as it will run: read-only code and constants, then (from `writable`
# on) the rest, with the places where an address must be filled in.  Everything else in it is
# relative to where it stands.

libraries: list[str] = []  # paths of shared libraries whose functions compiled code calls
_raised = False
_LINE = 64  # bytes of a cache line
_next_start = 0
_alive: list[Any] = []  # what is loaded stays
# What numba's code calls to raise an exception of Python, for an index or a division by zero.
_RAISING = ("numba_", "NRT_", "Py")
_READ_EXECUTE = mmap.PROT_READ | mmap.PROT_EXEC


class Fix(NamedTuple):
    """The 8 bytes at `place` become the address of `symbol`, or of the image if that is "",
    plus `addend`.
    """

    place: int
    symbol: str
    addend: int


class Image(NamedTuple):
    """`content` is loaded at a multiple of 64 bytes; `entry` is where it is called.

    With an `object_of` it is an object file that defines the function of this name and refers to
    the symbols of `fixes`: LLVM loads it where machine_code.py does not know these objects.
    """

    entry: int
    writable: int
    fixes: tuple[Fix, ...]
    content: bytes
    object_of: str = ""

    def packed(self) -> bytes:
        """As bytes for `unpacked`."""
        head = json.dumps([self.entry, self.writable, self.fixes, self.object_of]).encode()
        return len(head).to_bytes(4, "little") + head + self.content


def unpacked(data: bytes) -> Image:
    """The image that `packed` gave."""
    end = 4 + int.from_bytes(data[:4], "little")
    entry, writable, fixes, object_of = json.loads(data[4:end])
    return Image(entry, writable, tuple(Fix(*fix) for fix in fixes), data[end:], object_of)


@ctypes.CFUNCTYPE(ctypes.c_void_p)
def _raise() -> None:
    """Stands for all of _RAISING: the function that raises then returns 0."""
    global _raised
    _raised = True


def surface() -> None:
    """Raise an error if compiled code wanted to raise one since the last call."""
    global _raised
    if _raised:
        _raised = False
        raise Internal("compiled code used an index out of range or divided by zero")


@functools.cache
def _library(path: str | None) -> ctypes.CDLL:
    return ctypes.CDLL(path)


def address(symbol: str) -> int:
    """Where a function of this process, the mathematics library or `libraries` stands."""
    if symbol.startswith(_RAISING):
        return ctypes.cast(_raise, ctypes.c_void_p).value or 0
    for path in (None, *libraries):
        try:
            function = getattr(_library(path), symbol)
        except AttributeError:
            continue
        return ctypes.cast(function, ctypes.c_void_p).value or 0
    raise Internal(f"compiled code calls {symbol}, which is nowhere")


def _load_object(image: Image) -> int:
    """Address of the function of an object file."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    builder = binding.JITLibraryBuilder().add_object_img(image.content).add_current_process()
    for fix in image.fixes:
        builder.import_symbol(fix.symbol, address(fix.symbol))
    builder.export_symbol(image.object_of)
    library = builder.link(binding.create_lljit_compiler(), image.object_of)
    _alive.append(library)
    return int(library[image.object_of])


def load(image: Image) -> int:
    """Address of the function of an image, which stays in memory as long as the process."""
    if image.object_of:
        return _load_object(image)
    size = len(image.content)
    start = _start(image)
    memory = mmap.mmap(-1, size + (mmap.PAGESIZE if start else 0))
    page = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    base = page + start
    memory[start : start + size] = image.content
    for fix in image.fixes:
        target = (address(fix.symbol) if fix.symbol else base) + fix.addend
        memory[start + fix.place : start + fix.place + 8] = target.to_bytes(8, "little")
    length = len(memory) if start else image.writable or size
    if _library(None).mprotect(ctypes.c_void_p(page), ctypes.c_size_t(length), _READ_EXECUTE):
        raise Internal("the system does not let compiled code execute")
    _alive.append(memory)
    return base + image.entry


def _start(image: Image) -> int:
    """Where in its first page an image begins: after the one before, if that were on the page.

    Entries that all began at the start of a page would share the few lines of the processor's
    instruction cache that belong to it. What is written needs pages of its own.
    """
    global _next_start
    if image.writable < len(image.content):
        return 0
    start = _next_start
    _next_start += -(-len(image.content.rstrip(b"\0")) // _LINE) * _LINE
    _next_start %= mmap.PAGESIZE
    return start


# A relocatable object of ELF for x86-64, as LLVM writes it, made into an image.
#
# Sections are laid out in order; references between them are resolved here.  What
# remains for loading are the addresses of other libraries' functions, through one table, and
# absolute addresses in data.

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
        for reference in self.made.relocations:
            name = reference.symbol.name
            called = reference.kind in (_RELATIVE, _CALL) and reference.symbol.section == 0
            if called and name not in self.jumps:
                self._align(8)
                self.jumps[name] = len(self.content)
                self.content += bytes(8)
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
