"""Other schedules of a program: one that ends otherwise, and where both part at a place."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bhemu.errors import BhemuError, Where
from bhemu.machine.stop import now
from bhemu.memmap import L1_SIZE
from bhemu.noc.grid import XY
from bhemu.riscv.formats import Atomic, Store
from bhemu.riscv.isa import decode
from bhemu.tensix.config import CONFIG_WORDS
from bhemu.why.check import Context, Outcome
from bhemu.why.findings import outside_helpers
from bhemu.why.ordering import effects

_QUANTA = (1, 2, 3, 7, 20, 50, 100, 333, 5000)
_SEEDS = (1, 2, 3, 4)
_SHOWN = 18  # digits of a value
_TILES = 4  # that are looked at
_MOST = 400  # accesses to a place that are looked at
_BYTES = 32  # of L1 that are watched: a transfer may leave the first of them as they were


@dataclass(frozen=True)
class Schedule:
    """In which order agents go on: lengths of turns, on a chip also delays of transfers."""

    quantum: int
    seed: int | None = None  # of late deliveries

    @property
    def options(self) -> dict[str, Any]:
        """As of a launch."""
        late = {} if self.seed is None else {"delivery": "late", "seed": self.seed}
        return {"quantum": self.quantum, **late}

    def __str__(self) -> str:
        late = "" if self.seed is None else f" --delivery late --seed {self.seed}"
        return f"--quantum {self.quantum}{late}"

    def command(self, context: Context) -> str:
        """What replays it."""
        return f"bhemu run {context.program.path or 'PROGRAM'} {self}"


@dataclass(frozen=True)
class Witness:
    """A schedule in which the program ends otherwise than in the one that the user saw."""

    seen: Schedule
    other: Schedule
    outcome: Outcome

    def commands(self, context: Context) -> tuple[str, ...]:
        """Both, each with how it ends."""
        sides = ((self.seen, context.symptom), (self.other, self.outcome))
        return tuple(f"{one.command(context)}: {_ends(how)}" for one, how in sides)


def witness(context: Context, *, late: bool = False) -> Witness | None:
    """Another schedule with which the program ends otherwise; `late`: only of late deliveries.

    One that comes to what is not modelled is the last choice: it may do so in every order.
    """
    if context.symptom.hangs:
        return None
    found: Witness | None = None
    for other in _others(context):
        if late and other.seed is None:
            continue
        outcome = context.again(**other.options)
        if not outcome.same(context.symptom) and (found is None or outcome.modelled):
            found = context.facts["witness"] = Witness(Schedule(context.quantum), other, outcome)
            if outcome.modelled:
                break
    return found


def _others(context: Context) -> Iterator[Schedule]:
    yield from map(Schedule, _QUANTA)
    if context.is_chip:
        for seed in _SEEDS:
            yield Schedule(context.quantum, seed)


def _ends(seen: Outcome) -> str:
    if seen.error is not None:
        return str(seen.error).splitlines()[0]
    digest = hashlib.sha256(b"".join(seen.outputs)).hexdigest()[:8]
    wrong = [f"{result.spec.name} differs from what is expected" for result in seen.wrong]
    return f"outputs {digest}" + "".join(f", {text}" for text in wrong)


# Where they part


@dataclass(frozen=True)
class _Access:
    """A read or change of a place."""

    where: Where
    read: bool
    value: int
    clock: int

    @property
    def who(self) -> tuple[Any, ...]:
        """The same in another run."""
        if self.arrived:
            return ("arrived",)
        return self.where.tile, self.where.core, self.where.thread, self.where.pc, self.read

    @property
    def arrived(self) -> bool:
        """Whether the NoC has brought what a core of the tile has asked for."""
        where = self.where
        if self.read or where.thread is not None or where.word is None:
            return False
        cls = decode(where.word)
        return cls is None or not issubclass(cls, Store | Atomic)

    def __str__(self) -> str:
        does = "reads" if self.read else "makes it"
        value = f"{self.value:#x}"
        value = value if len(value) < _SHOWN else f"{value[:_SHOWN]}..."
        who = "what a core has read over the NoC arrives" if self.arrived else str(self.where)
        return f"{does} {value} at clock {self.clock}: {who}"


def _text(place: int) -> str:
    """What watch calls the part of the state around a place (effects.py)."""
    kind = effects.kind(place)
    if kind == "L1":
        return f"{place & ~3:#x}:{min(_BYTES, L1_SIZE - (place & ~3))}"
    if kind == "GPR":
        return "gpr:{}:{}".format(*divmod(place - effects.GPRS >> 2, 64))
    if kind == "Config":
        return "cfg:{}:{}".format(*divmod(place - effects.CONFIG >> 5, CONFIG_WORDS))
    return f"dst:{place - effects.DST}"


def _accesses(context: Context, schedule: Schedule, xy: XY, place: int) -> list[_Access]:
    """Those to a place of a tile; who reads it again and again counts once."""
    options = {**schedule.options, **context.alone}
    machine = context.launch(engine="compiled", **options)
    tile = machine.tile[xy] if context.is_chip else machine
    tile.stepping.watch(tile.core["brisc"], _text(place), "rw")
    found: list[_Access] = []
    while len(found) < _MOST:
        try:
            stop = machine.run(limit=context.most)
        except BhemuError:
            break
        if stop.reason != "watchpoint":
            break
        change, where = stop.change, stop.change.where
        where = outside_helpers(tile, where) if where.tile == xy else where
        one = _Access(where, change.read, change.after, now(tile.state))
        if not (found and one.read and found[-1].who == one.who):
            found.append(one)
    return found


def divergence(
    context: Context, found: Witness, tiles: Sequence[XY], place: int
) -> tuple[str, ...]:
    """The first access to a place, of the first of `tiles`, that finds or leaves another value."""
    for xy in tiles[:_TILES]:
        sides = [_accesses(context, one, xy, place) for one in (found.seen, found.other)]
        pairs = _pairs(*sides)
        for one, other in sorted(pairs, key=lambda pair: pair[0].clock):
            if one.value != other.value:
                return (
                    f"both part at {effects.name(place)}:",
                    f"  {found.seen}: {one}",
                    f"  {found.other}: {other}",
                )
    return ()


def _pairs(seen: list[_Access], other: list[_Access]) -> Iterator[tuple[_Access, _Access]]:
    """The accesses of both runs that are the same: the n-th of who makes it."""
    by: dict[Any, list[_Access]] = {}
    for one in other:
        by.setdefault(one.who, []).append(one)
    for one in seen:
        if by.get(one.who):
            yield one, by[one.who].pop(0)
