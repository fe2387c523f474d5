"""ELF files: reading them with every check first, and deciding where each segment goes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple

from bhemu import arguments
from bhemu.errors import InputError
from bhemu.memmap import CORE_NAMES, L1_SIZE, LOCAL_BASE, LOCAL_SIZES, TDMA_BASE
from bhemu.program import elf, files
from bhemu.program.symbols import Move, Symbols

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
_LOADER_INIT_SECTION = ".loader_init"
_LOADER_INIT_SYMBOL = "__loader_init_start"


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

    @property
    def is_elsewhere(self) -> bool:
        """Whether code linked for L1 is stored at another address of L1."""
        return self.vaddr != self.paddr and not self.is_local

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
        """First address behind the data."""
        return self.address + len(self.data)


class _Range(NamedTuple):
    """Where a segment goes, before its bytes are copied and extended by zeros."""

    image: Image
    segment: Segment
    address: int
    length: int
    space: Space

    @property
    def name(self) -> str:
        """The file's name and the segment."""
        return f"{self.image.path.name} {self.segment}"

    def padded(self) -> Placement:
        """With the bytes."""
        data = self.segment.data.ljust(self.length, b"\0")
        return Placement(self.address, data, self.space, self.name)


def read_elf(path: str | Path) -> Image:
    """Read an ELF for a baby RISC-V core: ELF32, little-endian, machine 243, executable, whole.

    Raises InputError, and for nothing else, when the file is missing or fails a check. Segments of
    other types than LOAD and segments that occupy no memory (PT_RISCV_ATTRIBUTES) are left out.
    """
    path = arguments.path(path)
    if files.is_missing(path):
        raise InputError(f"{path}: no such file")
    data = files.read_bytes(path, "ELF_BYTES")
    _check_header(path, data)
    try:
        sections = _sections(path, data)
        segments = tuple(_segments(path, data))
    except elf.DamagedError as error:
        raise InputError(f"{path}: damaged ELF: {error}", hint="rebuild the file") from error
    if not segments:
        raise InputError(f"{path}: no loadable segment", hint="link the program into an executable")
    moves = [Move(s.vaddr, s.paddr, s.memsz) for s in segments if s.is_elsewhere]
    symbols = Symbols(data, path.name, moves=moves)
    return Image(path, elf.HEADER.unpack_from(data)[4], segments, symbols, sections)


def _check_header(path: Path, data: bytes) -> None:
    """Class, byte order, machine and type, before anything else is believed."""
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


def _check_inside(path: Path, what: str, offset: int, size: int, total: int) -> None:
    if size and offset + size > total:
        raise InputError(
            f"{path}: truncated: {what} at 0x{offset:X}..0x{offset + size:X},"
            f" but the file ends at 0x{total:X}",
            hint=_AGAIN,
        )


def _sections(path: Path, data: bytes) -> dict[str, int]:
    sections = {}
    for section in elf.sections(data, str(path)):
        if section.kind not in ("SHT_NULL", "SHT_NOBITS"):
            what = f"section {section.name}"
            _check_inside(path, what, section.offset, section.size, len(data))
        if section.name:
            sections[section.name] = section.address
    return sections


def _segments(path: Path, data: bytes) -> Iterator[Segment]:
    total = 0
    for number, segment in enumerate(elf.segments(data, str(path))):
        if segment.kind in elf.DYNAMIC:
            raise InputError(
                f"{path}: dynamically linked ({segment.kind})",
                hint="link with -static -nostdlib",
            )
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
            raise InputError(
                f"{path}: more than 0x{total:X} bytes to load, L1 has 0x{L1_SIZE:X}",
                hint="is this the ELF of another machine?",
            )
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
    size = LOCAL_SIZE.get(core)
    if size is None:
        raise InputError(f"no core {core!r}", hint=f"cores: {', '.join(LOCAL_SIZE)}")
    _check_mode(local)
    placements: list[_Range] = []
    for segment in image.segments:
        if segment.is_local:
            _check_local(image, segment, core, size)
            placement = _place_local(image, segment, local, offset)
        else:
            length = len(segment.data) if local == "loader_init" else segment.memsz
            placement = _in_l1(image, segment, segment.paddr + offset, length)
        if placement.length:
            placements.append(placement)
    _check_disjoint(placements)
    return [placement.padded() for placement in placements]  # only now: all of it fits


def _check_mode(local: Local) -> None:
    named = isinstance(local, str) and local in LOCAL_MODES
    staged = isinstance(local, int) and not isinstance(local, bool)
    if not named and not staged:
        modes = ", ".join(f'"{mode}"' for mode in LOCAL_MODES)
        raise InputError(f"local = {local!r} is not a way to place local RAM segments", hint=modes)


def _check_local(image: Image, segment: Segment, core: str, size: int) -> None:
    if segment.vaddr - LOCAL_BASE + segment.memsz > size:
        raise InputError(
            f"{image.path}: {segment} ends beyond the local RAM of {core}"
            f" (0x{size:X} bytes at 0x{LOCAL_BASE:08X})",
            hint="is this the ELF of another core?",
        )


def _place_local(image: Image, segment: Segment, local: Local, offset: int) -> _Range:
    if local == "direct":
        return _Range(image, segment, segment.vaddr - LOCAL_BASE, segment.memsz, "local")
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
    address = image.sections.get(_LOADER_INIT_SECTION)
    if address is not None:
        return address
    if _LOADER_INIT_SYMBOL in image.symbols.names:
        return image.symbols.address(_LOADER_INIT_SYMBOL)
    raise InputError(
        f'{image.path}: local = "loader_init", but there is no section {_LOADER_INIT_SECTION}'
        f" and no symbol {_LOADER_INIT_SYMBOL}",
        hint='use local = "direct", "lma" or a staging address',
    )


def _in_l1(image: Image, segment: Segment, address: int, length: int) -> _Range:
    if length and not 0 <= address <= L1_SIZE - length:
        raise InputError(
            f"{image.path}: {segment} would go to 0x{address:X}..0x{address + length:X},"
            f" outside L1 (0x0..0x{L1_SIZE:X})",
            hint="check the load addresses in the linker script",
        )
    return _Range(image, segment, address, length, "l1")


def _check_disjoint(placements: Iterable[_Range]) -> None:
    ordered = sorted(placements, key=lambda p: (p.space, p.address))
    for low, high in pairwise(ordered):
        if low.space == high.space and high.address < low.address + low.length:
            raise InputError(
                f"{low.name} and {high.name} overlap in {_SPACE_NAMES[low.space]}"
                f" at 0x{high.address:X}",
                hint="check the load addresses in the linker script",
            )


def check_overlap(
    existing: Sequence[tuple[int, int, str]], placements: Iterable[Placement]
) -> None:
    """InputError when a placement in L1 covers part of an image that is already there.

    `existing` holds (first address, address behind the last, name) of every range in L1. Local RAM
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
