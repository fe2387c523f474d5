"""The walk over a chip's tiles, and the tile where a wrong value began."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bhemu import memmap as mm
from bhemu.devices import niu_request as request
from bhemu.devices.niu import ACKS, ATOMIC_ANSWERS, OUTGOING, OUTSTANDING, READ_ANSWERS
from bhemu.machine.machine import Chip
from bhemu.machine.tile import Tile
from bhemu.why.check import Context
from bhemu.why.network.conflicts import Channels, Counter, Passed, TileRaces, is_set, pc_of
from bhemu.why.network.flag_words import Look
from bhemu.why.network.transfers import Sent, Transfer, of_receiver, proves_arrival, targets
from bhemu.why.ordering import effects
from bhemu.why.ordering.accesses import Conflict, Event
from bhemu.why.walk import ChipWalk, Instruction, Step, Walk, Word

# One walk of all tiles of a program, in which clocks go from tile to tile with what they send.

_MOST = 320_000  # steps of all tiles together
_TILES = 64  # with more of them each has too few steps
_HANGS = 80_000  # of a tile of a program that goes on for ever
_COLUMNS, _ROWS = (at - mm.NIU_CFG_0 >> 2 for at in (mm.ROUTER_CFG_1, mm.ROUTER_CFG_3))
_COUNTED = (ATOMIC_ANSWERS, ACKS, READ_ANSWERS)


class NetworkWalk:
    """The tiles of a launched chip."""

    def __init__(self, chip: Chip, tiles: Sequence[Tile]) -> None:
        self._chip = chip
        self.tiles = [
            TileRaces(tile, n, len(tiles), self._send, self._asked) for n, tile in enumerate(tiles)
        ]
        self.sent: list[list[Sent]] = [[] for _ in tiles]
        self._under_way: list[list[Sent]] = [[] for _ in tiles]
        self._arrived: list[list[Sent]] = [[] for _ in tiles]
        self._rows = [int(tile.state.noc_requests[0]) for tile in tiles]
        self._numbers = [chip.number_of(tile.xy) for tile in tiles]
        self._places = {number: n for n, number in enumerate(self._numbers)}
        self._channels = Channels(len(tiles))

    def walk(self, most: int) -> list[Walk]:
        """At most so many steps of each tile; how they were seen."""
        walks = [
            Walk(races.tile, instruction=races.executed, before=_before, after=_after)
            for races in self.tiles
            for _before, _after in [_words(races)]
        ]
        ChipWalk(self._chip, walks, self._stepped).run(most)
        return walks

    # Requests

    def _send(self, races: TileRaces, step: Instruction, agent: int) -> None:
        """A store of a core has sent a request."""
        state, n = races.tile.state, races.number
        row = state.noc_request[self._rows[n]].copy()
        if (int(row[request.CORE]), int(row[request.PC])) != (step.core, step.pc):
            return  # another core's: the request before it is still there
        epoch = int(races.order.clocks[agent, agent])
        sequence = int(state.noc_issued[0]) - 1
        known = races.order.exported(agent)
        low = int(row[request.LOCAL]) & ~3
        value = int(row[request.OPERAND])
        one = Sent(n, step.core, epoch, step, row, sequence, known, value)
        if one.takes_data:
            one.value = int(state.l1[low : low + 4].view(np.uint32)[0])
            number, clock = self._channels.leaving(n, int(row[request.NOC]), known)
            one.left = number, clock
            races.leaves(one, clock, number, source=one.own)
        self._under_way[n].append(one)
        self.sent[n].append(one)
        races.order.clocks[agent, agent] += 1

    def _stepped(self) -> None:
        """All tiles have made a step: what has arrived by now?"""
        for n, races in enumerate(self.tiles):
            if self._under_way[n]:
                state = races.tile.state
                rows = state.noc_request[: int(state.noc_requests[0]), request.SEQUENCE]
                waiting = set(rows.tolist())
                for one in self._under_way[n]:
                    if one.sequence not in waiting:
                        self._arrive(one)
                self._under_way[n] = [one for one in self._under_way[n] if one.arrived is None]
            self._rows[n] = int(races.tile.state.noc_requests[0])

    def _arrive(self, one: Sent) -> None:
        one.agent, one.arrived = self._channels.arrival(one.tile, one.row, one.known)
        number = self._numbers[one.tile]
        masks = self._masks() if int(one.row[request.CONTROL]) & request.MULTICAST else {}
        for u in targets(self._chip, masks, one, number):
            n = self._places.get(u)
            if n is None:
                continue
            if one.reads:
                if not one.is_register:
                    self.tiles[n].leaves(one, one.arrived, one.agent, source=one.remote)
            else:
                self._arrived[n].append(one)
                self.tiles[n].arrives(one, one.arrived, one.agent)
        if one.reads:
            self.tiles[one.tile].arrives(one, one.arrived, one.agent)

    def _masks(self) -> dict[int, list[tuple[int, int]]]:
        return {
            number: [
                (int(config[_COLUMNS]), int(config[_ROWS]))
                for config in races.tile.state.niu_config
            ]
            for number, races in zip(self._numbers, self.tiles, strict=True)
        }

    def _asked(self, races: TileRaces, core: int, counter: Counter, look: Look | None) -> None:
        """A core has looked at a counter; `look`: with a branch that its value decides."""
        noc, index = counter
        if look is not None and not _is_proof(races, counter, look):
            return
        if of_receiver(index):
            for one in self._arrived[races.number]:
                assert one.arrived is not None
                races.order.learn(core, one.arrived)
            return
        for one in self.sent[races.number]:
            if one.counted_by(noc, index):
                if one.left is not None:
                    races.order.learn(core, one.left[1])
                if proves_arrival(index) and one.arrived is not None:
                    races.order.learn(core, one.arrived)


def _is_proof(races: TileRaces, counter: Counter, look: Look) -> bool:
    """Whether the branch goes this way only when no answer is missing."""
    noc, index = counter
    now = int(races.tile.state.niu_counter[noc, index])
    if index in _COUNTED:
        return look.ends(now - 1 & 0xFFFFFFFF) != look.ended
    return not OUTSTANDING <= index < OUTGOING + 16 or look.ends(1) != look.ended


def _words(races: TileRaces) -> tuple[Any, Any]:
    state = races.tile.state

    def before(step: Word) -> effects.Before | None:
        return effects.before_word(state, step.thread, step.word)

    def after(step: Word, seen: effects.Before | None) -> None:
        races.word(step, effects.NOTHING if seen is None else effects.after_word(state, seen))

    return before, after


def walked(context: Context) -> NetworkWalk | None:
    """The walk of a program whose tiles have sent something to one another."""
    if "network" not in context.facts:
        context.facts["network"] = _walked(context) if _talk(context) else None
    found: NetworkWalk | None = context.facts["network"]
    return found


def _talk(context: Context) -> bool:
    tiles = context.tiles(context.symptom.machine)
    return 1 < len(tiles) <= _TILES and any(_received(tile) for tile in tiles)


def _received(tile: Tile) -> bool:
    """Whether another tile has written to it, or read of it."""
    return bool(tile.state.noc_arrivals[0]) or bool(tile.state.niu_counter[:, 53].any())


def _walked(context: Context) -> NetworkWalk:
    chip = context.launch(engine="compiled", **context.alone)
    tiles = context.tiles(chip)
    walk = NetworkWalk(chip, tiles)
    most = _MOST // len(tiles)
    context.work.walked(walk.walk(min(most, _HANGS) if context.symptom.hangs else most))
    return walk


# Of two accesses of different tiles that nothing orders: which should come first, who is to blame.
#
# The first of them is the write that the other one needs, unless the other one still needs what
# was there before. Who makes the first lets the second side go on by what it sends behind it. So
# either it sends that too early, or the other side does not wait for it, or for too little.


@dataclass(frozen=True)
class Side:
    """An access: of agent `owner` of tile `home`, at that agent's clock."""

    event: Event
    home: int
    owner: int
    epoch: int

    @property
    def sent(self) -> Sent | None:
        """The request that makes it."""
        return self.event.sent if isinstance(self.event, Transfer) else None


