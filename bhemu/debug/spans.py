"""What agents do when, in modelled time: spans, values, requests, operations of a host."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from bhemu.debug import profile
from bhemu.machine import error_text
from bhemu.memmap import CORE_NAMES, L1_SIZE
from bhemu.noc import timed
from bhemu.noc.grid import XY, tile_at
from bhemu.noc.record import NOC_LOG
from bhemu.program.recorded import ARRIVED, READ, SENT, WRITE, Act
from bhemu.tensix import observe
from bhemu.tensix.insn import instructions
from bhemu.tensix.state import CORES, THREADS, UNITS
from bhemu.tensix.thread import WAIT_SEM_FULL, WAIT_SEM_ZERO
from bhemu.text import counted
from bhemu.timing.loop import FIRST_CORE, FIRST_THREAD

if TYPE_CHECKING:
    from bhemu.machine.machine import Chip
    from bhemu.machine.recorded_host import RecordedHost
    from bhemu.machine.tile import Tile
    from bhemu.noc.network import Network


MOST = 400_000  # spans and changes that are kept, of all tiles
SEMAPHORES = 8
_AGENT = observe.WAITS - 1


class Span(NamedTuple):
    """What an agent does in cycles begin to end: `waits_for` is "" where it works.

    text: the word of a thread or unit, of a core the function. semaphores: those that it waits
    for, as a mask; rising: whether it waits until they rise.
    """

    agent: str
    begin: int
    end: int
    waits_for: str
    text: str
    place: str
    semaphores: int
    rising: bool


class Change(NamedTuple):
    """A semaphore (0-7), or the words in the FIFO of thread `which` - 8, has a new value.

    by: the agent that changed a semaphore, "" where it is not known.
    """

    clock: int
    which: int
    value: int
    by: str

    @property
    def name(self) -> str:
        """What it is, in words."""
        if self.which < SEMAPHORES:
            return f"semaphore {self.which}"
        return f"words in the FIFO of T{self.which - SEMAPHORES}"


class Request(NamedTuple):
    """A request to the NoC: issued at `begin`, performed at `arrives`, back at `end`."""

    tile: XY
    core: str
    pc: int
    what: str
    noc: int
    size: int
    begin: int
    arrives: int
    end: int
    source: str


class _Kept(list[tuple[int, int, int, int, int]]):
    """The log of a tile, which holds no more than it may."""

    def __init__(self, tile: Tile, most: int) -> None:
        super().__init__()
        self.state, self.most = tile.state, most

    def append(self, entry: tuple[int, int, int, int, int]) -> None:
        if len(self) < self.most:
            super().append(entry)
        else:
            self.state.trace[0] = 0


def begin(tile: Tile, tiles: int = 1) -> None:
    """From now on the tile, one of so many, logs what its agents do, up to its share of MOST."""
    tile.log = _Kept(tile, max(MOST // tiles, 1))
    tile.state.trace[0] = observe.SPANS


class Timeline:
    """What a tile has logged, in the order of time; `cut`: not all of it is there."""

    def __init__(self, tile: Tile) -> None:
        self._tile = tile
        tile.drain_log()
        s = tile.state
        self.cut, self.until = int(s.trace[0]) != observe.SPANS, int(s.clock[0])
        self._places: dict[tuple[int, int], tuple[str, str]] = {}
        self.spans: list[Span] = []
        self.changes: list[Change] = []
        for kind, word, pc, last, clock in (*tile.log, *self._open()):
            which = (kind & _AGENT) - observe.FIRST_COUNTER
            if which >= 0:
                self.changes.append(Change(clock, which, word, _by(last)))
            else:
                self.spans.append(self._span(kind, word, pc, clock, clock + last))
        self.spans.sort(key=lambda span: (span.begin, span.end))

    def _open(self) -> Iterator[tuple[int, int, int, int, int]]:
        """What agents still do at the end."""
        s = self._tile.state
        for c in range(CORES if not self.cut else 0):
            if s.span[c, 0]:
                first = int(s.span[c, 0]) - 1
                kind = observe.FIRST_SPAN + UNITS + c
                yield kind, 0, int(s.span[c, 2]), int(s.span[c, 1]) - first, first
        for agent in range(len(profile.AGENTS) if not self.cut else 0):
            condition, since = int(s.spent_for[agent]), int(s.spent_since[agent])
            if condition and self.until > since:
                kind = observe.FIRST_SPAN + agent | observe.WAITS | int(s.spent_of[agent]) << 9
                yield kind, condition, 0, self.until - since, since

    def _span(self, kind: int, word: int, pc: int, first: int, last: int) -> Span:
        agent = (kind & _AGENT) - observe.FIRST_SPAN
        condition = word if kind & observe.WAITS else 0
        function, place = self._place(agent, pc)
        text, mask = function, 0
        if condition:
            mask = kind >> 9 if condition in (WAIT_SEM_ZERO, WAIT_SEM_FULL) else 0
        elif not UNITS <= agent < UNITS + CORES:
            text = instructions()[word >> 24].name
        rising = condition == WAIT_SEM_ZERO
        return Span(
            profile.AGENTS[agent], first, last, profile.reason(condition), text, place, mask, rising
        )

    def _place(self, agent: int, pc: int) -> tuple[str, str]:
        if (agent, pc) not in self._places:
            where = error_text.where_core(self._tile, profile.core_of(self._tile, agent, pc), pc)
            function = where.function or (where.symbol or "").split("+")[0]
            self._places[agent, pc] = (function, str(where) if pc else "")
        return self._places[agent, pc]

    def posts(self) -> Iterator[tuple[Change, Span]]:
        """The change of a semaphore that ended a wait, with the wait."""
        of: dict[int, list[tuple[Change, bool]]] = defaultdict(list)
        before = [0] * (SEMAPHORES + THREADS)
        for change in self.changes:
            of[change.which].append((change, change.value > before[change.which]))
            before[change.which] = change.value
        for span in self.spans:
            ended = [
                change
                for which in range(SEMAPHORES)
                if span.semaphores >> which & 1
                for change, rises in of[which]
                if rises == span.rising and span.begin <= change.clock <= span.end
            ]
            if ended and span.end < self.until:
                yield max(ended, key=lambda change: change.clock), span


def _by(agent: int) -> str:
    """The agent of `sem_by` (tensix/semaphores.py)."""
    if agent == 0:
        return ""
    thread, core = (agent - 1) & 7, (agent - 1) >> 3
    return f"T{thread}" if thread < THREADS else CORE_NAMES[core]


def requests(network: Network) -> tuple[list[Request], bool]:
    """The requests of a chip in the order of their numbers, and whether all of them are there."""
    c = network.state
    count = int(c.noc_logged[0])
    stages: dict[tuple[int, int], list[tuple[int, ...]]] = defaultdict(list)
    for row in c.noc_log[: min(count, NOC_LOG)]:
        key, number, *rest = (int(n) for n in row)
        stages[key, number].append(tuple(rest))
    found = []
    for (key, _), rows in stages.items():
        stage, now, due, pc, what, noc, _, size = rows[-1]
        at = [row[1] for row in rows if row[0] == timed.ARRIVES]
        begins, arrives = rows[0][1], at[0] if at else due
        core = key & 0xFF
        name = CORE_NAMES[core] if core < len(CORE_NAMES) else "host"
        end = max(due, now) if stage != timed.ISSUED else arrives
        told = profile.asked(what), noc, size, begins, arrives, end, profile.transfer_source(what)
        found.append(Request(tile_at(key >> 8), name, pc, *told))
    return found, count <= NOC_LOG


# What a host asked for, one operation after the other: profiles of parts of a session.
#
# An operation is what a session holds from the first write of the host after a wait to the end of
# its next wait. A wait is a read of up to 64 bytes that the host does again at once, or that gives
# other bytes than the host has last written or read there (0 at first, of memory). In slow
# dispatch that is one program; in fast dispatch all that was put into the queue between two waits
# of the host.

_LONGEST_WORD = 64  # bytes of a read that may be a wait
_SHOWN = 3  # waits of an operation


class Operation(NamedTuple):
    """The host's acts `first` to `last`, cycles `begin` to `end`, the tiles that took part."""

    first: int
    last: int
    begin: int
    end: int
    profiles: tuple[profile.Profile, ...]

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready: as of a whole run, without transfers and rows, and what it was."""
        report = profile.reported(self.end - self.begin, list(self.profiles), [], complete=True)
        named = ("cycles", "bound", "agents", "units", "lines", "sources", "estimates")
        told = {"acts": [self.first, self.last], "begin": self.begin, "end": self.end}
        return {**told, **{name: report[name] for name in named}}

    def lines(self, number: int) -> Iterator[str]:
        """In words: how long, which agents, what they waited for longest."""
        report = self.as_dict()
        tiles = counted(len(self.profiles), "tile")
        head = f"operation {number}: {report['cycles']} cycles, {tiles}"
        yield f"{head}, acts {self.first} to {self.last}; works most: {report['bound'] or 'none'}"
        for row, (x, y) in profile.waits(self.profiles)[:_SHOWN]:
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
        named = {act.xy for act in self._host.acts[self._first : number + 1]}
        profiles = tuple(
            own
            for tile in self._chip.tiles_made()
            if (own := self._of_tile(tile, asked=tile.xy in named)) is not None
        )
        clock = self._chip.clock
        self.found.append(Operation(self._first, number, self._begin, clock, profiles))
        self._first, self._begin = number + 1, clock

    def _of_tile(self, tile: Tile, *, asked: bool) -> profile.Profile | None:
        """The profile since the operation began; None of a tile that only ran firmware."""
        s = tile.state
        # A wait that goes on counts from here on: what was before belongs to no operation
        for agent in (s.spent_for != observe.WORKS).nonzero()[0]:
            s.spent_since[agent] = max(int(s.spent_since[agent]), int(s.clock[0]))
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
        return profile.Profile(tile, (taken, now.times - was.times, words))
