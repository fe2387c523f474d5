"""Loads and runs a golden case of the NoC: memory of tiles and DRAM before and after."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bhemu.machine.machine import Chip
from bhemu.memmap import CORE_NAMES, L1_SIZE, RESET_PCS, SOFT_RESET_ALL, SOFT_RESET_BITS
from bhemu.noc.grid import XY

GOLDEN = Path(__file__).parent / "golden" / "noc"
_DEBUG = 0xFFB12000
_SOFT_RESET, _TRISC_PC, _TRISC_ENABLE = _DEBUG + 0x1B0, _DEBUG + 0x228, _DEBUG + 0x234
_NCRISC_PC, _NCRISC_ENABLE = _DEBUG + 0x238, _DEBUG + 0x23C
_WINDOW = 0x1000  # places from here on are windows of DRAM
assert len(RESET_PCS) == len(CORE_NAMES)


@dataclass(frozen=True)
class Case:
    """A case: what to load, to start, to wait for, to compare."""

    name: str
    tiles: list[XY]
    start: list[tuple[XY, list[str]]]
    done: list[tuple[XY, int, int]]
    dram: list[tuple[XY, int, int, int]]  # (x, y), bank, address, length
    delay_words: list[int]
    before: dict[int, npt.NDArray[np.uint8]]
    after: dict[int, npt.NDArray[np.uint8]]


def _overlay(image: npt.NDArray[np.uint8], data: Any, kind: str, place: int) -> None:
    for who, address, size, at in data[f"{kind}_rec"].tolist():
        if who == place:
            image[address : address + size] = data[f"{kind}_data"][at : at + size]


def names() -> list[str]:
    """The cases."""
    return sorted(path.stem for path in GOLDEN.glob("*.npz"))


def load(name: str) -> Case:
    """Read tests/golden/noc/NAME.npz."""
    with np.load(GOLDEN / f"{name}.npz", allow_pickle=False) as file:
        data = dict(file)
    meta = json.loads(data["meta"].tobytes().decode())
    dram = [(tuple(xy), bank, address, n) for xy, bank, address, n in meta["dram"]]
    sizes = dict.fromkeys(range(len(meta["tiles"])), L1_SIZE)
    sizes |= {_WINDOW + i: window[3] for i, window in enumerate(dram)}
    before, after = {}, {}
    for place, size in sizes.items():
        before[place] = np.zeros(size, np.uint8)
        _overlay(before[place], data, "in", place)
        after[place] = before[place].copy()
        _overlay(after[place], data, "exp", place)
    return Case(
        name,
        [tuple(xy) for xy in meta["tiles"]],
        [(tuple(xy), cores) for xy, cores in meta["start"]],
        [(tuple(xy), address, value) for xy, address, value in meta["done"]],
        dram,
        meta["delay_words"],
        before,
        after,
    )


def put(case: Case, chip: Chip) -> None:
    """Load the memory of the case."""
    for i, xy in enumerate(case.tiles):
        chip.tile[xy].write(0, case.before[i].data)
    for i, (xy, _, address, _) in enumerate(case.dram):
        chip.write(*xy, address, case.before[_WINDOW + i].data)


def release(case: Case, chip: Chip) -> None:
    """Set the reset PCs as the contract says, and let the cores go."""
    for xy, cores in case.start:
        if any(core.startswith("trisc") for core in cores):
            for i, pc in enumerate((0x10000, 0x20000, 0x30000)):
                chip.write32(*xy, _TRISC_PC + 4 * i, pc)
            chip.write32(*xy, _TRISC_ENABLE, 7)
        if "ncrisc" in cores:
            chip.write32(*xy, _NCRISC_PC, 0x8000)
            chip.write32(*xy, _NCRISC_ENABLE, 1)
        held = SOFT_RESET_ALL
        for core in cores:
            held &= ~(1 << SOFT_RESET_BITS[CORE_NAMES.index(core)])
        chip.write32(*xy, _SOFT_RESET, held)


def differences(case: Case, chip: Chip) -> list[str]:
    """Differing words, at most eight lines; tiles that are not listed must be zero."""
    found = []
    for place, want in case.after.items():
        if place < _WINDOW:
            name, got = str(case.tiles[place]), chip.tile[case.tiles[place]].read(0, L1_SIZE)
        else:
            xy, _, address, n = case.dram[place - _WINDOW]
            name, got = f"DRAM {xy} {address:#x}", chip.read(*xy, address, n)
        seen = np.frombuffer(got, np.uint8)
        for at in np.flatnonzero(want != seen)[:8].tolist():
            if place >= _WINDOW or at & ~3 not in case.delay_words:
                found.append(f"{name} + {at:#x}: want {want[at]:02x} got {seen[at]:02x}")
    listed = set(case.tiles)
    found += [f"{tile}" for tile in chip.tiles() if tile.xy not in listed and tile.l1.any()]
    return found[:8]


def run(case: Case, delays: dict[XY, tuple[int, int]] | None = None, **options: Any) -> Chip:
    """Run the case to its end; `delays`: the words for brisc and ncrisc of tiles."""
    chip = Chip(**options)
    put(case, chip)
    for xy, words in (delays or {}).items():
        for at, word in zip(case.delay_words, words, strict=True):
            chip.write32(*xy, at, word)
    release(case, chip)
    stop = chip.run(case.done, limit=20_000_000)
    assert stop.reason == "until", stop
    return chip
