"""A program on a tile: placing its parts, running it, checking and saving its outputs."""

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bhemu import ahead, memmap
from bhemu.core import Core
from bhemu.devices.bus.address_map import REGISTERS
from bhemu.errors import InputError
from bhemu.llk import harness
from bhemu.machine import Stop
from bhemu.program import files, loader, tensor
from bhemu.program.address import At, check_l1, resolve_at
from bhemu.program.datafiles import read_image
from bhemu.program.schema import CoreSpec, OutputSpec, Program, SetSpec
from bhemu.tile import Tile

_JUMP_REACH = 0x100000  # bytes that `jal` reaches forwards
_LUI_T0, _JR_T0 = 0x000002B7, 0x00028067


def _silent(name: str, seconds: float) -> None:
    """Default of `progress`: say nothing."""


@dataclass(frozen=True)
class OutputResult:
    """One output after a run: where it was, how it compares, where it was saved.

    `report` is None when the program names nothing to compare with, `saved` when nothing was saved.
    """

    spec: OutputSpec
    address: int
    report: tensor.Report | None
    saved: Path | None

    @property
    def equal(self) -> bool:
        """False when the output differs from what was expected."""
        return self.report is None or self.report.equal

    def as_dict(self) -> dict[str, object]:
        """JSON-ready values: name, address, shape, dtype, layout, saved, and the report's."""
        compared = {} if self.report is None else self.report.as_dict()
        return {
            **compared,
            "name": self.spec.name,
            "address": self.address,
            "shape": list(self.spec.shape),
            "dtype": self.spec.dtype,
            "layout": self.spec.layout,
            "equal": None if self.report is None else self.report.equal,
            "saved": None if self.saved is None else str(self.saved),
        }

    def __str__(self) -> str:
        if self.report is not None and not self.report.equal:
            return str(self.report)
        shape = "x".join(str(n) for n in self.spec.shape)
        parts = [self.spec.name, f"{shape} {self.spec.dtype}"]
        if self.report is not None:
            how = "equal" if self.report.how == "bits" else f"agrees by {self.report.how}"
            parts.append(f"{how} ({self.report.total} of {self.report.total})")
        if self.saved is not None:
            parts.append(f"saved to {self.saved}")
        return "  ".join(parts if len(parts) > 2 else [*parts, "not compared"])


def launch(
    program: Program,
    *,
    quantum: int = 1000,
    progress: Callable[[str, float], None] = _silent,
    boot: bool = True,
) -> Tile:
    """A tile with `program` on it, its cores released, nothing executed yet.

    Of kind "llk" brisc has booted and been told to start the TRISCs, unless `boot` is False.
    quantum and progress as in Tile. InputError for everything that can be found out without
    running: ELFs that overlap, unknown symbols, addresses outside memory, outputs that cannot be
    written.
    """
    _check_saves(program)
    elfs = {n: loader.read_elf(spec.elf) for n, spec in program.cores.items() if spec.elf}
    ahead.start(ahead.missing(ahead.opcodes(elfs.values())))
    names = ("seed", "ub", "poison", "reference", "livelock")
    how = {name: getattr(program.run, name) for name in names}
    tile = Tile(quantum=quantum, progress=progress, **how)
    if program.image is not None:
        tile.write(0, read_image(program.image).tobytes())
    for name, elf in elfs.items():
        tile.core[name].load_image(elf, program.cores[name].local)
    for name, spec in program.cores.items():
        _set_start(tile, spec, elfs.get(name), from_image=program.image is not None)
    for spec_set in program.sets:
        _set(tile, spec_set)
    _check_addresses(tile, program)
    for source in program.inputs:
        tile.write(_l1_address(tile, source.origin, source.at, source.size), source.data())
    if program.kind == "llk":
        if boot:
            harness.start(tile)
        return tile
    for name, spec in program.cores.items():
        if spec.release:
            tile.core[name].release()
    return tile


def run(tile: Tile, program: Program) -> Stop:
    """Run a launched program to its end condition, limit or time-out (see Tile.run)."""
    spec = program.run
    return tile.run(until_words(tile, program), limit=spec.limit, timeout_s=spec.timeout_s)


def until_words(tile: Tile, program: Program) -> list[tuple[int, int]] | None:
    """The program's end condition as (L1 address, value) pairs; None means until idle."""
    words = [(resolve(tile, until.word), until.equals) for until in program.run.until]
    if program.kind == "llk" and not words:
        return harness.done_words()
    return words or None


def word_name(program: Program, address: int) -> str:
    """How a message calls the word at `address` of an end condition."""
    return harness.word_name(address) if program.kind == "llk" else f"word {address:#x}"


def check(tile: Tile, program: Program) -> list[OutputResult]:
    """Read every output, save it where the program says so, and compare it.

    A file is written whole or not at all.
    """
    results = []
    for spec in program.outputs:
        address = resolve(tile, spec.at)
        data = tile.read(address, spec.size)
        if spec.save is not None:
            _save(spec, data, program.home)
        results.append(OutputResult(spec, address, spec.check(data), spec.save))
    return results


