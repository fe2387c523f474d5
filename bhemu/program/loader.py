"""ELF files: reading them with every check, where each segment goes, and moving them in L1."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple

from bhemu import arguments
from bhemu.errors import InputError
from bhemu.memmap import CORE_NAMES, L1_SIZE, LOCAL_BASE, LOCAL_SIZES, TDMA_BASE
from bhemu.program import elf, files
from bhemu.program.elf import Move, Symbols

LOCAL_SIZE: Mapping[str, int] = dict(zip(CORE_NAMES, LOCAL_SIZES, strict=True))

Local = Literal["direct", "lma", "loader_init"] | int
Space = Literal["l1", "local"]

_SPACE_NAMES: Mapping[Space, str] = {"l1": "L1", "local": "local RAM"}
LOCAL_MODES = ("direct", "lma", "loader_init")
_EM_RISCV = 243
_ET_EXEC = 2
_TARGET = "build it for these cores: -march=rv32im -mabi=ilp32"
_AGAIN = "copy or build the file again"
_MACHINES = {3: "x86", 8: "MIPS", 40: "ARM", 62: "x86-64", 93: "ARC", 183: "AArch64", 195: "ARC"}
_TYPES = {1: "a relocatable object", 3: "a shared object or PIE", 4: "a core dump"}
_PF_X = 1  # flag of a segment
_KEPT = 32  # ELFs: a program that is launched again and again has the same ones


@dataclass(frozen=True)
class Segment:
    """One loadable segment: `data` is what the file holds, `memsz` what it occupies in memory."""

    vaddr: int
    paddr: int
    data: bytes = field(repr=False)
    memsz: int
    flags: int

    @property
    def executable(self) -> bool:
        """Whether it holds code (PF_X)."""
        return bool(self.flags & _PF_X)

    @property
    def is_local(self) -> bool:
        """Whether the segment is linked for a core's local RAM."""
        return LOCAL_BASE <= self.vaddr < TDMA_BASE

    def __str__(self) -> str:
        return f"segment 0x{self.vaddr:08X}+0x{self.memsz:X}"


@dataclass(frozen=True)
class Image:
    """A checked ELF: its loadable segments, entry address, symbols and section addresses."""

    path: Path
    entry: int
    segments: tuple[Segment, ...]
    symbols: Symbols = field(repr=False)
    sections: Mapping[str, int] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Placement:
    """Bytes and where they go: an L1 address, or an offset into the core's own local RAM."""

    address: int
    data: bytes = field(repr=False)
    space: Space
    name: str = ""

    @property
    def end(self) -> int:
        """First address after the data."""
        return self.address + len(self.data)


class _Range(NamedTuple):
    """Where a segment goes, before its bytes are copied and extended by zeros."""

    segment: Segment
    address: int
    length: int
    space: Space


@lru_cache(maxsize=_KEPT)
def _symbols(data: bytes, name: str, moves: tuple[Move, ...], _limits: tuple[int, ...]) -> Symbols:
    """With the tables that are parsed already, under the same limits."""
    return Symbols(data, name, moves=moves)