@dataclass(frozen=True)
class Blame:
    """Whose step is wrong and why; `word`: whose first value is, in place of the step."""

    home: int
    step: Step
    text: str
    advice: str
    word: int | None = None


@dataclass(frozen=True)
class Disorder:
    """A conflict of two tiles: `first` should be done before `second` begins."""

    walk: NetworkWalk
    races: TileRaces
    conflict: Conflict
    first: Side
    second: Side

    @property
    def is_flag(self) -> bool:
        """Whether a core stores to a word by which another tile tells it something."""
        return is_set(self.conflict) and self.conflict.place & ~3 in self.races.flags

    def blamed(self) -> Blame:
        """Who is wrong."""
        if self.is_flag:
            return Blame(
                self.first.home, self.first.event.step,
                "for the other tile may have changed the word by then",
                "store to it before the other tile is told to go on",
            )  # fmt: skip
        if (told := self._told()) is not None:
            return Blame(
                told.tile, told.step, f"for what it has {self._unfinished()} by then",
                "wait for the answer of the request before it (a barrier)",
            )  # fmt: skip
        passed = self._wait()
        return self._no_wait() if passed is None else self._counted(passed)

    def _unfinished(self) -> str:
        sent = self.first.sent
        if sent is not None and not self.first.event.write and not sent.reads:
            return "asked the NoC to write may not have left"
        reads = sent is not None and sent.reads
        return f"asked the NoC to {'read' if reads else 'write'} may not have arrived"

    def _told(self) -> Sent | None:
        """What the first side has sent behind its request, and the second knows of."""
        first, second = self.first, self.second
        if first.sent is None:
            return None
        known = self.races.known(second.event, first.home, first.owner)
        later = [one for one in self.walk.sent[first.home] if one.core == first.owner]
        return next((one for one in later if first.epoch < one.epoch <= known), None)

    def _words(self) -> set[tuple[int, int]]:
        """(tile, word) that the first side's tile sends to: by these it lets others go on."""
        return {
            (n, word)
            for n, races in enumerate(self.walk.tiles)
            for word, flag in races.flags.items()
            if any(one.by is not None and one.by.tile == self.first.home for one in flag.values)
        }

    def _wait(self) -> Passed | None:
        """The last look of the second side at such a word, since it did the same before."""
        second, words = self.second, self._words()
        races, before = self.walk.tiles[second.home], self._again()
        looks = [one for one in races.passed if (second.home, one.word) in words]
        own = [one for one in looks if one.core == second.owner]
        own = [one for one in own if before <= one.epoch <= second.epoch]
        if own or second.sent is not None:
            return own[-1] if own and not self._is_for_another(own[-1]) else None
        others = [one for one in looks if one.epoch <= self._knows(one.core)]
        asked = self._asked()
        if others and (asked is None or others[-1].epoch > asked.epoch):
            return others[-1]
        return None

    def _is_for_another(self, look: Passed) -> bool:
        """Whether behind a look, and before the second side, its core sends what is in order.

        That is what it has waited for.
        """
        sent = self.second.sent
        unordered = [
            _sides(races, conflict, before)[1].sent
            for races in self.walk.tiles
            for conflict, before in zip(races.found, races.before, strict=True)
        ]
        return any(
            one.core == self.second.owner
            and look.epoch < one.epoch < self.second.epoch
            and not one.is_flag
            and (sent is None or one.step.pc != sent.step.pc)
            and not any(one is other for other in unordered)
            for one in self.walk.sent[self.second.home]
        )

    def _knows(self, core: int) -> int:
        """How far a core of its tile had come when the second side made its access."""
        return self.races.known(self.second.event, self.second.home, core)

    def _again(self) -> int:
        """The second side's clock when it last did what it does now; 0: it never did."""
        second = self.second
        if second.sent is None:
            return 0
        same = [
            one.epoch
            for one in self.walk.sent[second.home]
            if one.core == second.owner and one.epoch < second.epoch
            and one.step.pc == second.sent.step.pc
        ]  # fmt: skip
        return same[-1] if same else 0

    def _no_wait(self) -> Blame:
        text, step = "for nothing makes it wait for the other tile", self.second.event.step
        asked = self._asked()
        if asked is not None:
            text = "for nothing waits for what it asks for"
            step = asked.step
        return Blame(self.second.home, step, text, "wait for a word that the other tile changes")

    def _asked(self) -> Sent | None:
        """Where a thread uses what a core gave it: what this core has asked the other tile for."""
        second = self.second
        if second.sent is not None:
            return None
        flags = [one for one in self.walk.sent[second.home] if one.is_flag]
        sent = [
            one
            for one in flags
            if one.core != second.owner
            and one.epoch <= self._knows(one.core)
            and self._goes_to(one, self.first.home)
        ]
        return sent[-1] if sent else None

    def _goes_to(self, one: Sent, home: int) -> bool:
        flag = self.walk.tiles[home].flags.get(one.remote[0] & ~3)
        return flag is not None and any(value.by is one for value in flag.values)

    def _counted(self, passed: Passed) -> Blame:
        by = [one for one in passed.by if one.tile == self.first.home]
        if by and self._is_early(by[-1]):
            return Blame(
                by[-1].tile, by[-1].step, "for it lets the other tile go on too early",
                "send it behind the last access to what the other tile will use",
            )  # fmt: skip
        text = "for it does not wait until the other tile is done"
        advice = "count what must have arrived, and what was there at first"
        word = passed.word if not passed.by and not self._is_meant(passed) else None
        return Blame(self.second.home, passed.step, text, advice, word)

    def _is_early(self, told: Sent) -> bool:
        """Whether such a request comes before such an access the first time."""
        first, step = self.first, self.first.event.step
        races = self.walk.tiles[first.home]
        sends = [one for one in self.walk.sent[first.home] if one.core == told.core]
        same = [one for one in sends if one.remote[0] == told.remote[0]]
        epoch = races.firsts.get((first.owner, pc_of(step)), first.epoch)
        if first.sent is not None:
            own = [one for one in self.walk.sent[first.home] if one.core == first.owner]
            epoch = next(one.epoch for one in own if one.step.pc == step.pc)
        if told.core == first.owner:
            return same[0].epoch < epoch
        return int(same[0].known[races.place_of(first.owner)]) < epoch

    def _is_meant(self, passed: Passed) -> bool:
        """Whether the first value of a word is 0, or as many as there are places to send to."""
        sides = [one.sent for one in (self.first, self.second) if one.sent is not None]
        places = 0
        for sent in sides:
            same = [one for one in self.walk.sent[sent.tile] if one.step.pc == sent.step.pc]
            places = max(places, len({one.remote[0] for one in same}))
        return passed.first in (0, places, places * (len(self.walk.tiles) - 1))


