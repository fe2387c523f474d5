"""How a difference in memory spreads over a chip: who carries it over the NoC, who uses it at last.

Two runs from one launch differ in some bytes. Where only memory differs behind a round, requests
have carried the difference; the first that differs in anything else uses it.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from bhemu.devices import niu_request as request
from bhemu.errors import BhemuError, Where
from bhemu.machine import error_text
from bhemu.machine.stop import now
from bhemu.machine.tile import Tile
from bhemu.tensix.state import OFFSET
from bhemu.tensix.stops import STOP_TIME
from bhemu.why.perturb import NOTHING, Bytes, Fill, Reader, Trials, one_step, seen

_HOPS = 16  # that are followed
_UNDER_WAY = ("noc_data", "noc_request", "noc_arrived")  # what carries, of a tile's record
Known = dict[int, tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]]


class Spread:
    """Follows a difference of `fill` from the launch of a chip on."""

    def __init__(self, trials: Trials, fill: Fill) -> None:
        self._trials, self._chip, self._tiles = trials, trials.machine, trials.tiles
        self._fills = NOTHING, fill
        self._rounds = 0
        plain = self._at(NOTHING, 0)
        self._began = int(self._chip.round)
        # by tile or page: bytes that are known to differ, as they are in both runs
        self._known: Known = {n: (at, plain[n][at], values) for n, at, values in fill.parts()}

    def reader(self) -> Reader | None:
        """Who uses it, or who has carried it last; None when nobody has."""
        for fill in self._fills:
            self._trials.result(fill)
            self._rounds = max(self._rounds, int(self._chip.round) - self._began)
        carriers: list[Where] = []
        low, clock = 0, 0
        for _ in range(_HOPS):
            number = self._first(low)
            if number is None:
                break
            who, clock, uses = self._within(number)
            if uses and who is not None:
                return Reader(who, clock, tuple(carriers))
            if who is not None and who not in carriers:
                carriers.append(who)
            low = number
            self._learn(number)
        return Reader(carriers[-1], clock, tuple(carriers[:-1])) if carriers else None

    # Behind rounds

    def _at(self, fill: Fill, rounds: int) -> Bytes:
        """Records and pages after so many rounds."""
        self._trials.begin(fill)
        if rounds:
            with contextlib.suppress(BhemuError):  # how the run ended is its state too
                self._chip.run(rounds=rounds)
        return [one.copy() for one in self._trials.bytes()]

    def _both(self, rounds: int) -> tuple[Bytes, Bytes]:
        plain, other = (self._at(fill, rounds) for fill in self._fills)
        return plain, other

    def _new(self, number: int, plain: Any, other: Any, hidden: tuple[str, ...]) -> Any:
        """Where a tile or page differs that was not known to; `hidden` members left out."""
        if number < len(self._tiles):
            plain, other = seen(plain), seen(other)
            for name in hidden:
                size = getattr(self._tiles[number].state, name).nbytes
                for one in (plain, other):
                    one[OFFSET[name] : OFFSET[name] + size] = 0
        differ = plain != other
        if number in self._known:
            at, was, changed = self._known[number]
            differ[at[(plain[at] == was) & (other[at] == changed)]] = False
        return np.flatnonzero(differ)

    def _first(self, low: int) -> int | None:
        """The first round behind round `low` after which something new differs."""
        high = self._rounds
        if not self._differs(high):
            return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._differs(middle) else (middle, high)
        return high

    def _differs(self, rounds: int) -> bool:
        pairs = enumerate(zip(*self._both(rounds), strict=True))
        return any(self._new(n, a, b, _UNDER_WAY).size for n, (a, b) in pairs)

    def _learn(self, rounds: int) -> None:
        """What differs behind a round is known from now on."""
        for n, (a, b) in enumerate(zip(*self._both(rounds), strict=True)):
            at = np.flatnonzero(a != b)
            self._known[n] = at, a[at].copy(), b[at].copy()

    # Within a round

    def _within(self, rounds: int) -> tuple[Where | None, int, bool]:
        """Who makes the difference in a round, its tile's clock, whether it uses the value."""
        starts = []
        for fill in self._fills:
            self._at(fill, rounds - 1)
            starts.append(self._chip.snapshot())
        behind = [self._run(start) for start in starts]
        rows = list(self._reads())  # of the other run
        pairs = list(enumerate(zip(*behind, strict=True)))[: len(self._tiles)]
        for hidden in (_UNDER_WAY, ()):
            for n, (a, b) in pairs:
                if self._new(n, a, b, hidden).size:
                    return *self._step(n, starts, hidden), bool(hidden)
        ends = self._both(rounds)
        for n, tile, (low, high), where in rows:
            at = self._new(n, ends[0][n], ends[1][n], _UNDER_WAY)
            if ((at >= low) & (at < high)).any():
                return where, now(tile.state), False
        return None, 0, False

    def _run(self, start: Any, tile: Tile | None = None, clock: int = -1) -> Bytes:
        """The tiles' part of a round, of `tile` up to its `clock`."""
        chip = self._chip
        chip.restore(start)
        chip.network.state.limit[0] = -1  # the program's own
        if tile is not None:
            tile.state.limit[0] = clock
        self._go()
        if tile is not None:
            tile.state.limit[0] = -1
        return [one.copy() for one in self._trials.bytes()]

    def _go(self) -> None:
        """Let the tiles run whose turn it is in this round."""
        network = self._chip.network
        due = 1
        while due:
            due = network.call("open_round", 0)
            network.call("run_tiles", 1 << 16)
            for tile in self._tiles:
                tile.backend.surface()
            state = network.state
            if not ((state.due != 0) & (state.stopped == STOP_TIME)).any():
                return

    def _step(self, n: int, starts: list[Any], hidden: tuple[str, ...]) -> tuple[Where, int]:
        """The step of tile `n` that makes its record differ, and the clock behind it."""
        tile = self._tiles[n]
        self._chip.restore(starts[0])
        low = now(tile.state)
        self._run(starts[1])
        high = now(tile.state)
        while high - low > 1:
            middle = (low + high) // 2
            a, b = (self._run(start, tile, middle)[n] for start in starts)
            low, high = (low, middle) if self._new(n, a, b, hidden).size else (middle, high)
        self._run(starts[1], tile, low)  # the chip has no limit of its own now
        tile.state.limit[0] = low + 1
        try:
            return one_step(tile, self._go), high
        finally:
            tile.state.limit[0] = -1

    def _reads(self) -> Iterator[tuple[int, Tile, tuple[int, int], Where]]:
        """The reads that wait for their delivery: tile, own range, who has asked."""
        for n, tile in enumerate(self._tiles):
            s = tile.state
            for row in s.noc_request[: int(s.noc_requests[0])]:
                if int(row[request.CONTROL]) & 3 == request.READ:
                    low = int(row[request.LOCAL])
                    area = low, low + int(row[request.LENGTH])
                    core, pc = int(row[request.CORE]), int(row[request.PC])
                    yield n, tile, area, error_text.where_core(tile, core, pc)
