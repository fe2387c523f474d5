"""Machine code of entries: linked, packed, loaded."""

import ctypes
import functools
import json
import mmap
import os
import struct
import sys
from typing import Any, ClassVar, NamedTuple

from bhemu.errors import Internal

# Machine code that loads without the tools that made it.
#
# An image is a piece of memory as it will run, code and constants, with the places where an address
# must be filled in.  Everything else in it is relative to where it stands.  Compiled code writes to
# no memory of its own.

libraries: list[str] = []  # paths of shared libraries whose functions compiled code calls
_raised = False
_next_start = 0
_alive: list[Any] = []  # what is loaded stays
# What numba's code calls to raise an exception of Python, for an index or a division by zero.
_RAISING = ("numba_", "NRT_", "Py")
_READ_EXECUTE = mmap.PROT_READ | mmap.PROT_EXEC
_MAP_JIT = 0x800  # of macOS


class Fix(NamedTuple):
    """The 8 bytes at `place` become the address of `symbol`, or of the image if that is "",
    plus `addend`.
    """

    place: int
    symbol: str
    addend: int


class Image(NamedTuple):
    """`content` is loaded at a multiple of `align` bytes; `entry` is where it is called."""

    entry: int
    align: int
    fixes: tuple[Fix, ...]
    content: bytes

    def packed(self) -> bytes:
        """As bytes for `unpacked`."""
        head = json.dumps([self.entry, self.align, self.fixes]).encode()
        return len(head).to_bytes(4, "little") + head + self.content


def unpacked(data: bytes) -> Image:
    """The image that `packed` gave."""
    end = 4 + int.from_bytes(data[:4], "little")
    entry, align, fixes = json.loads(data[4:end])
    return Image(entry, align, tuple(Fix(*fix) for fix in fixes), data[end:])


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


def load(image: Image) -> int:
    """Address of the function of an image, which stays in memory as long as the process."""
    start = _start(image)
    end = start + len(image.content)
    if sys.platform == "darwin":  # never run
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANON | _MAP_JIT
        memory = mmap.mmap(-1, end, flags, mmap.PROT_WRITE | _READ_EXECUTE)
    else:
        memory = mmap.mmap(-1, end)
    page = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    base = page + start
    content = bytearray(image.content)
    for fix in image.fixes:
        target = (address(fix.symbol) if fix.symbol else base) + fix.addend
        content[fix.place : fix.place + 8] = target.to_bytes(8, "little")
    # Write the code, and let it be executed and no longer written.
    system = _library(None)
    if sys.platform == "darwin":  # never run
        system.pthread_jit_write_protect_np(0)
        memory[start:end] = content
        system.pthread_jit_write_protect_np(1)
        system.sys_icache_invalidate(ctypes.c_void_p(page), ctypes.c_size_t(end))
    else:
        memory[start:end] = content
        if system.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(len(memory)), _READ_EXECUTE):
            raise Internal("the system does not let compiled code execute")
        if os.uname().machine == "aarch64":  # its caches of instructions do not see writes
            clear = _library("libgcc_s.so.1").__clear_cache
            clear(ctypes.c_void_p(page), ctypes.c_void_p(page + end))
    _alive.append(memory)
    return base + image.entry


