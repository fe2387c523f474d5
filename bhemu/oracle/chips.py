"""A program of many tiles on both models: outputs, then L1 of every tile, byte for byte.

On ttsim the same host boots the same firmware and launches the same kernels, through the library's
windows; a program without firmware is put there as bhemu placed it.  Times are the processor's.
"""

from __future__ import annotations

import struct
import time
from collections import defaultdict
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from bhemu.devices.bus.address_map import REGISTERS
from bhemu.errors import BhemuError, InputError
from bhemu.launch.launch import launch
from bhemu.machine.elf_cache import Texts
from bhemu.machine.machine import Chip
from bhemu.machine.stop import Stop
from bhemu.machine.tile import Tile
from bhemu.memmap import L1_SIZE, SOFT_RESET_ALL
from bhemu.metal import host
from bhemu.metal.firmware import Firmware, Grid, read_firmware
from bhemu.oracle.case import Outcome
from bhemu.oracle.compare import EQUAL, Pair, describe
from bhemu.oracle.emulated import failed
from bhemu.oracle.libttsim import RESET_PCS, Library, Simulator
from bhemu.oracle.programs import Verdict, first_difference
from bhemu.program import coordinates
from bhemu.program.coordinates import XY
from bhemu.program.specs import Program, TileSpec

CLOCKS = 4_000_000  # of the library
_POLL, _SETTLE = 200, 4_000
_TIDY = 20_000  # bhemu's clock: firmware tidies up behind DONE
_SECONDS = 120.0
_OVERRIDES = ("TRISC_RESET_PC_OVERRIDE", "NCRISC_RESET_PC_OVERRIDE")


def compare_chip(library: Library, program: Program) -> Verdict:
    """Run a program of a chip on both; the first differing element of each output, then words."""
    tiles = [xy for part in program.placed() for xy in part.at]
    chip = launch(program)
    job = _Job(program, chip)
    ours = _ours(chip, program, tiles)
    seconds = program.run.timeout_s or _SECONDS
    theirs = library.do(job, _size(program, tiles), seconds=max(seconds, _SECONDS))
    pair = Pair(bhemu=ours, ttsim=theirs)
    lines: list[str] = []
    if pair.verdict != EQUAL:
        lines += _output_lines(program, tiles, pair)
        lines += describe(pair, lambda at: _place(program, tiles, at))
    return Verdict(program.name, pair, pair.verdict, tuple(lines))


# What is compared: outputs in DRAM, then L1 of each tile, one behind the other


def _size(program: Program, tiles: Sequence[XY]) -> int:
    outputs = sum(_padded(spec.size) for spec in program.outputs if spec.dram)
    return outputs + len(tiles) * L1_SIZE


