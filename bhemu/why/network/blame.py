"""Of two accesses of different tiles that nothing orders: which should come first, who is to blame.

The first of them is the write that the other one needs, unless the other one still needs what was
there before. Who makes the first lets the second side go on by what it sends behind it. So either
it sends that too early, or the other side does not wait for it, or for too little.
"""

from dataclasses import dataclass

from bhemu.devices import niu_request as request
from bhemu.why.network.chip_walk import NetworkWalk
from bhemu.why.network.conflicts import Passed, TileRaces, is_set, pc_of
from bhemu.why.network.transfers import Sent, Transfer
from bhemu.why.ordering.accesses import Conflict, Event
from bhemu.why.walk import Instruction, Step


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
    """Whose step is wrong and why; `word`: whose first value is, in place of the step.

    sure: an address or count that is wrong would not look like this.
    """

    home: int
    step: Step
    text: str
    advice: str
    word: int | None = None
    sure: bool = False


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
                "wait for the answer of the request before it (a barrier)", sure=True,
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
                "send it behind the last access to what the other tile will use", sure=True,
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