def disorders(walk: NetworkWalk) -> list[Disorder]:
    """All conflicts of a walk, the earliest first."""
    found = []
    for races in walk.tiles:
        for conflict, before in zip(races.found, races.before, strict=True):
            first, second = _sides(races, conflict, before)
            found.append(Disorder(walk, races, conflict, first, second))
    return sorted(found, key=lambda one: one.conflict.second.step.clock)


def _sides(races: TileRaces, conflict: Conflict, before: Event | None) -> tuple[Side, Side]:
    """Which of both should be done first."""
    sides = [conflict.first, conflict.second]
    if is_set(conflict):
        if conflict.place & ~3 in races.flags:
            sides.sort(key=lambda one: isinstance(one, Transfer))
    elif not all(one.write for one in sides):
        write, read = sorted(sides, key=lambda one: not one.write)
        sides = [write, read]
        same = before is not None and races.home(before) == races.home(write)
        if same and before is not None and before.clock <= read.vector[before.agent]:
            sides = [read, write]  # what was there before is still needed
    first, second = (_side(races, one) for one in sides)
    return first, second


def _side(races: TileRaces, event: Event) -> Side:
    return Side(event, races.home(event), event.owner, event.owner_clock)


@dataclass(frozen=True)
class Missed:
    """A core waits for a value of a word that was there: `over` is what has changed it."""

    races: TileRaces
    core: int
    step: Instruction
    over: Sent


def missed(walk: NetworkWalk) -> list[Missed]:
    """Of a hang, the waits whose words other tiles have counted on."""
    found = []
    for races in walk.tiles:
        for core, look in races.last_looks.items():
            values = races.flags[look.word].values
            first = max((one.epoch for one in races.passed if one.core == core), default=0)
            floor = races.flags[look.word].floor(races.order.exported(core))
            ways = [look.ends(one.value) != look.ended for one in values[floor:]]
            if first and True in ways and not ways[-1]:
                over = values[floor + ways.index(True) + 1].by
                if over is not None and over.kind == request.ATOMIC:
                    found.append(Missed(races, core, look.step, over))
    return found
