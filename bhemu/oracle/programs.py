"""Programs on bhemu and on ttsim: of one tile, of a chip, generated."""

from __future__ import annotations

import importlib
import importlib.util
import json
import struct
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import numpy as np

import bhemu
from bhemu.devices.bus.address_map import REGISTERS
from bhemu.errors import BhemuError, InputError
from bhemu.launch import launch
from bhemu.machine.machine import Chip
from bhemu.machine.precompile import ElfCache
from bhemu.machine.resolve import resolve
from bhemu.machine.stop import Stop
from bhemu.machine.tile import Tile
from bhemu.memmap import CORE_NAMES, L1_SIZE, SOFT_RESET_ALL
from bhemu.metal import Firmware, Grid, kernels, read_firmware
from bhemu.oracle import libttsim
from bhemu.program import coordinates, files, input_files, tensor
from bhemu.program.coordinates import XY
from bhemu.program.input_files import read_image
from bhemu.program.specs import OutputSpec, Program
from bhemu.tensix.state import RESET
from bhemu.text import printable

CLOCKS = 20_000_000  # of the library, where the program says no end it could poll
_KINDS = {"until": "done", "idle": "done"}
_META_BYTES = 1 << 20
_RESET_PC = dict(zip(("trisc0", "trisc1", "trisc2", "ncrisc"), libttsim.RESET_PCS, strict=True))


def _verdict(
    name: str,
    pair: libttsim.Pair,
    explain: Callable[[int], str],
    outputs: Iterable[tuple[OutputSpec, int]] = (),
) -> libttsim.Difference:
    """The first differing element of each output, by its place in what is compared, then words."""
    lines: tuple[str, ...] = ()
    if pair.verdict != libttsim.EQUAL:
        lines = (*_output_lines(outputs, pair), *libttsim.describe(pair, explain))
    return libttsim.Difference(name, pair, lines)


def _output_lines(outputs: Iterable[tuple[OutputSpec, int]], pair: libttsim.Pair) -> Iterator[str]:
    if pair.bhemu.l1 is None or pair.ttsim.l1 is None:
        return
    for spec, low in outputs:
        ours, theirs = (
            one[low : low + spec.size].tobytes() for one in (pair.bhemu.l1, pair.ttsim.l1)
        )
        if ours != theirs:
            yield first_difference(spec, ours, theirs)


def read_case(path: Path) -> libttsim.Case:
    """A CASE.npz: `in_data`, `in_addr`, `in_len` are the image, `meta` may name regions of L1.

    TRISC0-2 start at 0x10000, 0x20000, 0x30000 and store the done words 0xD0E0, 0xD0E1, 0xD0E2 at
    0x100, 0x104, 0x108.
    """
    image = read_image(path).tobytes()
    try:
        with input_files.Archive(files.read_bytes(path, "ARCHIVE_BYTES")) as archive:
            text = str(archive.array("meta", _META_BYTES)) if "meta" in archive else "{}"
        regions = [
            (printable(str(n)), int(a), int(size))
            for n, a, size in json.loads(text).get("regions", [])
        ]
    except (ValueError, TypeError, AttributeError, RecursionError) as problem:
        raise InputError(f"{path}: meta does not name regions: {problem}") from problem
    return libttsim.Case(image, regions=regions, name=path.stem)


def compare_case(judge: libttsim.Judge, case: libttsim.Case) -> libttsim.Difference:
    """Run a case on both; differing words by region."""
    return _verdict(case.name, judge.pair(case), case.place)


def compare_program(library: libttsim.Library, program: Program) -> libttsim.Difference:
    """Run a PROGRAM.toml on both: its outputs by tile, face, row and column, then all of L1."""
    tile = launch(program)
    before = tile.read(0, L1_SIZE)
    for index, name in enumerate(CORE_NAMES):
        if tile.state.local[index].any():
            raise InputError(
                f"{name}'s private memory holds data before the start, which nothing outside the"
                " core can write on ttsim",
                hint='let the start code copy it: local = "loader_init" or "lma"',
            )
    for spec in program.sets:
        address = resolve(tile, spec.at, spec.core)
        if address >= L1_SIZE:
            raise InputError(
                f"{spec.origin}: {address:#x} is not an address of L1; only values in L1 can be set"
                " on both models"
            )
    # Start addresses of the released cores, and of those that another core releases
    starts: dict[str, int] = {}
    held: dict[str, int] = {}
    for index, name in enumerate(CORE_NAMES):
        register = _RESET_PC.get(name)
        pc = 0 if register is None else tile.read32(REGISTERS[register])
        if tile.state.core_state[index] != RESET:
            starts[name] = pc
        elif pc:
            held[name] = pc
    until = [(address, value) for _, address, value in tile.loop.end.words]
    ours = libttsim.outcome(tile, tile.run, _KINDS)
    goal = tile.read(0, L1_SIZE) if not until else b""
    regions = [(o.name, resolve(tile, o.at), o.size) for o in program.outputs]
    case = libttsim.Case(before, starts, until, regions, program.name, held, goal)
    limit = program.run.timeout_s or libttsim.SECONDS
    pair = libttsim.Pair(bhemu=ours, ttsim=library.run(case, clocks=CLOCKS, seconds=limit))
    places = (address for _, address, _ in regions)
    outputs = zip(program.outputs, places, strict=True)
    return _verdict(program.name, pair, case.place, outputs)