def read_elf(path: str | Path) -> Image:
    """Read an ELF for a baby RISC-V core: ELF32, little-endian, machine 243, executable, whole.

    Raises InputError, and for nothing else, when the file is missing or fails a check. Segments of
    other types than LOAD and segments that occupy no memory (PT_RISCV_ATTRIBUTES) are left out.
    """
    path = arguments.path(path)
    if files.is_missing(path):
        raise InputError(f"{path}: no such file")
    data = files.read_bytes(path, "ELF_BYTES")
    # Class, byte order, machine and type, before anything else is believed
    if data[:4] != b"\x7fELF":
        what = "is empty" if not data else f"starts with {data[:4].hex(' ')}, not 7f 45 4c 46"
        raise InputError(f"{path}: not an ELF file: it {what}", hint="name the linked .elf")
    if len(data) < elf.HEADER.size:
        what = f"{len(data)} bytes, an ELF header has {elf.HEADER.size}"
        raise InputError(f"{path}: truncated: {what}", hint=_AGAIN)
    if data[4] != 1:
        raise InputError(f"{path}: not ELF32 (class {data[4]})", hint=_TARGET)
    if data[5] != 1:
        what = f"not little-endian (data encoding {data[5]})"
        raise InputError(f"{path}: {what}", hint=_TARGET)
    header = elf.HEADER.unpack_from(data)
    kind, machine = header[1], header[2]
    if machine != _EM_RISCV:
        name = _MACHINES.get(machine, "another machine")
        what = f"built for {name} ({machine}), not RISC-V ({_EM_RISCV})"
        raise InputError(f"{path}: {what}", hint=_TARGET)
    if kind != _ET_EXEC:
        what = _TYPES.get(kind, f"of type {kind}")
        raise InputError(f"{path}: {what}, not an executable", hint="link it to fixed addresses")
    tables = (("program headers", 5, 9, 32), ("section headers", 6, 11, 40))
    for name, offset_at, size_at, want in tables:
        offset, size, count = header[offset_at], header[size_at], header[size_at + 1]
        if count and size != want:
            raise InputError(f"{path}: damaged ELF: {name} of {size} bytes, not {want}")
        _check_inside(path, name, offset, size * count, len(data))
    try:
        sections = {}
        for section in elf.sections(data, str(path)):
            if section.kind not in ("SHT_NULL", "SHT_NOBITS"):
                what = f"section {section.name}"
                _check_inside(path, what, section.offset, section.size, len(data))
            if section.name:
                sections[section.name] = section.address
        segments = tuple(_segments(path, data))
    except elf.DamagedError as error:
        raise InputError(f"{path}: damaged ELF: {error}", hint="rebuild the file") from error
    if not segments:
        raise InputError(f"{path}: no loadable segment", hint="link the program into an executable")
    elsewhere = (s for s in segments if s.vaddr != s.paddr and not s.is_local)
    moves = tuple(Move(s.vaddr, s.paddr, s.memsz) for s in elsewhere)
    symbols = _symbols(data, path.name, moves, tuple(map(files.limit, files.LIMITS)))
    return Image(path, elf.HEADER.unpack_from(data)[4], segments, symbols, sections)


def _check_inside(path: Path, part: str, offset: int, size: int, total: int) -> None:
    if size and offset + size > total:
        raise InputError(
            f"{path}: truncated: {part} at 0x{offset:X}..0x{offset + size:X},"
            f" but the file ends at 0x{total:X}",
            hint=_AGAIN,
        )


def _segments(path: Path, data: bytes) -> Iterator[Segment]:
    total = 0
    for number, segment in enumerate(elf.segments(data, str(path))):
        if segment.kind in elf.DYNAMIC:
            hint = "link with -static -nostdlib"
            raise InputError(f"{path}: dynamically linked ({segment.kind})", hint=hint)
        offset, filesz, memsz = segment.offset, segment.filesz, segment.memsz
        _check_inside(path, f"segment {number}", offset, filesz, len(data))
        if segment.kind != "PT_LOAD" or not memsz:
            continue
        if filesz > memsz:
            raise InputError(
                f"{path}: damaged ELF: segment {number} has 0x{filesz:X} bytes in the file"
                f" for 0x{memsz:X} in memory"
            )
        total += filesz
        if total > L1_SIZE + max(LOCAL_SIZES):
            text = f"{path}: more than 0x{total:X} bytes to load, L1 has 0x{L1_SIZE:X}"
            raise InputError(text, hint="is this the ELF of another machine?")
        content = data[offset : offset + filesz]
        yield Segment(segment.vaddr, segment.paddr, content, memsz, segment.flags)