def _start(image: Image) -> int:
    """Where in its first page an image begins: after the one before, if that were on the page.

    Entries that all began at the start of a page would share the few lines of the processor's
    instruction cache that belong to it.
    """
    global _next_start
    start = -(-_next_start // image.align) * image.align
    _next_start = (start + len(image.content.rstrip(b"\0"))) % mmap.PAGESIZE
    return start % mmap.PAGESIZE


# A relocatable object of ELF for x86-64 or AArch64, as LLVM writes it, made into an image.
#
# Sections are laid out in order; references between them are resolved here.  What
# remains for loading are the addresses of other libraries' functions, through one table, and
# absolute addresses in data.

_PROGBITS, _SYMTAB, _RELA, _NOBITS = 1, 2, 4, 8
_ALLOC = 2
_COMMON = 0xFFF2
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
        number = int.from_bytes(data[18:20], "little")
        if data[:6] != b"\x7fELF\x02\x01" or number not in MACHINES:
            raise Internal("compiled code is no object for x86-64 or AArch64")
        self.machine = MACHINES[number]
        start = struct.unpack_from("<Q", data, 40)[0]
        width, count, names = struct.unpack_from("<HHH", data, 58)
        raw = [struct.unpack_from("<IIQQQQIIQQ", data, start + i * width) for i in range(count)]
        table = data[raw[names][4] : raw[names][4] + raw[names][5]]
        self.sections = [
            _Section(
                *(
                    _name(table, name),
                    kind,
                    flags,
                    b"" if kind == _NOBITS else data[at : at + size],
                ),
                *(size, link, info, max(align, 1)),
            )
            for name, kind, flags, _, at, size, link, info, align, _ in raw
        ]
        self.symbols = [
            _Symbol(_name(self.sections[section.link].content, name), where, value, size)
            for section in self.sections
            if section.kind == _SYMTAB
            for name, _, _, where, value, size in struct.iter_unpack("<IBBHQQ", section.content)
        ]
        self.relocations = [
            _Relocation(section.info, place, info & 0xFFFFFFFF, self.symbols[info >> 32], addend)
            for section in self.sections
            if section.kind == _RELA and self.loaded(section.info)
            for place, info, addend in struct.iter_unpack("<QQq", section.content)
        ]

    def loaded(self, number: int) -> bool:
        """Whether a section becomes part of the image."""
        section = self.sections[number]
        kept = section.kind in (_PROGBITS, _NOBITS) and section.flags & _ALLOC
        return bool(kept) and section.name not in _SKIPPED


# What the machines differ in.


def _bits(content: bytearray, place: int, value: int, mask: int, low: int) -> None:
    """Set the bits of a word that `mask << low` names."""
    word = int.from_bytes(content[place : place + 4], "little")
    word = word & ~(mask << low) | (value & mask) << low
    content[place : place + 4] = word.to_bytes(4, "little")


def _distance(target: int, place: int, bits: int, unit: int = 1) -> int:
    """From `place` to `target` in units, as a signed number of so many bits."""
    value, rest = divmod(target - place, unit)
    if rest or not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise Internal(f"compiled code refers to what is {target - place} bytes from it")
    return value


class _X86:
    """Relocations and jumps of x86-64."""

    align = 64  # bytes of a cache line: `_start`
    absolute = 1  # R_X86_64_64
    calls = (2, 4)  # PC32, PLT32
    table = (9, 41, 42)  # GOTPCREL, GOTPCRELX, REX_GOTPCRELX

    @staticmethod
    def jump(place: int, slot: int) -> bytes:
        """Eight bytes: jmp *slot(%rip)."""
        return bytes.fromhex("ff25") + _distance(slot, place + 6, 32).to_bytes(
            4, "little", signed=True
        ).ljust(6, b"\0")

    @classmethod
    def resolve(cls, content: bytearray, kind: int, place: int, target: int) -> bool:
        """Let what stands at `place` refer to `target`; False for an unknown kind."""
        if kind not in (*cls.calls, *cls.table):
            return False
        _bits(content, place, _distance(target, place, 32), 0xFFFFFFFF, 0)
        return True


class _Arm:
    """Relocations and jumps of AArch64."""

    align = 4096  # what the instruction ADRP counts in
    absolute = 257  # R_AARCH64_ABS64
    calls = (282, 283)  # JUMP26, CALL26
    table = (311, 312)  # ADR_GOT_PAGE, LD64_GOT_LO12_NC
    _PAGE, _RELATIVE = (275, 311), 261  # ADR_PREL_PG_HI21, ADR_GOT_PAGE; PREL32
    _LOW: ClassVar = {277: 0, 278: 0, 284: 1, 285: 2, 286: 3, 299: 4, 312: 3}
    # ADD_ABS_LO12_NC, LDST8 to LDST128_ABS_LO12_NC, LD64_GOT_LO12_NC: the logarithm of the unit

    @staticmethod
    def jump(place: int, slot: int) -> bytes:
        """Eight bytes: ldr x16, slot; br x16."""
        load = 0x58000010 | (_distance(slot, place, 19, 4) & 0x7FFFF) << 5
        return load.to_bytes(4, "little") + (0xD61F0200).to_bytes(4, "little")

    @classmethod
    def resolve(cls, content: bytearray, kind: int, place: int, target: int) -> bool:
        """Let what stands at `place` refer to `target`; False for an unknown kind."""
        if kind in cls._PAGE:
            pages = _distance(target >> 12, place >> 12, 21)
            _bits(content, place, pages, 3, 29)
            _bits(content, place, pages >> 2, 0x7FFFF, 5)
        elif kind in cls._LOW:
            _bits(content, place, _distance(target & 0xFFF, 0, 13, 1 << cls._LOW[kind]), 0xFFF, 10)
        elif kind in cls.calls:
            _bits(content, place, _distance(target, place, 26, 4), 0x3FFFFFF, 0)
        elif kind == cls._RELATIVE:
            _bits(content, place, _distance(target, place, 32), 0xFFFFFFFF, 0)
        else:
            return False
        return True


MACHINES: dict[int, type[_X86] | type[_Arm]] = {62: _X86, 183: _Arm}  # by ELF's number


class _Layout:
    """Places sections and resolves references; the last part is a table of addresses."""

    def __init__(self, made: Object) -> None:
        self.made, self.machine = made, made.machine
        self.content = bytearray()
        self.start: dict[int, int] = {}  # of a section
        self.common: dict[str, int] = {}
        self.slots: dict[tuple[str, int], int] = {}  # (symbol or "", offset): place in the table
        self.jumps: dict[str, int] = {}
        self.fixes: list[Fix] = []
        for number, section in enumerate(self.made.sections):
            if self.made.loaded(number):
                self._align(section.align)
                self.start[number] = len(self.content)
                self.content += section.content or bytes(section.size)
        for symbol in made.symbols:
            if symbol.section == _COMMON:
                self._align(symbol.value)
                self.common[symbol.name] = len(self.content)
                self.content += bytes(symbol.size)
        self._align(8)
        for reference in self.made.relocations:
            name = reference.symbol.name
            called = reference.kind in self.machine.calls and reference.symbol.section == 0
            if called and name not in self.jumps:
                self.jumps[name] = len(self.content)
                self.content += bytes(8)
        self._resolve()

    def _align(self, size: int) -> None:
        self.content += bytes(-len(self.content) % size)

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
            self.content[at : at + 8] = self.machine.jump(at, self._slot((name, 0)))
        for reference in self.made.relocations:
            place = self.start[reference.section] + reference.place
            name, offset = self.where(reference.symbol)
            if reference.kind == self.machine.absolute:
                self.fixes.append(Fix(place, name, offset + reference.addend))
                continue
            if reference.kind in self.machine.table:
                target = self._slot((name, offset))
            else:
                target = self.jumps.get(name, -1) if name else offset
            target += reference.addend
            known = target >= 0 or not name
            if not (known and self.machine.resolve(self.content, reference.kind, place, target)):
                raise Internal(
                    f"compiled code has a relocation of type {reference.kind} to"
                    f" {reference.symbol.name or 'itself'}"
                )


def image(data: bytes, function: str) -> Image:
    """The image of an object file, called at a function."""
    made = Object(data)
    layout = _Layout(made)
    entry = next(s for s in made.symbols if s.name == function and s.section)
    fixes, content = tuple(layout.fixes), bytes(layout.content)
    return Image(layout.where(entry)[1], made.machine.align, fixes, content)
