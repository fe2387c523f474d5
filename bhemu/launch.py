"""A program on a tile: placing its parts, running it, checking and saving its outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from bhemu import ahead, memmap
from bhemu.errors import InputError
from bhemu.llk import harness
from bhemu.machine.stop import Stop
from bhemu.machine.until import End
from bhemu.names import resolve
from bhemu.options import TileOptions
from bhemu.program import loader, schema
from bhemu.program.address import At, check_l1
from bhemu.program.datafiles import read_image
from bhemu.program.outputs import OutputResult, check_saves, collect
from bhemu.program.schema import CoreSpec, SetSpec
from bhemu.tile import Tile

_JUMP_REACH = 0x100000  # bytes that `jal` reaches forwards
_LUI_T0, _JR_T0 = 0x000002B7, 0x00028067


class Program(schema.Program):
    """A program as files: what to load, set, feed, run and compare (PROGRAM.toml)."""

    @classmethod
    def load(cls, path: str | Path, *, allow_outside: bool = False) -> Program:
        """Read a PROGRAM.toml, or the one in a folder; InputError for every mistake in it.

        Its files lie in its folder unless `allow_outside`.
        """
        return cls(**vars(schema.load_program(path, allow_outside=allow_outside)))

    def launch(self, **options: Unpack[TileOptions]) -> Tile:
        """A tile with the program on it, its cores released, nothing executed yet.

        options: as in Tile; what is not given is as the program says. Tile.run() then ends where
        the program ends, Tile.check() compares its outputs. InputError for everything that can be
        found out without running.
        """
        return launch(self, **options)

    def __repr__(self) -> str:
        cores = ", ".join(self.cores)
        given = f"{_count(self.inputs, 'input')}, {_count(self.outputs, 'output')}"
        where = "" if self.path is None else f", {self.path}"
        return f"<Program {self.name}: {self.kind} on {cores}; {given}{where}>"


def _count(items: Sequence[object], noun: str) -> str:
    return f"{len(items)} {noun}{'' if len(items) == 1 else 's'}"


def launch(program: schema.Program, *, boot: bool = True, **options: Unpack[TileOptions]) -> Tile:
    """A tile with `program` on it, its cores released, nothing executed yet.

    Of kind "llk" brisc has booted and been told to start the TRISCs, unless `boot` is False.
    options: as in Tile, where the program says nothing else. InputError for everything that can be
    found out without running: ELFs that overlap, unknown symbols, addresses outside memory, outputs
    that cannot be written.
    """
    check_saves(program)
    elfs = {n: loader.read_elf(spec.elf) for n, spec in program.cores.items() if spec.elf}
    ahead.start(ahead.missing(ahead.opcodes(elfs.values()), elfs.values()))
    own: TileOptions = {
        "seed": program.run.seed,
        "ub": program.run.ub,
        "poison": program.run.poison,
        "reference": program.run.reference,
        "stochastic": program.run.stochastic,
        "engine": program.run.engine,
        "livelock": program.run.livelock,
    }
    merged: TileOptions = {**own, **options}
    tile = Tile(**merged)
    _place(tile, program, elfs)
    if program.kind != "llk":
        for name, spec in program.cores.items():
            if spec.release:
                tile.core[name].release()
    elif boot:
        harness.start(tile)
    clock = None if program.run.limit is None else tile.clock + program.run.limit
    words = until_words(tile, program) or ()
    tile.launched(program, End(tuple(words), clock, program.run.timeout_s))
    return tile


def _place(tile: Tile, program: schema.Program, elfs: Mapping[str, loader.Image]) -> None:
    """ELFs, start addresses, values and inputs."""
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


def run(tile: Tile, program: schema.Program) -> Stop:
    """Run a launched program to its end condition, limit or time-out (see Tile.run)."""
    spec = program.run
    return tile.run(until_words(tile, program), limit=spec.limit, timeout_s=spec.timeout_s)


def until_words(tile: Tile, program: schema.Program) -> list[tuple[int, int]] | None:
    """The program's end condition as (L1 address, value) pairs; None means until idle."""
    words = [(resolve(tile, until.word), until.equals) for until in program.run.until]
    if program.kind == "llk" and not words:
        return harness.done_words()
    return words or None


def word_name(program: schema.Program, address: int) -> str:
    """How a message calls the word at `address` of an end condition."""
    return harness.word_name(address) if program.kind == "llk" else f"word {address:#x}"


def check(tile: Tile, program: schema.Program) -> list[OutputResult]:
    """Read every output, save it where the program says so, and compare it."""
    return collect(program, lambda at: resolve(tile, at), tile.read)


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
        tile.placed.append((address, spec.data))
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


def _check_addresses(tile: Tile, program: schema.Program) -> None:
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
