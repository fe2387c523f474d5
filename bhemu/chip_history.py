"""The past of one tile of a chip: marks of the whole chip, which is put back and runs on.

A moment is named by the clock of that tile, which counts its own instructions and words.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from bhemu import chip_snapshot, report
from bhemu.chip import Chip
from bhemu.chip_snapshot import ChipSnapshot
from bhemu.history import MOST, History, Mark, mark_of
from bhemu.machine.chip_stepping import ChipMachine
from bhemu.machine.stop import Stop
from bhemu.memmap import CORE_NAMES
from bhemu.noc import saved
from bhemu.tile import Tile

_SECONDS = 0.05  # of the processor that runs may take between two marks, at first
_COSTS = 1  # times what the last mark took is the least between two
_LEAST, _FULL = 16, 8  # marks of a chip of many tiles; tiles of which MOST marks are kept

Place = tuple[int, int]  # a memory and the number of its page


@dataclass(frozen=True)
class ChipMark(Mark):
    """A moment of a whole chip: its tiles by number, its own record, its pages of memory."""

    tiles: Mapping[int, Mark]
    arrays: Mapping[str, npt.NDArray[Any]]
    memory: Mapping[Place, bytes]
    broken: int | None

    def chip(self) -> ChipSnapshot:
        """The chip's state at that moment."""
        tiles = {t: mark.snapshot() for t, mark in self.tiles.items()}
        pages = {place: np.frombuffer(data, np.uint8) for place, data in self.memory.items()}
        about = {"broken": self.broken}
        return ChipSnapshot(tiles, self.arrays, pages, about, error=self.error)


class ChipHistory(History):
    """As History, of a tile of a chip, which it makes ready to be stepped.

    What a host changes between two runs is a moment too, if it has changed that tile.
    """

    def __init__(self, tile: Tile, chip: Chip) -> None:
        self._chip, self._number = chip, chip.number_of(tile.xy)
        self._stepping = ChipMachine(tile, chip)
        self._stepping.end = tile.machine.end
        self._stepping.watched.dram = tile.machine.watched.dram
        tile.machine = self._stepping
        self._seconds, self._ran, self._since = _SECONDS, 0.0, time.process_time()
        super().__init__(tile, self._stepping)
        self._stepping.observer = chip.runner.observer = self

    # Told by the chip's run loop

    def run_begins(self) -> None:
        """As History."""
        self._since = time.process_time()
        super().run_begins()

    def run_pauses(self) -> None:
        """Between two pieces of a run."""
        if self._replaying:
            return
        began = time.process_time()
        if self._ran + began - self._since < self._seconds:
            return
        self._chip.runner.catch_up()
        self._add(self._mark())
        self._since, self._ran = time.process_time(), 0.0
        self._seconds = max(self._seconds, _COSTS * (self._since - began))

    def run_ended(self) -> None:
        """The user sees the chip."""
        self.run_pauses()
        self._ran += time.process_time() - self._since
        super().run_ended()

    def _add(self, mark: Mark) -> None:
        count = len(self._marks)
        super()._add(mark)
        if len(self._marks) < count:
            self._seconds *= 2

    def _most(self) -> int:
        return max(_LEAST, MOST * _FULL // max(len(self._chip.made()), _FULL))

    def _look(self) -> Mark:
        newest = self._newest()
        last = newest.tiles[self._number] if isinstance(newest, ChipMark) else None
        return mark_of(self.tile, self.machine, self._left or last)

    def _mark(self, *, changed: bool = False) -> Mark:
        chip, network, newest = self._chip, self._chip.network, self._newest()
        last = newest if isinstance(newest, ChipMark) else None
        tiles = {}
        for tile in chip.made():
            t = chip.number_of(tile.xy)
            tiles[t] = mark_of(
                tile, tile.machine, last.tiles.get(t) if last else None, changed=changed
            )
        return ChipMark(
            **{**vars(tiles[self._number]), "error": chip.runner.error},
            tiles=tiles,
            arrays={m.name: getattr(network.state, m.name).copy() for m in saved.SAVED},
            memory={
                place: _shared(page, last.memory.get(place) if last else None)
                for place, page in network.pages.items()
            },
            broken=chip.runner.broken,
        )

    # Moments

    def _restore(self, mark: Mark) -> None:
        assert isinstance(mark, ChipMark)
        chip = self._chip
        chip_snapshot.restore(
            chip.network,
            {chip.number_of(tile.xy): tile for tile in chip.made()},
            chip.runner,
            mark.chip(),
        )
        self.machine.seen.clear()

    def last_stop(self) -> Stop:
        """As History; who wrote over the NoC with the source line that its own tile knows."""
        stop = super().last_stop()
        change = stop.change
        if change is None or change.where.core is None:
            return stop
        xy = change.where.tile
        if not isinstance(xy, tuple) or xy == self.tile.xy:
            return stop
        sender, core = self._chip.tile[xy], CORE_NAMES.index(change.where.core)
        where = report.where_core(sender, core, change.where.pc)
        return replace(stop, change=replace(change, where=where))


def _shared(page: npt.NDArray[np.uint8], before: bytes | None) -> bytes:
    """The bytes of a page: the same object as before, if they are equal."""
    data = page.tobytes()
    return before if before is not None and data == before else data
