"""What is ordered in a run of several tiles: vector clocks that go from tile to tile with requests.

The clock of a tile's agents (order.py) is wider here: behind its own agents stand the cores and
threads of all tiles, and then channels. A channel is an agent that makes requests arrive one behind
the other: those of one kind from one tile to one place, on one NoC and static virtual channel. A
linked request is before the next one whatever this is; a read is behind the writes of its channel.
An increment is not: no source says that it waits for a write. Source: NoC Ordering, ISA.
"""

from typing import Any

import numpy as np

from bhemu.devices import niu_request as request
from bhemu.tensix.state import CORES, THREADS
from bhemu.why.ordering.vector_clocks import AGENTS, Clock, Order

AGENTS_SHARED = CORES + THREADS  # of a tile, that other tiles know
_CHANNELS = 96
_VIRTUAL = 7 << 13 | request.STATIC_CHANNEL


class TileOrder(Order):
    """The clocks of a tile's agents, with what they know of other tiles."""

    def __init__(self, number: int, tiles: int) -> None:
        super().__init__(units=False, width=AGENTS + AGENTS_SHARED * tiles + _CHANNELS)
        low = AGENTS + AGENTS_SHARED * number
        self._own = slice(low, low + AGENTS_SHARED)

    def exported(self, agent: int) -> Clock:
        """What an agent knows, in the form that all tiles share."""
        return self.shared(self.clocks[agent])

    def shared(self, clock: Clock) -> Clock:
        """A clock of this tile in that form."""
        made = clock[AGENTS:].copy()
        own = slice(self._own.start - AGENTS, self._own.stop - AGENTS)
        np.maximum(made[own], clock[:AGENTS_SHARED], out=made[own])
        return made

    def imported(self, shared: Clock) -> Clock:
        """The other way round."""
        made = np.zeros(self._width, np.int64)
        made[AGENTS:] = shared
        made[:AGENTS_SHARED] = made[self._own]
        return made

    def tell(self, name: Any, shared: Clock) -> None:
        """Whoever acquires `name` from now on is behind that moment."""
        held = self._objects.setdefault(name, np.zeros(self._width, np.int64))
        np.maximum(held, self.imported(shared), out=held)

    def learn(self, agent: int, shared: Clock) -> None:
        """An agent is behind a moment that a clock of all tiles tells."""
        self._join(agent, self.imported(shared))


class Channels:
    """The agents that make requests arrive."""

    def __init__(self, tiles: int) -> None:
        self._first = AGENTS_SHARED * tiles
        self._numbers: dict[Any, int] = {}
        self._last: dict[Any, Clock] = {}
        self._linked: dict[Any, Clock] = {}
        self._counts = np.zeros(self._first + _CHANNELS, np.int64)
        self._next = 0

    def arrival(self, tile: int, row: Any, known: Clock) -> tuple[int, Clock]:
        """A request arrives: who makes it, and what is before that."""
        control, kind = int(row[request.CONTROL]), int(row[request.CONTROL]) & 3
        way = tile, int(row[request.NOC]), int(row[request.GIVEN])
        static = bool(control & request.STATIC_CHANNEL)
        key = (*way, control & (_VIRTUAL | request.MULTICAST), kind)
        before = [known]
        if static:
            before += self._of(key)
            if kind == request.READ:
                before += self._of((*key[:-1], request.WRITE))
        before += [self._linked[way]] if way in self._linked else []
        number = self._number(key if static else (*key, self._next))
        clock = self._moment(number, before)
        self._last[key] = clock
        self._linked.pop(way, None)
        if control & request.LINKED:
            self._linked[way] = clock
        return number, clock

    def leaving(self, tile: int, noc: int, known: Clock) -> tuple[int, Clock]:
        """The source of a write is read."""
        key = "source", tile, noc
        number = self._number(key)
        clock = self._last[key] = self._moment(number, [known, *self._of(key)])
        return number, clock

    def _moment(self, number: int, before: list[Clock]) -> Clock:
        clock: Clock = np.maximum.reduce(before)
        self._counts[number] += 1
        clock[number] = self._counts[number]
        return clock

    def _of(self, key: Any) -> list[Clock]:
        return [self._last[key]] if key in self._last else []

    def _number(self, key: Any) -> int:
        """The agent; with too many of them some share one, which only hides what is wrong."""
        if key not in self._numbers:
            self._numbers[key] = self._first + self._next % _CHANNELS
            self._next += 1
        return self._numbers[key]
