"""Booting tiles with firmware and launching kernels on them, as a host does in slow dispatch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import pairwise

from bhemu import memmap
from bhemu.devices.bus.address_map import REGISTERS
from bhemu.errors import InputError, Limit, NoProgress
from bhemu.machine.elf_cache import Texts
from bhemu.machine.stop import Stop
from bhemu.machine.tile import Tile
from bhemu.metal.firmware import SIGNAL_GO, Firmware, Grid, Write
from bhemu.metal.kernels import Kernels, arrange, launch_message
from bhemu.program.specs import TileSpec

BOOT_LIMIT = 10_000_000  # clock units; firmware needs some ten thousand
AFTER_DONE = 7_500  # clock units in which brisc tells trisc0 to clear the stream counters
_BRISC_ONLY = memmap.SOFT_RESET_ALL & ~(1 << memmap.SOFT_RESET_BITS[0])

Wait = Callable[[Sequence[tuple[Tile, int, int]], int], Stop]
"""Run until every (tile, address, word) holds (without any: until idle), or a clock limit.

It goes on after a NoProgress: what firmware waits for is its host.
"""


def write(tile: Tile, writes: Iterable[Write]) -> None:
    """Into the tile's L1, as its host."""
    for each in writes:
        tile.write(each.address, each.data)


def go(tile: Tile, firmware: Firmware) -> None:
    """Tell the firmware of a tile to run its kernels."""
    write(tile, [firmware.signal(SIGNAL_GO)])


def load_firmware(tile: Tile, firmware: Firmware, grid: Grid) -> None:
    """Everything that a tile needs before brisc is released; all cores are in reset."""
    writes = list(firmware.boot_writes(grid, tile.xy))
    _check_apart([w for w in writes if w.data])
    write(tile, writes)
    for name, image in firmware.images.items():
        core = tile.core[name]
        core.images.append(image.symbols)
        for segment in image.segments:
            if segment.executable:
                low = segment.paddr
                tile.ranges.append((low, low + segment.memsz, str(image.path)))
    tile.write32(REGISTERS["SOFT_RESET_0"], memmap.SOFT_RESET_ALL)


def _check_apart(writes: Sequence[Write]) -> None:
    """Two parts of a build that claim the same bytes belong to different builds."""
    ordered = sorted(writes, key=lambda each: each.address)
    for low, high in pairwise(ordered):
        if high.address < low.address + len(low.data):
            raise InputError(
                f"[firmware] {low.name} and {high.name} overlap at {high.address:#x}",
                hint="are all five ELFs of one build?",
            )


def release(tile: Tile) -> None:
    """Let brisc start; it releases the others."""
    tile.write32(REGISTERS["SOFT_RESET_0"], _BRISC_ONLY)


def boot(tiles: Sequence[Tile], firmware: Firmware, grid: Grid, wait: Wait) -> None:
    """Load and start the firmware of all `tiles` and wait until each says DONE.

    Limit (rule METAL-BOOT) when one never does.
    """
    for tile in tiles:
        load_firmware(tile, firmware, grid)
    for tile in tiles:
        release(tile)
    _await(tiles, firmware.go, "go message", wait)
    # trisc0 clears the stream counters after DONE: values that a host writes there must last.
    with suppress(NoProgress):  # it has, and all wait for the host
        wait([], AFTER_DONE)
    _await(tiles, firmware.address("subordinate_sync"), "sync bytes", wait)


def _await(tiles: Sequence[Tile], address: int, name: str, wait: Wait) -> None:
    """Until the word at `address` of every tile is 0."""
    stop = wait([(tile, address, 0) for tile in tiles], BOOT_LIMIT)
    if stop.reason == "interrupt":
        raise KeyboardInterrupt
    if stop.reason == "until":
        return
    late = next(tile for tile in tiles if tile.read32(address))
    raise Limit(
        f"the firmware of tile ({late.xy[0]},{late.xy[1]}) did not boot within {BOOT_LIMIT}"
        f" clock units: its {name} at {address:#x} is {late.read32(address):#x}, not 0",
        rule="METAL-BOOT",
        where=late.core["brisc"].where(),
        hint="are these the ELFs of one build for this chip?",
    )


def place_kernels(tile: Tile, firmware: Firmware, part: TileSpec, texts: Texts) -> Kernels:
    """Kernels, arguments, buffers, launch message: all but the go message."""
    made = arrange(part, tile.xy, firmware.base, texts)
    write(tile, [made.write(), launch_message(firmware, made)])
    name_kernels(tile, made)
    return made


def name_kernels(tile: Tile, made: Kernels) -> None:
    """Let the tile know whose code lies where."""
    for name, placed in made.texts.items():
        tile.core[name].images.insert(0, placed.image.symbols.moved(placed.moved))  # found first
        for segment in placed.image.segments:
            if segment.executable:
                low = segment.paddr + placed.moved
                tile.ranges.append((low, low + segment.memsz, str(placed.image.path)))