def _padded(size: int) -> int:
    return -(-size // 4) * 4


def _place(program: Program, tiles: Sequence[XY], at: int) -> str:
    for spec in program.outputs:
        if spec.dram is not None:
            if at < _padded(spec.size):
                return f"{spec.name} + {at:#x}"
            at -= _padded(spec.size)
    x, y = tiles[at // L1_SIZE]
    return f"tile ({x},{y}) L1 {at % L1_SIZE:#x}"


def _output_lines(program: Program, tiles: Sequence[XY], pair: Pair) -> list[str]:
    if pair.bhemu.l1 is None or pair.ttsim.l1 is None:
        return []
    lines, low = [], 0
    for spec in program.outputs:
        if spec.dram is None:
            continue
        both = [o.l1[low : low + spec.size].tobytes() for o in (pair.bhemu, pair.ttsim)]  # type: ignore[index]
        if both[0] != both[1]:
            lines.append(first_difference(spec, *both))
        low += _padded(spec.size)
    return lines


# bhemu


def _ours(chip: Chip, program: Program, tiles: Sequence[XY]) -> Outcome:
    begin = time.process_time()
    try:
        stop = chip.run()
        seconds = time.process_time() - begin
        if stop.reason == "until":
            chip.run("idle", limit=_TIDY)
    except BhemuError as problem:
        return failed(problem)
    if stop.reason not in ("until", "idle"):
        return Outcome("unfinished", text=f"stopped: {stop.reason}")
    parts = [chip.output(s)[1].ljust(_padded(s.size), b"\0") for s in program.outputs if s.dram]
    parts += [chip.tile[xy].read(0, L1_SIZE) for xy in tiles]
    return Outcome("done", np.frombuffer(b"".join(parts), np.uint8), seconds=seconds)


# ttsim


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

    def __call__(self, simulator: Simulator) -> bytes | None:
        tiles = {xy: SimulatedTile(simulator, xy) for xy in self._tiles}
        if self._firmware is None:
            for before in self._before:
                before.put(tiles[before.xy])
        else:
            self._boot(simulator, tiles)
        for place, data in self._inputs:
            place.write(data, lambda b, at, d: simulator.write(at, d, coordinates.dram(b, 0)))
        begin = time.process_time()
        for xy, tile in tiles.items():
            if self._firmware is None:
                tile.write32(REGISTERS["SOFT_RESET_0"], self._before[self._tiles.index(xy)].reset)
            else:
                host.go(cast(Tile, tile), self._firmware)
        words = [(tiles[xy], address, value) for xy, address, value in self._words]
        if _wait(simulator, words).reason != "until":
            return None
        simulator.seconds = time.process_time() - begin
        simulator.clock(_SETTLE)
        return self._memory(simulator)

    def _boot(self, simulator: Simulator, tiles: dict[XY, SimulatedTile]) -> None:
        assert self._firmware is not None
        grid, texts = Grid.of(self._program.chip), Texts()

        host.boot([cast(Tile, t) for t in tiles.values()], self._firmware, grid, waiter(simulator))
        for part in self._program.placed():
            for xy in part.at:
                self._place(tiles[xy], part, texts)

    def _place(self, tile: SimulatedTile, part: TileSpec, texts: Texts) -> None:
        assert self._firmware is not None
        host.place_kernels(cast(Tile, tile), self._firmware, part, texts)
        if part.sets:
            raise InputError(f"{part.sets[0].origin}: values cannot be put on ttsim here")

    def _memory(self, simulator: Simulator) -> bytes:
        parts = []
        for spec in self._program.outputs:
            if spec.dram is not None:
                data = spec.dram.read(
                    spec.size, lambda b, at, n: simulator.read(at, n, coordinates.dram(b, 0))
                )
                parts.append(data.ljust(_padded(spec.size), b"\0"))
        return b"".join([*parts, *(simulator.read(0, L1_SIZE, xy) for xy in self._tiles)])


def waiter(simulator: Simulator) -> host.Wait:
    """Runs the library for a host that waits."""
    return lambda conditions, limit: _wait(simulator, conditions)


def _wait(simulator: Simulator, conditions: Sequence[tuple[Any, int, int]]) -> Stop:
    """Until every (tile, address, word) holds; without any for a while."""
    for _ in range((CLOCKS if conditions else _SETTLE) // _POLL):
        simulator.clock(_POLL)
        if conditions and all(tile.read32(at) == value for tile, at, value in conditions):
            return Stop("until", None, 0)
    return Stop("limit", None, 0)


class SimulatedTile:
    """As much of a Tile as a host of tt-metal uses."""

    def __init__(self, simulator: Simulator, xy: XY) -> None:
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
        names = (*RESET_PCS, *_OVERRIDES)
        self.words = {name: tile.read32(REGISTERS[name]) for name in names}
        self.reset = SOFT_RESET_ALL & tile.read32(REGISTERS["SOFT_RESET_0"])

    def put(self, tile: SimulatedTile) -> None:
        """The same on ttsim, its cores still in reset."""
        tile.write(0, self.l1)
        for name, value in self.words.items():
            if value:
                tile.write32(REGISTERS[name], value)
