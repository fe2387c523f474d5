"""A PROGRAM.toml of kind "tt-metal" on a libttsim.so: python tests/ttsim_chip.py PROGRAM OUT.

OUT is an .npz with L1 of every tile ("l1_x_y") and every output ("out_i") at the end. The library
ends its process at a violation, and can be used once: hence a process of its own. $BHEMU_TTSIM.
"""

import ctypes
import os
import struct
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from bhemu.machine.stop import Stop
from bhemu.memmap import L1_SIZE
from bhemu.metal import host
from bhemu.metal.firmware import SIGNAL_GO, Grid, read_firmware
from bhemu.metal.kernels import Texts
from bhemu.program import interleave
from bhemu.program.coordinates import XY, dram
from bhemu.program.schema import load_program
from bhemu.tile import Tile

POLL, CLOCKS, SETTLE = 200, 2_000_000, 2_000
_BAR0, _WINDOW = 0x1_0000_0000, 0x200000  # one window of 2 MiB is set anew for each access
_CONFIG = _BAR0 + 0x1FC00000


class Simulator:
    """The library: memory of every tile through one window."""

    def __init__(self, path: str) -> None:
        self.lib = ctypes.CDLL(path)
        for name in ("rd", "wr"):
            function = getattr(self.lib, f"libttsim_pci_mem_{name}_bytes")
            function.argtypes = [ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint32]
        self.lib.libttsim_clock.argtypes = [ctypes.c_uint32]
        self.lib.libttsim_init()
        self._at: tuple[int, XY] | None = None

    def _address(self, xy: XY, address: int) -> int:
        page = address // _WINDOW
        if self._at != (page, xy):
            self._at = (page, xy)
            for i, word in enumerate((page & 0xFFFFFFFF, xy[0] << 11 | xy[1] << 17, 0)):
                data = struct.pack("<I", word)
                self.lib.libttsim_pci_mem_wr_bytes(_CONFIG + 4 * i, data, 4)
        return _BAR0 + address % _WINDOW

    def write(self, xy: XY, address: int, data: bytes) -> None:
        """Bytes, at most up to the next 2 MiB."""
        self.lib.libttsim_pci_mem_wr_bytes(self._address(xy, address), data, len(data))

    def read(self, xy: XY, address: int, n: int) -> bytes:
        """Bytes, at most up to the next 2 MiB."""
        buffer = ctypes.create_string_buffer(n)
        self.lib.libttsim_pci_mem_rd_bytes(self._address(xy, address), buffer, n)
        return buffer.raw


class SimulatedTile:
    """As much of a Tile as a host of tt-metal uses."""

    def __init__(self, simulator: Simulator, xy: XY) -> None:
        self._simulator, self.xy = simulator, xy
        self.core: Any = defaultdict(lambda: SimpleNamespace(images=[]))
        self.ranges: list[object] = []

    def write(self, address: int, data: bytes) -> None:
        self._simulator.write(self.xy, address, data)

    def write32(self, address: int, value: int) -> None:
        self.write(address, struct.pack("<I", value))

    def read32(self, address: int) -> int:
        return int.from_bytes(self._simulator.read(self.xy, address, 4), "little")


def run(path: Path, out: Path) -> None:
    """Boot, launch, run to the go messages, and save."""
    program = load_program(path)
    simulator = Simulator(os.environ["BHEMU_TTSIM"])
    tiles = [(SimulatedTile(simulator, xy), part) for part in program.placed() for xy in part.at]

    def wait(conditions: Sequence[tuple[Any, int, int]], limit: int) -> Stop:
        for _ in range(CLOCKS // POLL if conditions else SETTLE // POLL):
            simulator.lib.libttsim_clock(POLL)
            if conditions and all(t.read32(at) == value for t, at, value in conditions):
                return Stop("until", None, 0)
        return Stop("limit", None, 0)

    assert program.firmware is not None
    firmware, grid = read_firmware(program.firmware), Grid.of(program.chip)
    host.boot(cast("list[Tile]", [tile for tile, _ in tiles]), firmware, grid, wait)
    texts = Texts()
    for tile, part in tiles:
        host.place_kernels(cast(Tile, tile), firmware, part, texts)
    for source in program.inputs:
        assert source.dram is not None
        interleave.write(
            source.dram, source.data(), lambda b, at, d: simulator.write(dram(b, 0), at, d)
        )
    for tile, _ in tiles:
        go = firmware.signal(SIGNAL_GO)
        tile.write(go.address, go.data)
    stop = wait([(tile, firmware.go, 0) for tile, _ in tiles], 0)
    wait([], 0)
    saved = {f"l1_{t.xy[0]}_{t.xy[1]}": simulator.read(t.xy, 0, L1_SIZE) for t, _ in tiles}
    for i, output in enumerate(program.outputs):
        assert output.dram is not None
        saved[f"out_{i}"] = interleave.read(
            output.dram, output.size, lambda b, at, n: simulator.read(dram(b, 0), at, n)
        )
    arrays: dict[str, Any] = {name: np.frombuffer(data, np.uint8) for name, data in saved.items()}
    np.savez(out, done=np.array(stop.reason == "until"), **arrays)


if __name__ == "__main__":
    run(Path(sys.argv[1]), Path(sys.argv[2]))
