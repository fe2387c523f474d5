"""What a program is run on again and again: one tile or one chip, put back to its launch."""

from collections.abc import Sequence
from typing import Any, Protocol

from bhemu.launch.session import launch
from bhemu.machine.machine import Chip
from bhemu.machine.resolve import resolve as address_of
from bhemu.machine.tile import Tile
from bhemu.machine.tile_status import resolve
from bhemu.noc import record
from bhemu.program.schema import OutputSpec, Program
from bhemu.tensix import stops
from bhemu.tensix.state import DTYPE, POINTERS

_ROUNDS = 1 << 40
_PARTS = 8  # of the time that a tile may take; in a part without a word, but the first, it hangs
_SLICE, _STILL = 16, 4  # rounds of a chip, slices without a word or delivery: it hangs
_GO_ON = (stops.STOP_FLUSH, stops.STOP_CODE_PAGE, stops.STOP_LOG)


class Bench(Protocol):
    """A launched program that can be put back and run on."""

    first_clock: int

    @property
    def parts(self) -> Sequence[Sequence[Tile]]:
        """Tiles with the same code."""

    def begin(self) -> None:
        """As it was launched."""

    def ends(self, limit: int) -> bool:
        """Run on; whether the program comes to its end."""

    def reaches(self, clock: int) -> bool | None:
        """Run on to a clock: None where it comes so far, otherwise what `ends` would say."""

    def read(self, spec: OutputSpec) -> bytes:
        """An output."""


class _Kept:
    """The record of a tile as it was launched."""

    def __init__(self, tile: Tile) -> None:
        self._tile, self._buffer = tile, tile.state.buffer.copy()

    def put_back(self) -> None:
        """Restore it, but for pointers to code that has been loaded since."""
        record = self._buffer.view(DTYPE)
        for name in POINTERS:
            record[name][0] = getattr(self._tile.state, name)
        self._tile.state.buffer[:] = self._buffer
        self._tile.stepping.seen.clear()
        if self._tile.network is None:
            self._tile.loop.restored(None, None)


class TileBench:
    """One tile."""

    def __init__(self, program: Program, quantum: int) -> None:
        self.tile: Tile = launch(program, engine="compiled", livelock=0, quantum=quantum)
        self.parts: Sequence[Sequence[Tile]] = [[self.tile]]
        self.first_clock = self.tile.clock
        self._start = _Kept(self.tile)

    def begin(self) -> None:
        """As it was launched."""
        self._start.put_back()

    def ends(self, limit: int) -> bool:
        """Run on; whether the program comes to its end."""
        words = -1
        for _ in range(_PARTS):
            ended = self._runs(limit // _PARTS)
            if ended is not None:
                return ended
            before, words = words, int(self.tile.state.executed.sum())
            if words == before:
                break
        return False

    def reaches(self, clock: int) -> bool | None:
        """Run on to a clock: None where it comes so far, otherwise what `ends` would say."""
        return self._runs(clock - self.tile.clock) if clock > self.tile.clock else None

    def _runs(self, limit: int) -> bool | None:
        """Run on: None where it takes longer, otherwise whether the program has ended."""
        tile = self.tile
        tile.loop.prepare(limit)
        while True:
            status = tile.backend.rounds(_ROUNDS)
            if status in _GO_ON:
                resolve(tile, status)
            elif status == stops.STOP_LIMIT:
                return None
            elif status not in (0, stops.STOP_TIME):
                waits = bool(tile.state.until_count[0])
                return status == (stops.STOP_UNTIL if waits else stops.STOP_IDLE)

    def read(self, spec: OutputSpec) -> bytes:
        """An output."""
        return self.tile.read(address_of(self.tile, spec.at), spec.size)


class ChipBench:
    """A chip: its tiles' records, its own, and the pages of its memory are put back."""

    def __init__(self, program: Program, quantum: int) -> None:
        self.chip: Chip = launch(program, engine="compiled", livelock=0, quantum=quantum)
        self.parts: Sequence[Sequence[Tile]] = [
            [self.chip.tile[xy] for xy in part.at] for part in program.placed()
        ]
        self.first_clock = self.chip.clock
        self._tiles = [_Kept(tile) for tile in self.chip.tiles_made()]
        state = self.chip.network.state
        self._arrays = {m.name: getattr(state, m.name).copy() for m in record.SAVED}
        self._pages = {place: page.copy() for place, page in self.chip.network.pages.items()}

    def begin(self) -> None:
        """As it was launched."""
        for tile in self._tiles:
            tile.put_back()
        network: Any = self.chip.network
        for name, value in self._arrays.items():
            getattr(network.state, name)[...] = value
        for place, page in network.pages.items():
            page[:] = self._pages.get(place, 0)
        self.chip.loop.restored(None, None)

    def ends(self, limit: int) -> bool:
        """Run on; whether the program comes to its end."""
        return bool(self.reaches(self.chip.clock + limit))

    def reaches(self, clock: int) -> bool | None:
        """Run on to a clock: None where it comes so far, otherwise what `ends` would say."""
        still, moved = 0, -1
        while self.chip.clock < clock:
            stop = self.chip.run(limit=clock - self.chip.clock, rounds=_SLICE)
            if stop.reason in ("until", "idle"):
                return stop.reason == ("until" if self.chip.loop.end.words else "idle")
            before, moved = moved, self._moved()
            still = still + 1 if moved == before else 0
            if still == _STILL:
                return False
        return None

    def _moved(self) -> int:
        """How much has happened beside what cores compute."""
        words = sum(int(tile.state.executed.sum()) for tile in self.chip.tiles_made())
        return words + int(self.chip.network.state.delivered[0])

    def read(self, spec: OutputSpec) -> bytes:
        """An output."""
        return self.chip.output(spec)[1]


def bench_of(program: Program, quantum: int) -> Bench:
    """What the program runs on."""
    return TileBench(program, quantum) if program.is_alone else ChipBench(program, quantum)