def place(image: Image, *, local: Local, core: str, offset: int = 0) -> list[Placement]:
    """Where every byte of `image` goes when `core` loads it; nothing is written here.

    Segments linked for L1 go to p_paddr + `offset`, zero-extended to their memory size. Segments
    linked for local RAM (p_vaddr at 0xFFB00000) follow `local`:

    - "direct": into the core's local RAM at their p_vaddr, zero-extended;
    - "lma": to L1 at p_paddr + `offset`; the program's start code copies them;
    - "loader_init": to L1 at the section (or symbol) .loader_init, as tt-llk's loader does; this
      loader writes only what the file holds, as its NOLOAD regions in L1 belong to the host;
    - an integer: to L1 at that staging base + (p_paddr - 0xFFB00000), zero-extended.

    Raises InputError when the core or mode is unknown, when anything lies outside L1 (0x180000
    bytes) or the core's local RAM, or when two segments overlap.
    """
    if (size := LOCAL_SIZE.get(core)) is None:
        raise InputError(f"no core {core!r}", hint=f"cores: {', '.join(LOCAL_SIZE)}")
    named = isinstance(local, str) and local in LOCAL_MODES
    staged = isinstance(local, int) and not isinstance(local, bool)
    if not named and not staged:
        modes = ", ".join(f'"{mode}"' for mode in LOCAL_MODES)
        raise InputError(f"local = {local!r} is not a way to place local RAM segments", hint=modes)
    placements: list[_Range] = []
    file = image.path.name
    for segment in image.segments:
        if segment.is_local:
            if segment.vaddr - LOCAL_BASE + segment.memsz > size:
                raise InputError(
                    f"{image.path}: {segment} ends beyond the local RAM of {core}"
                    f" (0x{size:X} bytes at 0x{LOCAL_BASE:08X})",
                    hint="is this the ELF of another core?",
                )
            placement = _place_local(image, segment, local, offset)
        else:
            length = len(segment.data) if local == "loader_init" else segment.memsz
            placement = _in_l1(image, segment, segment.paddr + offset, length)
        if placement.length:
            placements.append(placement)
    ordered = sorted(placements, key=lambda p: (p.space, p.address))
    for low, high in pairwise(ordered):
        if low.space == high.space and high.address < low.address + low.length:
            raise InputError(
                f"{file} {low.segment} and {file} {high.segment} overlap in"
                f" {_SPACE_NAMES[low.space]} at 0x{high.address:X}",
                hint="check the load addresses in the linker script",
            )
    return [  # only now: all of it fits
        Placement(address, segment.data.ljust(length, b"\0"), space, f"{file} {segment}")
        for segment, address, length, space in placements
    ]


def _place_local(image: Image, segment: Segment, local: Local, offset: int) -> _Range:
    if local == "direct":
        return _Range(segment, segment.vaddr - LOCAL_BASE, segment.memsz, "local")
    if local == "loader_init":
        base = _loader_init(image) + offset if segment.data else 0
        return _in_l1(image, segment, base + segment.vaddr - LOCAL_BASE, len(segment.data))
    staged = LOCAL_BASE <= segment.paddr < TDMA_BASE
    if local == "lma":
        if staged and segment.data:
            raise InputError(
                f'{image.path}: local = "lma", but {segment} has no load address in L1'
                f" (p_paddr 0x{segment.paddr:08X})",
                hint='use local = "direct", or the staging address its start code copies from',
            )
        return _in_l1(image, segment, segment.paddr + offset, len(segment.data))
    if not staged:
        raise InputError(
            f"{image.path}: local = 0x{local:X}, but {segment} has a load address of its own"
            f" (p_paddr 0x{segment.paddr:08X})",
            hint='use local = "lma"',
        )
    return _in_l1(image, segment, local + segment.paddr - LOCAL_BASE, segment.memsz)


def _loader_init(image: Image) -> int:
    if (address := image.sections.get(".loader_init")) is not None:
        return address
    if "__loader_init_start" in image.symbols.names:
        return image.symbols.address("__loader_init_start")
    raise InputError(
        f'{image.path}: local = "loader_init", but there is no section .loader_init'
        " and no symbol __loader_init_start",
        hint='use local = "direct", "lma" or a staging address',
    )


