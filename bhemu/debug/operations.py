"""What a host asked for, one operation after the other: profiles of parts of a session.

An operation is what a session holds from the first write of the host after a wait to the end of
its next wait. A wait is a read of up to 64 bytes that the host does again at once, or that gives
other bytes than the host has last written or read there (0 at first, of memory). In slow dispatch
that is one program; in fast dispatch all that was put into the queue between two waits of the host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from bhemu.debug.profile import Profile, reported
from bhemu.memmap import L1_SIZE
from bhemu.program.recorded import ARRIVED, READ, SENT, WRITE, Act
from bhemu.timing import spent
from bhemu.timing.loop import FIRST_CORE, FIRST_THREAD

if TYPE_CHECKING:
    from bhemu.machine.machine import Chip
    from bhemu.machine.recorded_host import RecordedHost
    from bhemu.machine.tile import Tile
    from bhemu.noc.grid import XY

_LONGEST_WORD = 64  # bytes of a read that may be a wait
_SHOWN = 3  # waits of an operation


class Operation(NamedTuple):
    """The host's acts `first` to `last`, cycles `begin` to `end`, the tiles that took part."""

    first: int
    last: int
    begin: int
    end: int
    profiles: tuple[Profile, ...]

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready: as of a whole run, without transfers and rows, and what it was."""
        report = reported(self.end - self.begin, list(self.profiles), [], complete=True)
        named = ("cycles", "bound", "agents", "units", "lines", "sources", "estimates")
        told = {"acts": [self.first, self.last], "begin": self.begin, "end": self.end}
        return {**told, **{name: report[name] for name in named}}

    def lines(self, number: int) -> Iterator[str]:
        """In words: how long, which agents, what they waited for longest."""
        report = self.as_dict()
        tiles, cycles = len(self.profiles), report["cycles"]
        head = f"operation {number}: {cycles} cycles, {tiles} tile{'' if tiles == 1 else 's'}"
        yield f"{head}, acts {self.first} to {self.last}; works most: {report['bound'] or 'none'}"
        rows = [(row, one.xy) for one in self.profiles for row in one.rows if row.waits_for]
        for row, (x, y) in sorted(rows, key=lambda pair: -pair[0].cycles)[:_SHOWN]:
            what = f"({x},{y}) {row.agent} for {row.waits_for}: {row.where}"
            yield f"{row.cycles:12} {row.source:9} {what}"


def ends(acts: Sequence[Act]) -> list[int]:
    """The numbers of the acts at which an operation ends."""
    found, waited = list[int](), -1
    held: dict[tuple[XY, int], bytes] = {}
    before: tuple[int, XY, int, int] | None = None
    for number, act in enumerate(acts):
        if act.kind in (SENT, ARRIVED):
            continue
        if act.kind == WRITE:
            if waited >= 0:
                found.append(waited)
            waited = -1
        what = act.kind, act.xy, act.address, len(act.data)
        if act.kind == READ and len(act.data) <= _LONGEST_WORD:
            blank = bytes(len(act.data)) if act.address < L1_SIZE else act.data
            known = held.get((act.xy, act.address), blank)
            if what == before or known[: len(act.data)] != act.data[: len(known)]:
                waited = number
        held[act.xy, act.address] = act.data
        before = what
    return [*found, waited] if waited >= 0 else found


def _core(agent: int) -> int:
    """The core whose code an agent's places are in, -1 of units."""
    return agent - FIRST_CORE if agent < FIRST_THREAD else agent - FIRST_THREAD + 1


class _Counted(NamedTuple):
    """What a tile had spent and done when an operation began."""

    cycles: Any
    times: Any
    words: Any
    requests: int


class Operations:
    """Watches the host of a session, and keeps its operations.

    name: finds names for the code at (core, pc)s of a tile."""

    def __init__(
        self, chip: Chip, host: RecordedHost, name: Callable[[Tile, set[tuple[int, int]]], object]
    ) -> None:
        self._chip, self._host, self._name = chip, host, name
        self._ends = ends(host.acts)
        self._before: dict[XY, _Counted] = {}
        self._first = self._begin = 0
        self.found: list[Operation] = []
        host.done = self._note_done

    def _note_done(self, number: int) -> None:
        """The host has done an act."""
        if not self._ends or number < self._ends[0]:
            return
        self._ends.pop(0)
        asked = {act.xy for act in self._host.acts[self._first : number + 1]}
        profiles = tuple(
            profile
            for tile in self._chip.tiles_made()
            if (profile := self._of_tile(tile, asked=tile.xy in asked)) is not None
        )
        clock = self._chip.clock
        self.found.append(Operation(self._first, number, self._begin, clock, profiles))
        self._first, self._begin = number + 1, clock

    def _of_tile(self, tile: Tile, *, asked: bool) -> Profile | None:
        """The profile since the operation began; None of a tile that only ran firmware."""
        s = tile.state
        self._cut_waits(tile)
        now = _Counted(
            s.spent_cycles.copy(), s.spent_times.copy(), s.op_count.copy(), int(s.noc_issued[0])
        )
        was = self._before.get(tile.xy) or _Counted(0, 0, 0, 0)
        self._before[tile.xy] = now
        taken, words = now.cycles - was.cycles, now.words - was.words
        if not asked and not words.any() and now.requests == was.requests:
            return None
        used = s.spent_key[taken > 0]
        self._name(tile, {(c, int(pc)) for a, pc, _ in used if (c := _core(int(a) - 1)) >= 0})
        return Profile(tile, (taken, now.times - was.times, words))

    @staticmethod
    def _cut_waits(tile: Tile) -> None:
        """A wait that goes on counts from here on: what was before belongs to no operation."""
        s = tile.state
        for agent in (s.spent_for != spent.WORKS).nonzero()[0]:
            s.spent_since[agent] = max(int(s.spent_since[agent]), int(s.clock[0]))
