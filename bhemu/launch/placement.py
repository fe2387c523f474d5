"""What a program puts on one tile before it runs: ELFs, start addresses, values, tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bhemu import memmap
from bhemu.errors import InputError
from bhemu.machine.resolve import resolve
from bhemu.machine.tile import Tile
from bhemu.program import coordinates, loader
from bhemu.program.coordinates import At, check_l1
from bhemu.program.datafiles import encode_values, read_image
from bhemu.program.specs import CoreSpec, Program, SetSpec, TileSpec

_JUMP_REACH = 0x100000  # bytes that `jal` reaches forwards
_LUI_T0, _JR_T0 = 0x000002B7, 0x00028067


def place(tile: Tile, part: TileSpec, elfs: Mapping[str, loader.Image]) -> None:
    """ELFs, start addresses and values of `part`; `elfs` are those of its cores."""
    if part.image is not None:
        tile.write(0, read_image(part.image).tobytes())
    for name, elf in elfs.items():
        tile.core[name].load_image(elf, part.cores[name].local)
    for name, spec in part.cores.items():
        _set_start(tile, spec, elfs.get(name), from_image=part.image is not None)
    place_values(tile, part)


def check_saved(program: Program) -> Path:
    """The file of a program that is a saved state; InputError where more is to be placed on it."""
    assert program.image is not None
    given = {"--core": program.cores, "--set": program.sets, "--in": program.inputs}
    for flag, what in given.items():
        if what:
            raise InputError(f"{flag}: nothing is placed on a saved state", hint="write it by hand")
    return program.image


def place_values(tile: Tile, part: TileSpec) -> None:
    """The values of every [[set]]."""
    for spec in part.sets:
        _set(tile, spec, data_of(spec, tile, part))


def data_of(spec: SetSpec, tile: Tile, part: TileSpec) -> bytes:
    """The bytes of a [[set]] on this tile."""
    if not spec.values:
        return spec.data
    return encode_values(spec.values, spec.origin, coordinates.values_of(tile.xy, part.at))


def release(tile: Tile, part: TileSpec) -> None:
    """Let the cores run that no other core releases."""
    for name, spec in part.cores.items():
        if spec.release:
            tile.core[name].release()


def _set_start(tile: Tile, spec: CoreSpec, image: loader.Image | None, *, from_image: bool) -> None:
    """Where the core starts: the reset-PC registers; for brisc a jump at L1 address 0."""
    start = spec.pc
    if start is None:
        if image is None:
            return  # released by another core, which sets the address
        start = image.entry
    if start % 4 or not 0 <= start < memmap.L1_SIZE:
        raise InputError(f"{spec.name} would start at {start:#x}, which is no code address of L1")
    if spec.name != "brisc":
        tile.core[spec.name].set_reset_pc(start)
    elif start != 0:
        _jump_at_zero(tile, start, given=spec.pc is not None, from_image=from_image)


def _jump_at_zero(tile: Tile, start: int, *, given: bool, from_image: bool) -> None:
    """Brisc starts at address 0: put a jump there unless its own ELF brings the start code."""
    code = _jump(start)
    owner = next((name for low, high, name in tile.ranges if low < len(code) and high > 0), None)
    held = from_image and any(tile.read(0, len(code)))
    if owner is None and not held:
        tile.write(0, code)
        tile.ranges.append((0, len(code), "the jump to brisc's entry"))
        return
    brisc = [symbols.path for symbols in tile.core["brisc"].images]
    if owner is not None and not given and Path(owner).name in brisc:
        return
    raise InputError(
        f"brisc starts at L1 address 0, where {owner or 'the image'} lies;"
        f" there is no room for a jump to {start:#x}",
        hint="put start code at 0, or leave 0..8 free",
    )


def _jump(target: int) -> bytes:
    """`j target` at address 0; beyond the reach of jal: lui t0; jr t0."""
    if target < _JUMP_REACH:
        offset = (target >> 20 & 1) << 31 | (target >> 1 & 0x3FF) << 21
        offset |= (target >> 11 & 1) << 20 | (target & 0xFF000)
        return (offset | 0x6F).to_bytes(4, "little")
    low = (target & 0xFFF) - ((target & 0x800) << 1)
    words = (_LUI_T0 | (target - low), _JR_T0 | (low & 0xFFF) << 20)
    return b"".join(word.to_bytes(4, "little") for word in words)


# Values set before the run


def _set(tile: Tile, spec: SetSpec, data: bytes) -> None:
    """Write one [[set]]: to L1 or a device as host or core, to local RAM as its core."""
    address: int = named(spec.origin, resolve, tile, spec.at, spec.core)
    if address < memmap.L1_SIZE:
        check_l1(spec.origin, address, len(data))
        tile.write(address, data)
        tile.placed.append((address, data))
        return
    if memmap.LOCAL_BASE <= address < memmap.DEVICE_BASE:
        _set_local(tile, spec, address, data)
        return
    if address % 4 or len(data) % 4:
        raise InputError(
            f"{spec.origin}: a device takes whole words: {len(data)} bytes at {address:#x}"
        )
    write = tile.write32 if spec.core is None else tile.core[spec.core].write32
    for i in range(0, len(data), 4):
        value = int.from_bytes(data[i : i + 4], "little")
        named(spec.origin, write, address + i, value)


def _set_local(tile: Tile, spec: SetSpec, address: int, data: bytes) -> None:
    """Bytes into a core's local RAM, which takes words."""
    if spec.core is None:
        raise InputError(
            f"{spec.origin}: {address:#x} is private RAM of a core", hint="name the core"
        )
    core = tile.core[spec.core]
    end = memmap.LOCAL_BASE + loader.LOCAL_SIZE[core.name]
    if address + len(data) > end:
        raise InputError(
            f"{spec.origin}: {len(data)} bytes at {address:#x} end behind the local RAM"
            f" of {core.name} ({end:#x})"
        )
    low, high = address & ~3, (address + len(data) + 3) & ~3
    words = b"".join(core.read32(a).to_bytes(4, "little") for a in range(low, high, 4))
    merged = words[: address - low] + data + words[address - low + len(data) :]
    for i in range(0, len(merged), 4):
        core.write32(low + i, int.from_bytes(merged[i : i + 4], "little"))


def named(origin: str, action: Callable[..., Any], *values: Any) -> Any:
    """`action(*values)`, its InputError naming the entry of the program."""
    try:
        return action(*values)
    except InputError as error:
        raise InputError(f"{origin}: {error.message}", hint=error.hint) from error


def l1_address(tile: Tile, origin: str, at: At, size: int) -> int:
    """The address of `at` on a tile; InputError unless `size` bytes there are inside L1."""
    address: int = named(origin, resolve, tile, at)
    check_l1(origin, address, size)
    return address