def resolve(tile: Tile, at: At, core: str | None = None) -> int:
    """The address of `at`: a number, a symbol of `core` (or of any core), or a register name."""

    def address(name: str) -> int:
        if core is not None and name not in REGISTERS:
            return _symbol_of(tile.core[core], name)
        found = {
            symbols.address(name)
            for one in tile.core.values()
            if core in (None, one.name)
            for symbols in one.images
            if name in symbols.names
        }
        if len(found) > 1:
            places = ", ".join(f"{value:#x}" for value in sorted(found))
            raise InputError(f"{name} stands for several addresses: {places}", hint="name the core")
        if found:
            return found.pop()
        if name in REGISTERS:
            return REGISTERS[name]
        known = [name for one in tile.core.values() for s in one.images for name in s.names]
        near = difflib.get_close_matches(name, [*known, *REGISTERS], n=1)
        hint = f"did you mean {near[0]}?" if near else "is the ELF stripped? readelf -s"
        raise InputError(f"no symbol or register {name}", hint=hint)

    return resolve_at(at, address)


def _symbol_of(core: Core, name: str) -> int:
    if not core.images:
        raise InputError(f"{core.name} has no ELF, so no symbol {name}")
    for symbols in core.images[:-1]:
        if name in symbols.names:
            return symbols.address(name)
    return core.images[-1].address(name)


# Placing


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


def _set(tile: Tile, spec: SetSpec) -> None:
    """Write one [[set]]: to L1 or a device as host or core, to local RAM as its core."""
    address: int = _named(spec.origin, resolve, tile, spec.at, spec.core)
    if address < memmap.L1_SIZE:
        check_l1(spec.origin, address, len(spec.data))
        tile.write(address, spec.data)
        return
    if memmap.LOCAL_BASE <= address < memmap.DEVICE_BASE:
        _set_local(tile, spec, address)
        return
    if address % 4 or len(spec.data) % 4:
        raise InputError(
            f"{spec.origin}: a device takes whole words: {len(spec.data)} bytes at {address:#x}"
        )
    write = tile.write32 if spec.core is None else tile.core[spec.core].write32
    for i in range(0, len(spec.data), 4):
        value = int.from_bytes(spec.data[i : i + 4], "little")
        _named(spec.origin, write, address + i, value)


def _set_local(tile: Tile, spec: SetSpec, address: int) -> None:
    """Bytes into a core's local RAM, which takes words."""
    if spec.core is None:
        raise InputError(
            f"{spec.origin}: {address:#x} is private RAM of a core", hint="name the core"
        )
    core, data = tile.core[spec.core], spec.data
    end = memmap.LOCAL_BASE + loader.LOCAL_SIZE[core.name]
    if address + len(spec.data) > end:
        raise InputError(
            f"{spec.origin}: {len(spec.data)} bytes at {address:#x} end behind the local RAM"
            f" of {core.name} ({end:#x})"
        )
    low, high = address & ~3, (address + len(data) + 3) & ~3
    words = b"".join(core.read32(a).to_bytes(4, "little") for a in range(low, high, 4))
    merged = words[: address - low] + data + words[address - low + len(data) :]
    for i in range(0, len(merged), 4):
        core.write32(low + i, int.from_bytes(merged[i : i + 4], "little"))


def _named(origin: str, action: Callable[..., Any], *values: Any) -> Any:
    """`action(*values)`, its InputError naming the entry of the program."""
    try:
        return action(*values)
    except InputError as error:
        raise InputError(f"{origin}: {error.message}", hint=error.hint) from error


def _check_addresses(tile: Tile, program: Program) -> None:
    """Outputs and end conditions lie in L1, before anything runs."""
    for spec in program.outputs:
        _l1_address(tile, spec.origin, spec.at, spec.size)
    for until in program.run.until:
        address = _l1_address(tile, "[run] until", until.word, 4)
        if address % 4:
            raise InputError(f"[run] until: {address:#x} is not aligned to 4 bytes")


def _l1_address(tile: Tile, origin: str, at: At, size: int) -> int:
    address: int = _named(origin, resolve, tile, at)
    check_l1(origin, address, size)
    return address


# Saving


def _check_saves(program: Program) -> None:
    """Every file to be saved can be written, and is of a kind that can be read back."""
    keep = list(program.files())
    for spec in program.outputs:
        if spec.save is None:
            continue
        if spec.save.suffix != ".npy" and spec.dtype != "raw":
            raise InputError(
                f"{spec.origin}: save = {spec.save} is not .npy",
                hint='only dtype = "raw" is saved as plain bytes',
            )
        files.check_writable(spec.save, spec.origin, keep)
        keep.append(spec.save)


def _save(spec: OutputSpec, data: bytes, inside: Path | None) -> None:
    """Write an output, below `inside`: its folder may have changed since it was checked."""
    assert spec.save is not None
    if inside is not None and not files.is_inside(spec.save, inside):
        raise InputError(f"{spec.origin}: {spec.save} leaves the folder of the program")
    if spec.save.suffix != ".npy":
        files.write_whole(spec.save, lambda file: file.write(data), spec.origin)
        return
    array = tensor.decode(data, spec.shape, spec.dtype, spec.layout)
    files.write_whole(spec.save, lambda file: np.save(file, array), spec.origin)
