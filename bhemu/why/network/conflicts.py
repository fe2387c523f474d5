"""Accesses of two tiles that nothing orders, with vector clocks over the network."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bhemu import memmap as mm
from bhemu.devices import niu_request as request
from bhemu.machine.tile import Tile
from bhemu.tensix.state import CORES, THREADS
from bhemu.why.network.flag_words import FlagWord, Look, Value
from bhemu.why.network.transfers import Sent, Transfer, transfer
from bhemu.why.order.record import AGENTS
from bhemu.why.order.sites import is_polled
from bhemu.why.ordering import effects
from bhemu.why.ordering.accesses import Conflict, Event
from bhemu.why.ordering.conflicts import Races
from bhemu.why.ordering.effects import Range, Touched
from bhemu.why.ordering.vector_clocks import Clock, Order
from bhemu.why.walk import Access, Instruction, Step, Word

# What is ordered in a run of several tiles: vector clocks that go from tile to tile with requests.
#
# The clock of agents of a tile is wider here (vector_clocks.py): after its agents stand cores and
# threads of all tiles, and then channels. A channel is an agent that makes requests arrive one
# behind the other: those of one kind from one tile to one place, on one NoC and static virtual
# channel. A linked request is before the next one whatever this is; a read is behind the writes of
# its channel. An increment is not: no source says that it waits for a write. Source: NoC Ordering,
# ISA.

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


# The conflicts of a tile with what other tiles send to it, read of it, or have told it.

_MEMORY = (0x03, 0x23, 0x2F)  # opcodes of loads, stores, atomics
_COUNTERS = range(mm.NIU_COUNTERS, mm.NIU_COUNTERS + 4 * 64, 4)
_TURN = 4  # accesses of a core within one turn of a loop that polls
_SPINS = 3  # loads of one place by one instruction behind which it is polled


@dataclass(frozen=True)
class Passed:
    """A core has looked at a flag word and gone on: `by` are the requests that this takes."""

    core: int
    epoch: int
    word: int
    step: Instruction
    first: int  # the value that the word had at first
    by: tuple[Sent, ...]

    def is_turn_of(self, later: "Passed") -> bool:
        """Whether it was a look in vain, before another one by the same load."""
        same = (self.core, self.word, self.step.pc) == (later.core, later.word, later.step.pc)
        return same and not self.by and later.epoch <= self.epoch + _TURN


Counter = tuple[int, int]  # NoC, number
Asks = Callable[["TileRaces", int, Counter, Look | None], None]


class TileRaces(Races):
    """As Races, with the clocks of all tiles; `asks`: told of looks at counters of the NoC."""

    order: TileOrder

    def __init__(
        self, tile: Tile, number: int, tiles: int, sends: Callable[..., None], asks: Asks
    ) -> None:
        super().__init__(tile, set(), set(), units=False)
        self.order = TileOrder(number, tiles)
        self.number = number
        self.flags: dict[int, FlagWord] = {}
        self.passed: list[Passed] = []
        self.before: list[Event | None] = []  # of each conflict, who wrote there before
        self.firsts: dict[tuple[int, int], int] = {}  # by agent and pc, the first access
        self._sends, self._asks = sends, asks
        self._looks: dict[int, Look | tuple[Counter, Look]] = {}
        self._previous: dict[int, int] = {}  # by number of a write, that of the one before it
        self.last_looks: dict[int, Look] = {}  # by core, at words that others change
        self._data: set[int] = set()  # loads that no branch looks at
        self._before = tile.state.l1.copy()
        self._spins: dict[int, bool] = {}
        self._times: dict[tuple[int, int], tuple[int, int]] = {}

    def executed(self, step: Instruction) -> None:
        """A core has executed an instruction."""
        if step.core in self._looks:
            self._look_on(step)
        if step.word & 3 == 3 and step.word & 0x7F not in _MEMORY:
            return
        access, found = step.access(), effects.NOTHING
        if access is not None:
            if access.private:
                return
            if not mm.NOC0_BASE <= access.address < mm.OVERLAY_BASE:
                found = effects.of_access(step.core, access, self.tile.state.cfg, self.tile.state)
        self.instruction(step, access, found)

    def place_of(self, agent: int) -> int:
        """An agent of this tile, as one that all tiles share."""
        return AGENTS_SHARED * self.number + agent

    def known(self, event: Event, tile: int, agent: int) -> int:
        """How far an agent of a tile had come as far as whoever made an event knew."""
        if isinstance(event, Transfer):
            return int(event.sent.known[AGENTS_SHARED * tile + agent])
        return int(self.order.shared(event.vector)[AGENTS_SHARED * tile + agent])

    # What arrives

    def apply(self, event: Transfer, low: int, high: int) -> None:
        """A request reads or writes a range of L1."""
        number = self._shadow.add(event)
        if event.write:
            self._previous[number] = int(self._shadow.written[low])
        self._compare(event, [(low, high)])
        table = self._shadow.written if event.write else self._shadow.readers(event.agent)
        table[low:high] = number

    def previous(self, event: Event, place: int) -> Event | None:
        """Who had written a place before a write of it, which is the last one or not yet noted."""
        number = int(self._shadow.written[place])
        if self._shadow.events[number] is event:
            number = self._previous.get(number, 0)
        return self._shadow.events[number]

    def written_before(self, low: int) -> Event | None:
        """Who has written a place last."""
        return self._shadow.events[int(self._shadow.written[low])]

    def agent(self, number: int) -> int:
        """An agent that all tiles share, as one of the clocks of this tile."""
        return AGENTS + number

    def arrives(self, sent: Sent, clock: Clock, agent: int) -> None:
        """A request of another tile, or a read of this one, writes to L1 or a device."""
        low, high = sent.own if sent.reads else sent.remote
        if not sent.reads and sent.is_register:
            self.order.tell(low & ~3, clock)
            return
        vector = self.order.imported(clock)
        at = self.agent(agent)
        if sent.is_flag:
            self._flag(sent, low & ~3, clock, agent)
        self.apply(transfer(sent, at, vector, write=True), low, high)

    def _flag(self, sent: Sent, word: int, clock: Clock, agent: int) -> None:
        if word not in self.flags:
            self.flags[word] = FlagWord([self._first_value(word, clock)])
        value = Value(sent.value, clock, agent, int(clock[agent]), sent)
        flag = self.flags[word]
        (flag.added if sent.increments else flag.wrote)(value)

    def _first_value(self, word: int, clock: Clock) -> Value:
        """What a word held before anything arrived in it."""
        event = self.written_before(word)
        if event is None or not isinstance(event.step, Instruction):
            held = int(self._before[word : word + 4].view(np.uint32)[0])
            return Value(held, np.zeros_like(clock))
        stored = event.step.access()
        held = 0 if stored is None else stored.value
        known = self.order.shared(event.vector)
        agent = self.place_of(event.agent)
        return Value(held, known, agent, event.clock)

    def leaves(self, sent: Sent, clock: Clock, agent: int, *, source: Range) -> None:
        """A request reads L1 of this tile."""
        vector, at = self.order.imported(clock), self.agent(agent)
        self.apply(transfer(sent, at, vector, write=False), *source)

    # Conflicts

    def _compare(self, event: Event, ranges: list[Range]) -> None:
        if not isinstance(event, Transfer):
            super()._compare(event, ranges)
            return
        known = event.vector
        for place, old in self._shadow.before(
            ranges,
            event.write,
            lambda old: old.agent == event.agent or old.clock <= known[old.agent],
        ):
            self._keep(Conflict(place, old, event, units=False))

    def _foreign(self, event: Event, place: int) -> None:
        """Config is of one tile: races.py."""

    def home(self, event: Event) -> int:
        """The number of the tile whose core makes an access."""
        return event.sent.tile if isinstance(event, Transfer) else self.number

    def _keep(self, conflict: Conflict) -> None:
        sides = conflict.first, conflict.second
        if self.home(sides[0]) == self.home(sides[1]):
            return
        if conflict.place & ~3 in self.flags and not is_set(conflict):
            return
        key = pc_of(sides[0].step), pc_of(sides[1].step), "L1"
        if key not in self._pairs:
            self._pairs.add(key)
            self.found.append(conflict)
            self.before.append(self._written_before(conflict))

    def _written_before(self, conflict: Conflict) -> Event | None:
        """Who had written the place before the write that conflicts."""
        write = conflict.second if conflict.second.write else conflict.first
        return self.previous(write, conflict.place)

    # What cores do

    def _access(self, step: Step, agent: int, ranges: list[Range], write: bool) -> None:
        if ranges and ranges[0][0] < effects.GPRS:
            epoch = int(self.order.clocks[agent, agent])
            self.firsts.setdefault((agent, pc_of(step)), epoch)
            old = int(self._shadow.written[ranges[0][0]])
            super()._access(step, agent, ranges, write)
            if write:
                self._previous[len(self._shadow.events) - 1] = old

    def _stored_config(self, step: Instruction, agent: int, access: Access) -> None:
        """Config is of one tile: races.py."""

    def _core_access(self, step: Instruction, agent: int, access: Access, found: Touched) -> None:
        if not mm.NOC0_BASE <= access.address < mm.OVERLAY_BASE:
            super()._core_access(step, agent, access, found)
            return
        noc, offset = divmod(access.address - mm.NOC0_BASE, mm.NOC_SIZE)
        register = offset % mm.NOC_CMD_BUF_OFFSET
        if access.writes and register == mm.NOC_CMD_CTRL and access.value & 1:
            self._sends(self, step, agent)
        elif access.reads and register in _COUNTERS:
            counter = noc, register - mm.NIU_COUNTERS >> 2
            self._begin((counter, Look(0, step, 0)), step.core)

    def _l1(self, step: Instruction, agent: int, access: Access, found: Touched) -> None:
        word = access.address & ~3
        flag = self.flags.get(word)
        if flag is None:
            if access.reads and self._polling(step, access):
                self.polled.add(word)
            super()._l1(step, agent, access, found)
            if access.reads and not access.writes and step.pc not in self._data:
                self._begin(Look(word, step, 0), step.core)
            return
        if access.writes:
            self._access(step, agent, found.writes, write=True)
            value = int(self.tile.state.l1[word : word + 4].view(np.uint32)[0])
            at = self.place_of(agent)
            epoch = int(self.order.clocks[agent, agent])
            flag.wrote(Value(value, self.order.exported(agent), at, epoch))
        elif access.reads:
            self._begin(Look(word, step, len(flag.values)), step.core)

    def _poll(self, step: Instruction, agent: int, word: int) -> None:
        self._acquire_all(agent, word)  # what looks prove is told by flags

    def _polling(self, step: Instruction, access: Access) -> bool:
        if step.pc not in self._spins:
            self._spins[step.pc] = is_polled(self.tile.state.l1, step.pc)
        last, times = self._times.get((step.core, step.pc), (-1, 0))
        times = times + 1 if last == access.address else 1
        self._times[step.core, step.pc] = access.address, times
        return self._spins[step.pc] or times > _SPINS

    # What cores look at

    def _begin(self, look: Look | tuple[Counter, Look], core: int) -> None:
        if core in self._looks:
            self._end(core, decided=False)
        self._looks[core] = look

    def _look_on(self, step: Instruction) -> None:
        held = self._looks[step.core]
        look = held[1] if isinstance(held, tuple) else held
        decided = look.goes_on(step)
        if decided is not False:
            self._end(step.core, decided=decided is True)

    def _end(self, core: int, *, decided: bool) -> None:
        held = self._looks.pop(core)
        if isinstance(held, tuple):
            self._asks(self, core, held[0], held[1] if decided else None)
            return
        if held.count == 0:
            self._look_at_data(core, held, decided)
            return
        values = self.flags[held.word].values
        if decided:
            self.last_looks[core] = held
        floor = self.flags[held.word].floor(self.order.exported(core))
        upto = held.count - 1
        if decided:
            outcome = held.ended
            ways = (n for n in range(floor, held.count) if held.ends(values[n].value) == outcome)
            upto = next(ways, upto)
        self.order.learn(core, values[upto].known)
        by = tuple(one.by for one in values[floor + 1 : upto + 1] if one.by is not None)
        if decided:
            self._pass(core, held, values[0].value, by)

    def _look_at_data(self, core: int, held: Look, decided: bool) -> None:
        """A word that nobody has sent anything to yet: its first value may let the core go on."""
        if not decided:
            self._data.add(held.step.pc)
        else:
            value = int(self.tile.state.l1[held.word : held.word + 4].view(np.uint32)[0])
            self._pass(core, held, value, ())

    def _pass(self, core: int, look: Look, first: int, by: tuple[Sent, ...]) -> None:
        epoch = int(self.order.clocks[core, core])
        passed = Passed(core, epoch, look.word, look.step, first, by)
        if self.passed and self.passed[-1].is_turn_of(passed):
            self.passed.pop()
        self.passed.append(passed)


def is_set(conflict: Conflict) -> bool:
    """Whether a core stores to a word that a request changes."""
    sides = conflict.first, conflict.second
    return any(not isinstance(one, Transfer) and one.write for one in sides) and all(
        one.write for one in sides
    )


def pc_of(step: Step) -> int:
    """The place in the code of its core that a step stems from."""
    return step.pushed if isinstance(step, Word) else step.pc
