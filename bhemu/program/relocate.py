"""A linked ELF moved in L1: its relocations (of a link with --emit-relocs) applied anew.

Code linked for one address of L1 runs at another when everything in it that holds an address of the
moved part is computed again. Without relocations the text goes as it is: then it must not know
where it is, as position-independent code without data does not.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from bhemu.errors import InputError
from bhemu.memmap import LOCAL_BASE
from bhemu.program import elf, files
from bhemu.program.loader import Image, Segment

# RISC-V ELF psABI, chapter "Relocations".
_KEPT = 32  # ELFs: a program that is launched again and again has the same ones
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
        _check_free(image)
        return image
    data = [bytearray(segment.data) for segment in image.segments]
    uppers = {r.address: r.target for r in found if r.kind == _PCREL_HI20}
    for each in found:
        place = _place(image, each.address)
        if place is not None:
            number, at = place
            _apply(image, each, offset, data[number], at, uppers)
    segments = tuple(
        replace(segment, data=bytes(new)) for segment, new in zip(image.segments, data, strict=True)
    )
    return replace(image, segments=segments)


def _check_free(image: Image) -> None:
    local = next((s for s in image.segments if s.is_local and s.data), None)
    if local is not None:
        raise InputError(
            f"{image.path}: {local} is copied from where the ELF was linked, and the ELF has no"
            " relocations to be moved by",
            hint="link it with -Wl,--emit-relocs",
        )


@lru_cache(maxsize=_KEPT)
def _relocations(data: bytes, path: str) -> tuple[_Relocation, ...]:
    """Of every section that is loaded; DamagedError as InputError."""
    try:
        return tuple(_read(data, path))
    except elf.DamagedError as error:
        raise InputError(f"{path}: damaged ELF: {error}", hint="rebuild the file") from error


def _read(data: bytes, path: str) -> Iterator[_Relocation]:
    table = elf.sections(data, path)
    symbols = list(elf.symbols(data, table, path))
    for number, section in enumerate(table):
        if section.kind != "SHT_RELA":
            continue
        of = _target_section(data, table, number)
        if of is None or not of.flags & elf.SHF_ALLOC:
            continue
        for at, info, addend in _ENTRY.iter_unpack(section.bytes_of(data)[: _whole(section)]):
            value = symbols[info >> 8].value if info >> 8 < len(symbols) else None
            if value is None:
                raise elf.DamagedError(f"relocation of symbol {info >> 8} of {len(symbols)}")
            yield _Relocation(at, info & 0xFF, (value + addend) & 0xFFFFFFFF, value)


def _whole(section: elf.Section) -> int:
    return section.size // _ENTRY.size * _ENTRY.size


def _target_section(data: bytes, table: list[elf.Section], number: int) -> elf.Section | None:
    """The section that relocation section `number` is about (sh_info)."""
    start = elf.HEADER.unpack_from(data)[6]
    (about,) = struct.unpack_from("<I", data, start + 40 * number + 28)
    return table[about] if 0 < about < len(table) else None


def _place(image: Image, address: int) -> tuple[int, int] | None:
    """(segment, offset in it) of the word linked at `address`."""
    for number, segment in enumerate(image.segments):
        if segment.vaddr <= address <= segment.vaddr + len(segment.data) - 4:
            return number, address - segment.vaddr
    return None


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
    struct.pack_into("<I", data, at, _put(kind, word, value & 0xFFFFFFFF))


def _put(kind: int, word: int, value: int) -> int:
    """`word` with the part of `value` that a relocation of this kind fills."""
    if kind == _R_32:
        return value
    if kind in (_HI20, _PCREL_HI20):
        return word & 0xFFF | (value + 0x800) & 0xFFFFF000
    if kind in (_LO12_I, _PCREL_LO12_I):
        return word & 0xFFFFF | (value & 0xFFF) << 20
    return word & 0x1FFF07F | (value & 0xFE0) << 20 | (value & 0x1F) << 7


def block(image: Image) -> tuple[int, bytes]:
    """(lowest load address, bytes) of everything that goes to L1, as one piece.

    InputError when a part has no load address in L1: it could not be loaded beside firmware.
    """
    parts: list[Segment] = [s for s in image.segments if s.data]
    for segment in parts:
        if segment.paddr >= LOCAL_BASE:
            raise InputError(
                f"{image.path}: {segment} has no load address in L1",
                hint="give .data a load address behind the text: .data : AT(...)",
            )
    low = min(segment.paddr for segment in parts)
    data = bytearray(max(s.paddr + len(s.data) for s in parts) - low)
    for segment in parts:
        data[segment.paddr - low : segment.paddr - low + len(segment.data)] = segment.data
    return low, bytes(data)
