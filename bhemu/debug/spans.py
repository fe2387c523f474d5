"""What agents do when, in modelled time: spans, values that change, requests; what links carry."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from bhemu.debug.profile import AGENTS, asked, core_of, reason, transfer_source
from bhemu.machine import error_text
from bhemu.memmap import CORE_NAMES
from bhemu.noc import timed
from bhemu.noc.grid import XY, tile_at
from bhemu.noc.record import NOC_LOG
from bhemu.tensix import observe
from bhemu.tensix.insn import instructions
from bhemu.tensix.state import CORES, THREADS, UNITS
from bhemu.tensix.thread import WAIT_SEM_FULL, WAIT_SEM_ZERO

if TYPE_CHECKING:
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
        for agent in range(len(AGENTS) if not self.cut else 0):
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
        return Span(AGENTS[agent], first, last, reason(condition), text, place, mask, rising)

    def _place(self, agent: int, pc: int) -> tuple[str, str]:
        if (agent, pc) not in self._places:
            where = error_text.where_core(self._tile, core_of(self._tile, agent, pc), pc)
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
        told = asked(what), noc, size, begins, arrives, end, transfer_source(what)
        found.append(Request(tile_at(key >> 8), name, pc, *told))
    return found, count <= NOC_LOG
