"""The pairs of why/order beside those of a walk step by step, on one tile."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from order_walk import effects
from order_walk.conflicts import Races, _pushed
from order_walk.steps import Access, Executed, StepWalk, Taken

from bhemu.errors import BhemuError
from bhemu.launch import Program
from bhemu.machine.tile import Tile
from bhemu.memmap import L1_SIZE
from bhemu.riscv.isa import decode as decode_riscv
from bhemu.tensix.insn import disassemble
from bhemu.why import order as r
from bhemu.why.order import observe
from bhemu.why.order.conflicts import Conflict
from bhemu.why.order.observe import Observer

BEHIND = 5000  # clock units after the end of a program
Key = tuple[int, int, str]  # pc of each side, of a REPLAY where it gave the word; kind of place


@dataclass(frozen=True)
class Side:
    """One access of a pair: of `agent` (record.py), for its owner, a core or a thread's issue.

    thread: -1 for an instruction of a core; pushed: as pc, of a word that a REPLAY gave that of the
    REPLAY; time: the clock when the first access like it was made. waited: the owner has waited for
    somebody since it last let somebody go on. wait: pc of a wait that does not hold the word, 0 =
    none.
    """

    agent: int
    owner: int
    core: int
    thread: int
    pc: int
    pushed: int
    word: int
    time: int
    write: bool
    waited: bool
    wait: int

    @property
    def unit(self) -> str | None:
        """The unit that works for a thread; None for cores and what is complete at once."""
        if not r.UNIT <= self.agent < r.STORES:
            return None
        return r.UNIT_NAMES[(self.agent - r.UNIT) % r.UNITS]

    @property
    def text(self) -> str:
        """The instruction or word."""
        if self.thread >= 0:
            return disassemble(self.word)
        cls = decode_riscv(self.word)
        return hex(self.word) if cls is None else cls.__name__.lower()


@dataclass(frozen=True)
class Pair:
    """Two accesses to one place that nothing orders, one of them a write.

    by_speed: not even where all is complete at once does anything order them; else the unit, store
    or transfer of the first may still be at work. foreign: the second changes what belongs to the
    first's thread, ordered or not.
    """

    first: Side
    second: Side
    place: int
    by_speed: bool
    foreign: bool

    @property
    def kind(self) -> str:
        """What the place belongs to."""
        return observe.kind(self.place)


def pairs(seen: Observer) -> list[Pair]:
    """What nothing orders, in the order in which it was found."""
    return [_pair(row) for _, row in seen.rows()]


def _pair(row: list[int]) -> Pair:
    first, second = (_side(row[i * r.EVENT : (i + 1) * r.EVENT]) for i in (0, 1))
    by_speed, foreign = (bool(row[r.BITS] & bit) for bit in (r.BY_SPEED, r.FOREIGN))
    return Pair(first, second, row[r.PLACE], by_speed, foreign)


def _side(row: list[int]) -> Side:
    return Side(
        *(row[r.AGENT], observe.owner_of(row[r.AGENT]), row[r.CORE], row[r.THREAD]),
        *(row[r.PC], row[r.PUSHED], row[r.WORD], row[r.TIME]),
        *(bool(row[r.WRITE]), bool(row[r.WAITED]), row[r.WAIT]),
    )


class Both(NamedTuple):
    """Pairs by their key, in words."""

    walked: dict[Key, str]
    observed: dict[Key, str]

    @property
    def missing(self) -> dict[Key, str]:
        return {key: text for key, text in self.walked.items() if key not in self.observed}

    @property
    def more(self) -> dict[Key, str]:
        return {key: text for key, text in self.observed.items() if key not in self.walked}


class Walked:
    """A walk step by step, as the order of units and the plain one see it."""

    def __init__(self, tile: Tile) -> None:
        self.tile = tile
        self.polled: set[int] = set()
        counters: set[int] = set()
        self.counters = counters
        self.plain = Races(tile, self.polled, counters, units=False)
        self.units = Races(tile, self.polled, counters, units=True)
        self._polls: dict[tuple[int, int], tuple[int, int]] = {}
        self._stored: set[int] = set()
        self._cfg = tile.state.cfg.copy()

    def walk(self, outputs: list[tuple[int, int]]) -> None:
        walk = StepWalk(
            self.tile, instruction=self._instruction, before=self._before, after=self._after
        )
        words = [at for _, at, _ in self.tile.loop.end.words]
        if walk.run() and words and self.tile.loop.error is None:
            for races in (self.plain, self.units):
                races.ended(words, outputs)
            walk.run(BEHIND, "idle")

    def _instruction(self, step: Executed) -> None:
        access, found = step.access(), effects.NOTHING
        if access is not None and not access.private:
            found = effects.of_access(step.core, access, self._cfg, self.tile.state)
            if access.address < L1_SIZE and access.reads:
                self._looks(step, access)
            if access.writes:
                self._stored.add(access.address & ~3)
        for races in (self.plain, self.units):
            races.instruction(step, access, found)
        self._cfg[:] = self.tile.state.cfg

    def _looks(self, step: Executed, access: Access) -> None:
        l1, word = self.tile.state.l1, access.address & ~3
        last, times = self._polls.get((step.core, step.pc), (-1, 0))
        times = times + 1 if last == access.address else 1
        self._polls[step.core, step.pc] = access.address, times
        counts = observe.is_one_of_two(l1, step.pc)
        if observe.is_polled(l1, step.pc) or (counts and word in self._stored) or times > 3:
            self.polled.add(word)
        elif counts:
            self.counters.add(word)

    def _before(self, step: Taken) -> effects.Before | None:
        return effects.before_word(self.tile.state, step.thread, step.word)

    def _after(self, step: Taken, before: effects.Before | None) -> None:
        found = effects.NOTHING if before is None else effects.after_word(self.tile.state, before)
        for races in (self.plain, self.units):
            races.word(step, found)
        self._cfg[:] = self.tile.state.cfg


def program(path: Any) -> tuple[Callable[[], Tile], Program]:
    """What launches a program of one tile, and the program."""
    given = Program.load(path)
    return lambda: given.launch(engine="compiled"), given


def outputs_of(tile: Tile, given: Program | None) -> list[tuple[int, int]]:
    specs = () if given is None else given.outputs
    return [(at, at + spec.size) for spec in specs for at in [tile.address(spec.at)]]


def _ending(tile: Tile, until: Any) -> Tile:
    if until is not None:
        words = tuple((tile.xy, at, value) for at, value in until)
        tile.loop.end = replace(tile.loop.end, words=words)
    return tile


def observed(tile: Tile, given: Program | None = None) -> Observer:
    """A tile run to its end and on for a while, observed."""
    seen = Observer(tile)
    try:
        reason = tile.run(limit=2_000_000).reason
    except BhemuError:
        return seen
    words = [at for _, at, _ in tile.loop.end.words]
    if reason != "limit" and words and tile.loop.error is None:
        seen.ended(words, outputs_of(tile, given))
        with suppress(BhemuError):
            tile.run("idle", limit=BEHIND)
    return seen


def both(launch: Callable[[], Tile], given: Program | None = None, until: Any = None) -> Both:
    """Both, of two runs; `until`: as tile.run takes it, where that is not the program's own."""
    tile = _ending(launch(), until)
    recorder = Walked(tile)
    recorder.walk(outputs_of(tile, given))
    walked = {}
    for races in (recorder.plain, recorder.units):
        for one in races.conflicts():
            walked[_key(one)] = _text(one)
    seen = observed(_ending(launch(), until), given)
    return Both(walked, {key(one): text(one) for one in pairs(seen)})


def key(one: Pair) -> Key:
    return one.first.pushed, one.second.pushed, one.kind


def text(one: Pair) -> str:
    sides = (
        f"{side.agent} T{side.thread} {side.pc:#x} {side.text} {'w' if side.write else 'r'}"
        f" @{side.time}" for side in (one.first, one.second)
    )  # fmt: skip
    return f"{observe.name(one.place)}{' by speed' if one.by_speed else ''}: {' | '.join(sides)}"


def _key(one: Conflict) -> Key:
    return _pushed(one.first.step), _pushed(one.second.step), effects.kind(one.place)


def _text(one: Conflict) -> str:
    sides = (
        f"{side.agent} {side.step.pc:#x} {side.step.word:#x} {'w' if side.write else 'r'}"
        f" @{side.step.clock}" for side in (one.first, one.second)
    )  # fmt: skip
    return f"{effects.name(one.place)}{'' if one.units else ' by speed'}: {' | '.join(sides)}"