def _in_l1(image: Image, segment: Segment, address: int, length: int) -> _Range:
    if length and not 0 <= address <= L1_SIZE - length:
        raise InputError(
            f"{image.path}: {segment} would go to 0x{address:X}..0x{address + length:X},"
            f" outside L1 (0x0..0x{L1_SIZE:X})",
            hint="check the load addresses in the linker script",
        )
    return _Range(segment, address, length, "l1")


def check_overlap(
    existing: Sequence[tuple[int, int, str]], placements: Iterable[Placement]
) -> None:
    """InputError when a placement in L1 covers part of an image that is already there.

    `existing` holds (first address, address after the last, name) of every range in L1. Local RAM
    is private to a core and not looked at.
    """
    for placement in placements:
        if placement.space != "l1":
            continue
        for lo, hi, name in existing:
            if placement.address < hi and lo < placement.end:
                at = max(lo, placement.address)
                raise InputError(
                    f"{placement.name} would overwrite {name} at L1 0x{at:X}",
                    hint="link them to different addresses, or load one with an offset",
                )


# A linked ELF moved in L1: its relocations (of a link with --emit-relocs) applied anew.
#
# Code linked for one address of L1 runs at another when everything in it that holds an address of
# the moved part is computed again. Without relocations the text goes as it is: then it must not
# know where it is, as position-independent code without data does not.

# RISC-V ELF psABI, chapter "Relocations".
_R_32 = 1
_BRANCH, _JAL, _CALL, _CALL_PLT = 16, 17, 18, 19
_PCREL_HI20, _PCREL_LO12_I, _PCREL_LO12_S = 23, 24, 25
_HI20, _LO12_I, _LO12_S = 26, 27, 28
_GPREL_I, _GPREL_S = 47, 48
_RVC_BRANCH, _RVC_JUMP = 44, 45
_NOTHING = (0, 43, 51)  # NONE, ALIGN, RELAX
_DIFFERENCES = (*range(33, 41), *range(52, 57), 60, 61)  # ADD, SUB, SET, ULEB128: of two labels
_PC_RELATIVE = (_BRANCH, _JAL, _CALL, _CALL_PLT, _RVC_BRANCH, _RVC_JUMP)
_ENTRY = struct.Struct("<IIi")


class _Relocation(NamedTuple):
    """What the word at `address` holds: a use of the kind `kind` of the address `target`."""

    address: int
    kind: int
    target: int
    symbol: int  # the address of the symbol alone: for PCREL_LO12 the label of the upper half


def relocated(image: Image, offset: int) -> Image:
    """`image` as if linked `offset` bytes higher in L1; what lies in local RAM stays where it is.

    Entry and load addresses are those of `image`: placing it with the same `offset` puts it there.
    InputError when it holds data to be copied to local RAM and no relocations: its start code
    then looks for them where it was linked.
    """
    if not offset:
        return image
    found = _relocations(files.read_bytes(image.path, "ELF_BYTES"), str(image.path))
    if not found:
        local = next((s for s in image.segments if s.is_local and s.data), None)
        if local is not None:
            raise InputError(
                f"{image.path}: {local} is copied from where the ELF was linked, and the ELF has no"
                " relocations to be moved by",
                hint="link it with -Wl,--emit-relocs",
            )
        return image
    data = [bytearray(segment.data) for segment in image.segments]
    uppers = {r.address: r.target for r in found if r.kind == _PCREL_HI20}
    for each in found:
        for segment, held in zip(image.segments, data, strict=True):
            at = each.address - segment.vaddr
            if 0 <= at <= len(held) - 4:
                _apply(image, each, offset, held, at, uppers)
                break
    segments = tuple(
        replace(segment, data=bytes(new)) for segment, new in zip(image.segments, data, strict=True)
    )
    return replace(image, segments=segments)


