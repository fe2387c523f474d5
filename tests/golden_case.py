"""Loads a golden case: one L1 image in, one L1 image out, as ttsim v1.10.0 computed it."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bhemu.machine.tile import Tile
from bhemu.memmap import L1_SIZE
from bhemu.oracle import libttsim

GOLDEN = Path(__file__).parent / "golden"
DONE = list(libttsim.DONE)


@dataclass(frozen=True)
class Case:
    """`before` and `after` are whole L1 images; `regions` names parts of them."""

    name: str
    before: npt.NDArray[np.uint8]
    after: npt.NDArray[np.uint8]
    regions: list[tuple[str, int, int]]

    def differences(self, l1: npt.NDArray[np.uint8]) -> list[str]:
        """Differing words by region, at most eight lines."""
        want, got = self.after.view(np.uint32), np.ascontiguousarray(l1).view(np.uint32)
        lines = []
        for index in np.flatnonzero(want != got)[:8]:
            address = 4 * int(index)
            name = next((n for n, a, size in self.regions if a <= address < a + size), "?")
            lines.append(f"{address:#x} ({name}): want {want[index]:08x} got {got[index]:08x}")
        return lines


def _overlay(image: npt.NDArray[np.uint8], data: Any, kind: str) -> npt.NDArray[np.uint8]:
    image = image.copy()
    at = 0
    for address, size in zip(data[f"{kind}_addr"], data[f"{kind}_len"], strict=True):
        image[address : address + size] = data[f"{kind}_data"][at : at + size]
        at += int(size)
    return image


def load(name: str) -> Case:
    """Read tests/golden/NAME.npz."""
    with np.load(GOLDEN / f"{name}.npz", allow_pickle=False) as data:
        meta = json.loads(str(data["meta"]))
        before = _overlay(np.zeros(L1_SIZE, np.uint8), data, "in")
        after = _overlay(before, data, "exp")
    regions = [(str(n), int(a), int(size)) for n, a, size in meta["regions"]]
    return Case(name, before, after, regions)


def start(case: Case, **options: Any) -> Tile:
    """A tile with the case's image loaded and TRISC0-2 released."""
    tile = Tile(**options)
    tile.write(0, case.before.tobytes())
    for name, pc in libttsim.TRISC_STARTS.items():
        tile.core[name].set_reset_pc(pc)
        tile.core[name].release()
    return tile
