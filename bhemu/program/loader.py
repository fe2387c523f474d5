"""ELF files: reading them with every check first, and deciding where each segment goes."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from bhemu.errors import InputError
from bhemu.memmap import CORE_NAMES, L1_SIZE, LOCAL_BASE, LOCAL_SIZES, TDMA_BASE
from bhemu.program.symbols import Symbols

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile

LOCAL_SIZE: Mapping[str, int] = dict(zip(CORE_NAMES, LOCAL_SIZES, strict=True))

Local = Literal["direct", "lma", "loader_init"] | int
Space = Literal["l1", "local"]

_SPACE_NAMES: Mapping[Space, str] = {"l1": "L1", "local": "local RAM"}
LOCAL_MODES = ("direct", "lma", "loader_init")
_HEADER = struct.Struct("<16sHHIIIIIHHHHHH")
_EM_RISCV = 243
_ET_EXEC = 2
_TARGET = "build it for these cores: -march=rv32im -mabi=ilp32"
_AGAIN = "copy or build the file again"
_MACHINES = {3: "x86", 8: "MIPS", 40: "ARM", 62: "x86-64", 93: "ARC", 183: "AArch64", 195: "ARC"}
_TYPES = {1: "a relocatable object", 3: "a shared object or PIE", 4: "a core dump"}
_DYNAMIC = ("PT_DYNAMIC", "PT_INTERP", "PT_TLS")
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
    def is_local(self) -> bool:
        """Whether the segment is linked for a core's local RAM."""
        return LOCAL_BASE <= self.vaddr < TDMA_BASE

    @property
    def padded(self) -> bytes:
        """The data, zero-extended to `memsz`."""
        return self.data.ljust(self.memsz, b"\0")

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


def read_elf(path: str | Path) -> Image:
    """Read an ELF for a baby RISC-V core: ELF32, little-endian, machine 243, executable, whole.

    Raises InputError, and for nothing else, when the file is missing or fails a check. Segments of
    other types than LOAD and segments that occupy no memory (PT_RISCV_ATTRIBUTES) are left out.
    """
    path = Path(path)
    data = _read(path)
    _check_header(path, data)
    from elftools.common.exceptions import ELFError  # imported late: bhemu must import fast
    from elftools.elf.elffile import ELFFile

    try:
        elf = ELFFile(io.BytesIO(data))
        sections = _sections(path, elf, len(data))
        segments = tuple(_segments(path, elf, data))
    except (ELFError, struct.error, UnicodeDecodeError, ValueError, KeyError) as error:
        raise InputError(f"{path}: damaged ELF: {error}", hint="rebuild the file") from error
    if not segments:
        raise InputError(f"{path}: no loadable segment", hint="link the program into an executable")
    return Image(path, int(elf.header["e_entry"]), segments, Symbols(data, path.name), sections)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def _check_header(path: Path, data: bytes) -> None:
    """Class, byte order, machine and type, before anything else is believed."""
    if data[:4] != b"\x7fELF":
        what = "is empty" if not data else f"starts with {data[:4].hex(' ')}, not 7f 45 4c 46"
        raise InputError(f"{path}: not an ELF file: it {what}", hint="name the linked .elf")
    if len(data) < _HEADER.size:
        what = f"{len(data)} bytes, an ELF header has {_HEADER.size}"
        raise InputError(f"{path}: truncated: {what}", hint=_AGAIN)
    if data[4] != 1:
        raise InputError(f"{path}: not ELF32 (class {data[4]})", hint=_TARGET)
    if data[5] != 1:
        what = f"not little-endian (data encoding {data[5]})"
        raise InputError(f"{path}: {what}", hint=_TARGET)
    header = _HEADER.unpack_from(data)
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


def _sections(path: Path, elf: ELFFile, total: int) -> dict[str, int]:
    sections = {}
    for section in elf.iter_sections():
        if section["sh_type"] not in ("SHT_NULL", "SHT_NOBITS"):
            what = f"section {section.name}"
            _check_inside(path, what, section["sh_offset"], section["sh_size"], total)
        if section.name:
            sections[section.name] = int(section["sh_addr"])
    return sections


def _segments(path: Path, elf: ELFFile, data: bytes) -> Iterator[Segment]:
    for number, segment in enumerate(elf.iter_segments()):
        header = segment.header
        offset, filesz, memsz = header["p_offset"], header["p_filesz"], header["p_memsz"]
        if header["p_type"] in _DYNAMIC:
            raise InputError(
                f"{path}: dynamically linked ({header['p_type']})",
                hint="link with -static -nostdlib",
            )
        _check_inside(path, f"segment {number}", offset, filesz, len(data))
        if header["p_type"] != "PT_LOAD" or not memsz:
            continue
        if filesz > memsz:
            raise InputError(
                f"{path}: damaged ELF: segment {number} has 0x{filesz:X} bytes in the file"
                f" for 0x{memsz:X} in memory"
            )
        content = data[offset : offset + filesz]
        yield Segment(header["p_vaddr"], header["p_paddr"], content, memsz, header["p_flags"])


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
    placements = []
    for segment in image.segments:
        if segment.is_local:
            _check_local(image, segment, core, size)
            placement = _place_local(image, segment, local, offset)
        else:
            data = segment.data if local == "loader_init" else segment.padded
            placement = _in_l1(image, segment, segment.paddr + offset, data)
        if placement.data:
            placements.append(placement)
    _check_disjoint(placements)
    return placements


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


def _place_local(image: Image, segment: Segment, local: Local, offset: int) -> Placement:
    label = f"{image.path.name} {segment}"
    if local == "direct":
        return Placement(segment.vaddr - LOCAL_BASE, segment.padded, "local", label)
    if local == "loader_init":
        base = _loader_init(image) + offset if segment.data else 0
        return _in_l1(image, segment, base + segment.vaddr - LOCAL_BASE, segment.data)
    staged = LOCAL_BASE <= segment.paddr < TDMA_BASE
    if local == "lma":
        if staged and segment.data:
            raise InputError(
                f'{image.path}: local = "lma", but {segment} has no load address in L1'
                f" (p_paddr 0x{segment.paddr:08X})",
                hint='use local = "direct", or the staging address its start code copies from',
            )
        return _in_l1(image, segment, segment.paddr + offset, segment.data)
    if not staged:
        raise InputError(
            f"{image.path}: local = 0x{local:X}, but {segment} has a load address of its own"
            f" (p_paddr 0x{segment.paddr:08X})",
            hint='use local = "lma"',
        )
    return _in_l1(image, segment, local + segment.paddr - LOCAL_BASE, segment.padded)


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


def _in_l1(image: Image, segment: Segment, address: int, data: bytes) -> Placement:
    if data and not 0 <= address <= L1_SIZE - len(data):
        raise InputError(
            f"{image.path}: {segment} would go to 0x{address:X}..0x{address + len(data):X},"
            f" outside L1 (0x0..0x{L1_SIZE:X})",
            hint="check the load addresses in the linker script",
        )
    return Placement(address, data, "l1", f"{image.path.name} {segment}")


def _check_disjoint(placements: Iterable[Placement]) -> None:
    ordered = sorted(placements, key=lambda p: (p.space, p.address))
    for low, high in pairwise(ordered):
        if low.space == high.space and high.address < low.end:
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