def first_difference(spec: OutputSpec, ours: bytes, theirs: bytes) -> str:
    """One line: how many elements of an output differ, and the first one."""
    form = (spec.shape, spec.dtype, spec.layout)
    words = [tensor.element_bits(data, *form) for data in (ours, theirs)]
    values = [tensor.decode(data, *form) for data in (ours, theirs)]
    wrong = np.argwhere(words[0] != words[1])
    if not len(wrong):
        return f"{spec.name}: equal values, different encodings"
    index = tuple(int(i) for i in wrong[0])
    place = tensor.locate(index, spec.shape, spec.layout)
    where = " ".join(f"{name} {value}" for name, value in place.items())
    shown = [f"{v[index]} ({int(w[index]):#x})" for v, w in zip(values, words, strict=True)]
    return (
        f"{spec.name}: {len(wrong)} of {words[0].size} elements differ; first at {where}:"
        f" bhemu {shown[0]}, ttsim {shown[1]}"
    )


# A program of many tiles on both models: outputs, then L1 of every tile, byte for byte.
#
# On ttsim the same host boots the same firmware and launches the same kernels, through the
# library's windows; a program without firmware is put there as bhemu placed it. Times are the
# processor's.

CHIP_CLOCKS = 4_000_000  # of the library
_POLL, _SETTLE = 200, 4_000
_TIDY = 20_000  # bhemu's clock: firmware tidies up after DONE
_SECONDS = 120.0
_OVERRIDES = ("TRISC_RESET_PC_OVERRIDE", "NCRISC_RESET_PC_OVERRIDE")