@lru_cache(maxsize=_KEPT)
def _relocations(data: bytes, path: str) -> tuple[_Relocation, ...]:
    """Of every section that is loaded; DamagedError as InputError."""
    found = []
    try:
        table = elf.sections(data, path)
        symbols = list(elf.symbols(data, table, path))
        for number, section in enumerate(table):
            if section.kind != "SHT_RELA":
                continue
            # The section that relocation section `number` is about (sh_info)
            start = elf.HEADER.unpack_from(data)[6]
            (about,) = struct.unpack_from("<I", data, start + 40 * number + 28)
            of = table[about] if 0 < about < len(table) else None
            if of is None or not of.flags & elf.SHF_ALLOC:
                continue
            whole = section.size // _ENTRY.size * _ENTRY.size
            for at, info, addend in _ENTRY.iter_unpack(section.bytes_of(data)[:whole]):
                if info >> 8 >= len(symbols):
                    raise elf.DamagedError(f"relocation of symbol {info >> 8} of {len(symbols)}")
                value = symbols[info >> 8].value
                found.append(_Relocation(at, info & 0xFF, (value + addend) & 0xFFFFFFFF, value))
    except elf.DamagedError as error:
        raise InputError(f"{path}: damaged ELF: {error}", hint="rebuild the file") from error
    return tuple(found)


def _moves(image: Image, target: int) -> bool:
    """Whether `target` is an address of the part that is moved: L1 that the ELF itself fills."""
    if target >= LOCAL_BASE:
        return False
    return any(s.paddr <= target <= s.paddr + s.memsz for s in image.segments)


def _apply(
    image: Image,
    each: _Relocation,
    offset: int,
    data: bytearray,
    at: int,
    uppers: Mapping[int, int],
) -> None:
    (word,) = struct.unpack_from("<I", data, at)
    kind, target, base = each.kind, each.target, each.address
    if kind in (_PCREL_LO12_I, _PCREL_LO12_S):  # the label of the upper half stands for the target
        if each.symbol not in uppers:
            raise InputError(f"{image.path}: the lower half at {base:#x} has no upper half")
        target, base = uppers[each.symbol], each.symbol
    moved = _moves(image, target)
    if kind in (_R_32, _HI20, _LO12_I, _LO12_S):
        value = target + offset if moved else target
    elif kind in (_PCREL_HI20, _PCREL_LO12_I, _PCREL_LO12_S):
        value = target - base if moved else target - base - offset
    elif kind in _PC_RELATIVE:
        if not moved:
            raise InputError(f"{image.path}: the jump at {base:#x} leaves the kernel")
        return
    elif kind in (*_NOTHING, *_DIFFERENCES, _GPREL_I, _GPREL_S):
        return
    else:
        raise InputError(f"{image.path}: relocation of type {kind} at {base:#x} is not known")
    value &= 0xFFFFFFFF
    if kind == _R_32:
        word = value
    elif kind in (_HI20, _PCREL_HI20):
        word = word & 0xFFF | (value + 0x800) & 0xFFFFF000
    elif kind in (_LO12_I, _PCREL_LO12_I):
        word = word & 0xFFFFF | (value & 0xFFF) << 20
    else:
        word = word & 0x1FFF07F | (value & 0xFE0) << 20 | (value & 0x1F) << 7
    struct.pack_into("<I", data, at, word)


def block(image: Image) -> tuple[int, bytes]:
    """(lowest load address, bytes) of everything that goes to L1, as one piece.

    InputError when a part has no load address in L1: it could not be loaded beside firmware.
    """
    parts: list[Segment] = [s for s in image.segments if s.data]
    for segment in parts:
        if segment.paddr >= LOCAL_BASE:
            hint = "give .data a load address after the text: .data : AT(...)"
            raise InputError(f"{image.path}: {segment} has no load address in L1", hint=hint)
    low = min(segment.paddr for segment in parts)
    data = bytearray(max(s.paddr + len(s.data) for s in parts) - low)
    for segment in parts:
        data[segment.paddr - low : segment.paddr - low + len(segment.data)] = segment.data
    return low, bytes(data)
