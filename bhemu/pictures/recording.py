"""What cores, threads and NoC interfaces do over the time of a run: looked at in small steps.

The run stops every few clock units, which changes nothing of it, and is looked at. Where there are
too many looks every second one is forgotten and the steps become twice as long.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from bhemu.errors import BhemuError
from bhemu.launch.session import Launched
from bhemu.machine.stop import Stop
from bhemu.machine.tile import Tile
from bhemu.machine.word_text import Entry, Places
from bhemu.memmap import CORE_NAMES
from bhemu.program.coordinates import XY
from bhemu.tensix.observe import WORDS_AND_STORES
from bhemu.tensix.rules import CONDITIONS
from bhemu.tensix.state import CORES, THREADS

MOST = 800  # looks that are kept
LANES = (*CORE_NAMES, *(f"T{t}" for t in range(THREADS)), "NoC")
# What a core or thread does in a piece of time; "turn": it could go on, but others had their turn.
KINDS = ("works", "turn", "polls", "waits", "parked", "reset", "stopped", "idle")


class Seen(NamedTuple):
    """One look at a tile: (state, function) of each core, counts, what threads wait for."""

    cores: tuple[tuple[str, str], ...]
    polls: tuple[bool, ...]
    retired: tuple[int, ...]
    executed: tuple[int, ...]
    waits: tuple[str, ...]
    requests: int
    under_way: int


class Segment(NamedTuple):
    """A stretch of time in which a lane does one thing."""

    begin: int
    end: int
    kind: str
    text: str


@dataclass
class Recording:
    """A run as it was seen: clocks of the looks, looks and executed words of each tile."""

    clocks: list[int] = field(default_factory=list)
    seen: dict[XY, list[Seen]] = field(default_factory=dict)
    words: dict[XY, list[Entry]] = field(default_factory=dict)
    places: dict[XY, Places] = field(default_factory=dict)
    stop: Stop | None = None
    error: BhemuError | None = None
    cut: bool = False  # not all words are there

    def lane(self, xy: XY, name: str) -> list[Segment]:
        """What a core, thread or the NoC interface of a tile does, equal neighbours joined."""
        found: list[Segment] = []
        for begin, end, before, after in self._pieces(xy):
            if end == begin:
                continue
            kind, text = _what(name, before, after)
            if found and found[-1][2:] == (kind, text):
                found[-1] = found[-1]._replace(end=end)
            else:
                found.append(Segment(begin, end, kind, text))
        return found

    def _pieces(self, xy: XY) -> Iterator[tuple[int, int, Seen, Seen]]:
        looks = self.seen[xy]
        late = len(self.clocks) - len(looks)  # a tile of a chip that was not there yet
        for i in range(1, len(looks)):
            yield self.clocks[late + i - 1], self.clocks[late + i], looks[i - 1], looks[i]


def _what(name: str, before: Seen, after: Seen) -> tuple[str, str]:
    """(kind, text) of a lane between two looks."""
    if name == "NoC":
        sent = after.requests - before.requests
        if sent or after.under_way:
            return "works", f"{after.under_way} requests under way" if after.under_way else "sends"
        return "idle", ""
    if name in CORE_NAMES:
        c = CORE_NAMES.index(name)
        state, function = after.cores[c]
        moved = after.retired[c] != before.retired[c]
        kind = {"running": "works", "blocked": "waits", "assert": "stopped"}.get(state, state)
        if kind == "works" and after.polls[c]:
            kind = "polls"
        elif kind == "works" and not moved:
            kind = "turn"
        return kind if kind in KINDS else "stopped", function
    t = int(name[1])
    if after.executed[t] != before.executed[t]:
        return "works", ""
    return ("waits", after.waits[t]) if after.waits[t] else ("idle", "")


class Recorder:
    """Runs a launched program to its end and looks at it on the way.

    words: keep executed words and device stores too, at most so many.
    """

    def __init__(self, launched: Launched, *, words: int = 0) -> None:
        self._launched, self._words = launched, words
        self._functions: dict[tuple[XY, int, int], str] = {}
        self.recording = Recording()
        if words:
            for tile in self._tiles():
                tile.state.trace[0] = WORDS_AND_STORES

    def _tiles(self) -> tuple[Tile, ...]:
        return self._launched.tiles

    def run(self) -> Recording:
        """The whole run; its error, if it has one, is in the recording."""
        found, spec = self.recording, self._launched.program.run
        began, period = time.monotonic(), 1
        loop = self._launched.machine.loop
        loop.continues_last_run = False
        self._look()
        try:
            while True:
                found.stop = stop = self._piece(period, began)
                loop.continues_last_run = True
                self._look()
                over = spec.limit is not None and self._launched.clock >= spec.limit
                if stop.reason != "limit" or over:
                    found.error = self._launched.unfinished(stop)
                    break
                if len(found.clocks) > MOST:
                    period *= 2
                    self._thin_out()
        except BhemuError as error:
            found.error = error
            self._look()
        finally:
            loop.continues_last_run = False
            self._take_words()
        return found

    def _piece(self, period: int, began: float) -> Stop:
        spec = self._launched.program.run
        if spec.limit is not None:
            period = max(min(period, spec.limit - self._launched.clock), 1)
        timeout = spec.timeout_s
        if timeout is not None:
            timeout = max(timeout - (time.monotonic() - began), 0.001)
        return self._launched.machine.run(limit=period, timeout_s=timeout)

    def _thin_out(self) -> None:
        found = self.recording
        keep = range(0, len(found.clocks), 2)
        for xy, looks in found.seen.items():
            late = len(found.clocks) - len(looks)
            found.seen[xy] = [looks[i - late] for i in keep if i >= late]
        found.clocks = [found.clocks[i] for i in keep]

    def _look(self) -> None:
        found = self.recording
        found.clocks.append(self._launched.clock)
        for tile in self._tiles():
            found.seen.setdefault(tile.xy, []).append(self._seen(tile))
        if self._words:
            self._take_words()

    def _seen(self, tile: Tile) -> Seen:
        s = tile.state
        names = tile.core
        return Seen(
            tuple(
                (core.state, self._function(tile, c, int(s.pc[c])))
                for c, core in enumerate(names.values())
            ),
            tuple(bool(s.loop_length[c]) for c in range(CORES)),
            tuple(int(n) for n in s.retired),
            tuple(int(n) for n in s.executed),
            tuple(self._wait(s, t) for t in range(THREADS)),
            int(s.noc_issued[0]),
            int(s.noc_requests[0]),
        )

    @staticmethod
    def _wait(s: object, t: int) -> str:
        full, number = int(s.gate_full[t]), int(s.gate_blocked[t])  # type: ignore[attr-defined]
        condition = CONDITIONS.get(number)
        return condition.text if full and condition is not None else ""

    def _function(self, tile: Tile, core: int, pc: int) -> str:
        key = tile.xy, core, pc
        if key not in self._functions:
            name = tile.locate(core, pc)[0]
            self._functions[key] = (name or "").split("+")[0]
        return self._functions[key]

    def _take_words(self) -> None:
        found = self.recording
        for tile in self._tiles() if self._words else ():
            found.places.setdefault(tile.xy, Places(tile))
            tile.drain_log()
            taken = found.words.setdefault(tile.xy, [])
            room = self._words - sum(map(len, found.words.values()))
            taken += tile.log[:room]
            found.cut |= len(tile.log) > room
            tile.log.clear()
            if found.cut:
                tile.state.trace[0] = 0