def compare_chip(library: libttsim.Library, program: Program) -> libttsim.Difference:
    """Run a program of a chip on both; the first differing element of each output, then words."""
    tiles = [xy for part in program.placed() for xy in part.at]
    chip = launch(program)
    job = _Job(program, chip)
    ours = _ours(chip, program, tiles)
    seconds = program.run.timeout_s or _SECONDS
    # What is compared: outputs in DRAM, then L1 of each tile, in order
    outputs, end = list[tuple[OutputSpec, int]](), 0
    for spec in (one for one in program.outputs if one.dram):
        outputs.append((spec, end))
        end += _padded(spec.size)
    theirs = library.do(job, end + len(tiles) * L1_SIZE, seconds=max(seconds, _SECONDS))

    def place(at: int) -> str:
        for spec, low in reversed(outputs if at < end else ()):
            if at >= low:
                return f"{spec.name} + {at - low:#x}"
        x, y = tiles[(at - end) // L1_SIZE]
        return f"tile ({x},{y}) L1 {(at - end) % L1_SIZE:#x}"

    return _verdict(program.name, libttsim.Pair(bhemu=ours, ttsim=theirs), place, outputs)


def _padded(size: int) -> int:
    return -(-size // 4) * 4


def _ours(chip: Chip, program: Program, tiles: Sequence[XY]) -> libttsim.Outcome:
    begin = time.process_time()
    try:
        stop = chip.run()
        seconds = time.process_time() - begin
        if stop.reason == "until":
            chip.run("idle", limit=_TIDY)
    except BhemuError as problem:
        return libttsim.failed(problem)
    if stop.reason not in ("until", "idle"):
        return libttsim.Outcome("unfinished", text=f"stopped: {stop.reason}")
    parts = [chip.output(s)[1].ljust(_padded(s.size), b"\0") for s in program.outputs if s.dram]
    parts += [chip.tile[xy].read(0, L1_SIZE) for xy in tiles]
    return libttsim.Outcome("done", np.frombuffer(b"".join(parts), np.uint8), seconds=seconds)


class _Job:
    """What is done in the library's process."""

    def __init__(self, program: Program, chip: Chip) -> None:
        self._program, self._words = program, chip.loop.end.words
        self._tiles = [xy for part in program.placed() for xy in part.at]
        self._inputs = [(s.dram, s.data()) for s in program.inputs if s.dram is not None]
        self._firmware: Firmware | None = None
        if program.firmware is None:
            self._before = [_Before(chip.tile[xy]) for xy in self._tiles]
        elif any(source.tiles for source in program.inputs):
            raise InputError("inputs in L1 of tiles with firmware cannot be put on ttsim")
        else:
            self._firmware = read_firmware(program.firmware)
        if not self._words:
            raise InputError(
                f"{program.name} ends when everything is idle, which nothing shows on ttsim",
                hint='until = [{ tile = "1,2", word = 0x100, equals = 0xD0E0 }]',
            )

    def __call__(self, simulator: libttsim.Simulator) -> bytes | None:
        tiles = {xy: SimulatedTile(simulator, xy) for xy in self._tiles}
        if self._firmware is None:
            for before in self._before:
                before.put(tiles[before.xy])
        else:
            grid, elfs = Grid.of(self._program.chip), ElfCache()
            kernels.boot(
                [cast(Tile, t) for t in tiles.values()], self._firmware, grid, waiter(simulator)
            )
            for part in self._program.placed():
                for xy in part.at:
                    kernels.place_kernels(cast(Tile, tiles[xy]), self._firmware, part, elfs)
                    if part.sets:
                        where = part.sets[0].origin
                        raise InputError(f"{where}: values cannot be put on ttsim here")
        for place, data in self._inputs:
            place.write(data, lambda b, at, d: simulator.write(at, d, coordinates.dram(b, 0)))
        begin = time.process_time()
        for xy, tile in tiles.items():
            if self._firmware is None:
                tile.write32(REGISTERS["SOFT_RESET_0"], self._before[self._tiles.index(xy)].reset)
            else:
                kernels.go(cast(Tile, tile), self._firmware)
        words = [(tiles[xy], address, value) for xy, address, value in self._words]
        if _wait(simulator, words).reason != "until":
            return None
        simulator.seconds = time.process_time() - begin
        simulator.clock(_SETTLE)
        parts = []
        for spec in self._program.outputs:
            if spec.dram is not None:
                data = spec.dram.read(
                    spec.size, lambda b, at, n: simulator.read(at, n, coordinates.dram(b, 0))
                )
                parts.append(data.ljust(_padded(spec.size), b"\0"))
        return b"".join([*parts, *(simulator.read(0, L1_SIZE, xy) for xy in self._tiles)])


def waiter(simulator: libttsim.Simulator) -> kernels.Wait:
    """Runs the library for a host that waits."""
    return lambda conditions, limit: _wait(simulator, conditions)


def _wait(simulator: libttsim.Simulator, conditions: Sequence[tuple[Any, int, int]]) -> Stop:
    """Until every (tile, address, word) holds; without any for a while."""
    for _ in range((CHIP_CLOCKS if conditions else _SETTLE) // _POLL):
        simulator.clock(_POLL)
        if conditions and all(tile.read32(at) == value for tile, at, value in conditions):
            return Stop("until", None, 0)
    return Stop("limit", None, 0)


class SimulatedTile:
    """As much of a Tile as a host of tt-metal uses."""

    def __init__(self, simulator: libttsim.Simulator, xy: XY) -> None:
        self._simulator, self.xy = simulator, xy
        self.core: Any = defaultdict(lambda: SimpleNamespace(images=[], where=lambda: None))
        self.ranges: list[object] = []

    def write(self, address: int, data: bytes) -> None:
        """Bytes into L1."""
        self._simulator.write(address, data, self.xy)

    def write32(self, address: int, value: int) -> None:
        """One word of L1 or of a register."""
        self.write(address, struct.pack("<I", value))

    def read32(self, address: int) -> int:
        """One word of L1."""
        return int.from_bytes(self._simulator.read(address, 4, self.xy), "little")


class _Before:
    """A tile as bhemu placed it before anything ran: L1, start addresses, cores in reset."""

    def __init__(self, tile: Tile) -> None:
        if tile.state.local.any():
            raise InputError(
                f"private memory of tile ({tile.xy[0]},{tile.xy[1]}) holds data before the start,"
                " which nothing outside a core can write on ttsim",
                hint='let the start code copy it: local = "loader_init" or "lma"',
            )
        self.xy, self.l1 = tile.xy, tile.read(0, L1_SIZE)
        names = (*libttsim.RESET_PCS, *_OVERRIDES)
        self.words = {name: tile.read32(REGISTERS[name]) for name in names}
        self.reset = SOFT_RESET_ALL & tile.read32(REGISTERS["SOFT_RESET_0"])

    def put(self, tile: SimulatedTile) -> None:
        """The same on ttsim, its cores still in reset."""
        tile.write(0, self.l1)
        for name, value in self.words.items():
            if value:
                tile.write32(REGISTERS[name], value)


# Finds the generators of random programs: they belong to the source checkout, not to the wheel.

PACKAGE = "random_programs"
_INIT = Path(bhemu.__file__).resolve().parents[1] / "tests" / PACKAGE / "__init__.py"


def present() -> bool:
    """Whether bhemu runs from a checkout."""
    return _INIT.is_file()


def load(name: str) -> ModuleType:
    """The module `name` of tests/random_programs; InputError when bhemu runs without a checkout."""
    if PACKAGE not in sys.modules:
        # Make the package importable, and nothing else of tests/
        if not present():
            raise InputError(
                "the generators of random programs belong to bhemu's source checkout;"
                " this is an installed package",
                hint="clone bhemu's repository and run `pip install -e .` there",
            )
        spec = importlib.util.spec_from_file_location(PACKAGE, _INIT)
        assert spec is not None
        assert spec.loader is not None
        package = importlib.util.module_from_spec(spec)
        sys.modules[PACKAGE] = package
        spec.loader.exec_module(package)
    return importlib.import_module(f"{PACKAGE}.{name}")
