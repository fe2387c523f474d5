"""Bytes that tiles send to each other, used or overwritten without an order between tiles.

Of two accesses that nothing orders the write comes first, and the read needs it, unless the read
still needs the bytes from before. The first side lets the second side go on with a request that it
sends after its access. So the first side sends that request too early, or the second side does not
wait for it, or not for enough.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bhemu.machine.tile import Tile
from bhemu.why.check import Check, Context
from bhemu.why.findings import Finding, place, with_evidence
from bhemu.why.order import record as r
from bhemu.why.order.conflicts import step_of, tiles
from bhemu.why.order.observe import owner_of
from bhemu.why.order.tiles import FAR, Sent, Tiles
from bhemu.why.steps import Act, Blame, Instruction, Step, Word, maker
from bhemu.why.witness import Pair, PairFinding, with_late_runs

_FLIT = 64  # bytes that the NoC moves at once


class Passed(NamedTuple):
    """A core has read a word that other tiles change, and gone on.

    by: the requests that the core needed for this.
    """

    core: int
    epoch: int
    word: int
    step: Instruction
    by: tuple[Sent, ...]


@dataclass(frozen=True)
class Side:
    """An access to a word of L1 by `owner` of tile `home`, at that owner's clock.

    sent: the request that makes the access. known: what came before it, by columns of all tiles.
    previous: column and clock of the writer before it, if that wrote for the same tile.
    """

    home: int
    owner: int
    epoch: int
    write: bool
    step: Step
    sent: Sent | None
    known: npt.NDArray[np.int64]
    previous: tuple[int, int] | None

    @property
    def column(self) -> int:
        """That of its owner, among those of all tiles."""
        return r.SHARED * self.home + self.owner

    @property
    def does(self) -> str:
        """What it does to the word, in words."""
        verb = "writing" if self.write else "reading"
        if self.sent is None:
            return verb
        return "sending" if not self.write and not self.sent.reads else f"{verb} over the NoC"


class Walk:
    """The results of an observed run of all tiles: pairs, reads of flags, requests.

    stand: puts the code of a session back (Tiles).
    """

    def __init__(self, tiles: Tiles) -> None:
        self.sent, self.flags, self.stand = tiles.sent, tiles.flags, tiles.stand
        self.tiles: list[Tile] = [one.tile for one in tiles.observers]
        self.records = [one.record for one in tiles.observers]

    @cached_property
    def disorders(self) -> list["Disorder"]:
        """All pairs, the earliest first."""
        found = []
        for n, o in enumerate(self.records):
            for i in range(int(o.far_pairs[0])):
                row = o.far_pair[i].tolist()
                near = self._near(n, row[r.FP_EVENT :], o.far_pair_known[i].copy())
                one, other = (
                    self._far(o.far_event[row[k]].tolist()) if row[k] else near
                    for k in (r.FP_FIRST, r.FP_SECOND)
                )
                place = row[r.FP_PLACE]
                sides = _in_order(one, other, is_flag=place >> 2 in self.flags[n])
                found.append(Disorder(self, n, place, *sides, other.step.clock, i))
        return sorted(found, key=lambda one: one.clock)

    def _near(self, n: int, row: list[int], known: npt.NDArray[np.int64]) -> Side:
        own = slice(r.SHARED * n, r.SHARED * (n + 1))
        np.maximum(known[own], row[r.KNOWN : r.KNOWN + r.SHARED], out=known[own])
        previous = (row[r.PREVIOUS] - 1, row[r.PREVIOUS + 1]) if row[r.PREVIOUS] else None
        step, write = step_of(row), bool(row[r.WRITE])
        owner = owner_of(row[r.AGENT])
        return Side(n, owner, row[r.OWNER_CLOCK], write, step, None, known, previous)

    def _far(self, row: list[int]) -> Side:
        home, write = row[r.F_HOME], bool(row[r.F_WRITE])
        sent = self.sent[home][row[r.F_NUMBER]]
        previous = (row[r.F_PREVIOUS] - 1, row[r.F_PREVIOUS + 1]) if row[r.F_PREVIOUS] else None
        return Side(home, sent.core, sent.epoch, write, sent.step, sent, sent.known, previous)

    @cached_property
    def passed(self) -> list[list[Passed]]:
        """The reads of each tile after which its cores went on, in order."""
        return [list(self._passed(n)) for n in range(len(self.records))]

    def _passed(self, n: int) -> Iterator[Passed]:
        o, last = self.records[n], int(self.records[n].passes[0])
        for i in range(max(last - r.PASSED, 0), last):
            core, clock, word, pc, text, floor, upto, time = o.passed[i % r.PASSED].tolist()
            values = self.flags[n].get(word, {})
            by = tuple(values[k] for k in range(floor + 1, upto + 1) if k in values)
            yield Passed(core, clock, 4 * word, Instruction(time, core, pc, text), by)

    def sent_by(self, side: Side) -> list[Sent]:
        """All requests of the core that makes an access."""
        return [one for one in self.sent[side.home] if one.core == side.owner]

    def first_epoch(self, side: Side) -> int:
        """The owner's clock when it first made an access from the same place in the code."""
        step = side.step
        pc = step.pushed if isinstance(step, Word) else step.pc  # the REPLAY's pc
        if side.sent is not None:
            return next(one.epoch for one in self.sent_by(side) if one.step.pc == pc)
        found = self.records[side.home].first_access
        at = np.flatnonzero((found[:, 0] == side.owner + 1) & (found[:, 1] == pc))
        return (int(found[at[0], 2]) if at.size else 0) or side.epoch


@dataclass(frozen=True)
class Disorder:
    """A conflict of two tiles: `first` should be done before `second` begins."""

    walk: Walk
    number: int
    place: int
    first: Side
    second: Side
    clock: int
    pair: int  # its number among those of the tile

    @property
    def tile(self) -> Tile:
        """The tile whose L1 holds the place."""
        return self.walk.tiles[self.number]

    def blamed(self) -> Blame:
        """The act that is wrong."""
        first, second = self.first, self.second
        if _is_set(first, second) and self.place >> 2 in self.walk.flags[self.number]:
            return self._blame(
                first.home, first.step,
                "because the other tile may have changed the word by then",
                "store to it before the other tile is told to go on",
            )  # fmt: skip
        ranges = self._range(first), self._range(second)
        few = min(high for _, high in ranges) - max(low for low, _ in ranges)
        if all(low + _FLIT < high and few < _FLIT for low, high in ranges):
            write = first if first.write else second
            return self._blame(
                write.home, write.step,
                f"because both have only {few} bytes there in common: one of both has the wrong"
                " address or length",
                "compare the addresses and lengths on both sides",
            )  # fmt: skip
        known = int(second.known[first.column]) if first.sent else 0
        after = (one for one in self.walk.sent_by(first) if first.epoch < one.epoch <= known)
        if first.sent and (told := next(after, None)) is not None:
            asked = "read may not have arrived" if first.sent.reads else "write may not have"
            if not first.sent.reads:
                asked += " arrived" if first.write else " left"
            return self._blame(
                told.tile, told.step, f"because what it has asked the NoC to {asked} by then",
                "wait for the answer of the request before it (a barrier)",
            )  # fmt: skip
        passed = self._wait()
        if passed is None:
            return self._blame(
                second.home, second.step, "because nothing makes it wait for the other tile",
                "wait for a word that the other tile changes",
            )  # fmt: skip
        by = [one for one in passed.by if one.tile == first.home]
        if by and self._is_early(by[-1]):
            return self._blame(
                by[-1].tile, by[-1].step, "because it lets the other tile go on too early",
                "send it after the last access to the bytes that the other tile uses",
            )  # fmt: skip
        return self._blame(
            second.home, passed.step, "because it does not wait until the other tile is done",
            "compare the count with its value at the start plus the number of expected requests",
        )  # fmt: skip

    def _blame(self, home: int, step: Step, text: str, advice: str) -> Blame:
        return Blame(Act(self.walk.tiles[home], step), text, advice)

    def _range(self, side: Side) -> tuple[int, int]:
        """What a side accesses; of a core that looks at data before it sends them all of these."""
        if (sent := side.sent) is None:
            later = (
                one.own
                for one in self.walk.sent_by(side)
                if one.epoch >= side.epoch and not one.reads
            )
            here = (own for own in later if own[0] <= self.place < own[1])
            return next(here, (self.place, self.place + 4))
        return sent.own if side.write == sent.reads else sent.remote

    def _wait(self) -> Passed | None:
        """The second side's last read of a flag that the first side's tile sends to, since the
        second last made the same access."""
        second, walk, home = self.second, self.walk, self.second.home
        words = {
            4 * word
            for word, values in walk.flags[home].items()
            if any(one.tile == self.first.home for one in values.values())
        }
        looks = [one for one in walk.passed[home] if one.word in words]
        again = [
            one.epoch
            for one in walk.sent_by(second)
            if second.sent and one.epoch < second.epoch and one.step.pc == second.sent.step.pc
        ]
        before = again[-1] if again else 0
        own = [o for o in looks if o.core == second.owner and before <= o.epoch <= second.epoch]
        if own or second.sent is not None:
            return own[-1] if own and not self._is_for_another(own[-1]) else None
        known = second.known[r.SHARED * home :]  # how far the cores of its tile were
        others = [one for one in looks if one.epoch <= int(known[one.core])]
        return others[-1] if others else None

    def _is_for_another(self, look: Passed) -> bool:
        """Whether the core waited for another request that it sent after this read.

        Then that request is in order, and the read says nothing of the second side.
        """
        sent = self.second.sent
        unordered = [one.second.sent for one in self.walk.disorders]
        return any(
            look.epoch < one.epoch < self.second.epoch
            and not one.is_flag
            and (sent is None or one.step.pc != sent.step.pc)
            and not any(one is other for other in unordered)
            for one in self.walk.sent_by(self.second)
        )

    def _is_early(self, told: Sent) -> bool:
        """Whether the first such request comes before the first such access."""
        first, epoch = self.first, self.walk.first_epoch(self.first)
        sends = (one for one in self.walk.sent[first.home] if one.core == told.core)
        same = next(one for one in sends if one.remote[0] == told.remote[0])
        if told.core == first.owner:
            return same.epoch < epoch
        return int(same.known[first.column]) < epoch


def _is_set(first: Side, second: Side) -> bool:
    """Whether a core stores to a word that a request changes."""
    return first.write and second.write and (first.sent is None or second.sent is None)


def _in_order(one: Side, other: Side, *, is_flag: bool) -> tuple[Side, Side]:
    """Both accesses, the one that should come first at the beginning."""
    if _is_set(one, other):
        return (other, one) if is_flag and one.sent is not None else (one, other)
    if one.write and other.write:
        return one, other
    write, read = (one, other) if one.write else (other, one)
    before = write.previous
    if before is not None and before[1] <= read.known[before[0]]:
        return read, write  # what was there before is still needed
    return write, read


# The findings.


def run(context: Context) -> list[Finding]:
    """The conflicts between tiles, each culprit once."""
    together = tiles(context)
    if together is None or together.few:
        return []
    return with_late_runs(context, _pairs(Walk(together)))


def _pairs(walk: Walk) -> Iterator[tuple[object, PairFinding]]:
    """The conflicts by culprit; later ones of a tile that has gone on too early are left out."""
    ahead: set[int] = set()
    for one in walk.disorders:
        first, second = one.first, one.second
        if not ahead.isdisjoint((first.home, second.home)):
            continue
        blame = one.blamed()
        if blame.act.tile is walk.tiles[second.home]:
            ahead.add(second.home)
        steps = [(side.home, side.step) for side in (first, second)]
        told = walk.stand((one.number, FAR, one.pair), steps)  # the code that made it
        finding = with_evidence(_finding(one, blame), told)
        key = tuple(finding.culprit.get(name) for name in ("core", "file", "line"))
        xy, request = walk.tiles[first.home].xy, first.sent is not None
        apart = first.home != second.home
        yield key, PairFinding(finding, Pair(xy, first.step, second.step, request, apart))


def _finding(one: Disorder, blame: Blame) -> Finding:
    first, second, tiles = one.first, one.second, one.walk.tiles
    at, text = blame.placed()
    here, there, of, its = (
        "({},{})".format(*tile.xy)
        for tile in (one.tile, tiles[first.home], tiles[second.home], blame.act.tile)
    )
    said = (
        f"nothing orders tile {there} {first.does} L1 {one.place:#x} of tile {here}"
        f" before tile {of} {second.does} it:"
        f" {maker(blame.act.step)} of tile {its} is wrong, {text}"
    )
    acts = Act(tiles[first.home], first.step), Act(tiles[second.home], second.step)
    evidence = (
        f"should come first, {acts[0]}",
        f"should come then, {acts[1]}",
        "no answer that was waited for and no word that was looked at orders them",
    )
    victim = acts[blame.act.tile is acts[0].tile]
    return Finding(
        "transfers", "error", said, place(at, blame.act.step.clock),
        place(victim.where, victim.step.clock), evidence, blame.advice,
    )  # fmt: skip


CHECK = Check(
    "transfers",
    proves="that a tile uses what another one sends to it before this is known to have arrived, or"
    " that a tile writes over what another one may still need; named is who does not wait, waits"
    " for too little, or lets the other side go on too early",
    misses="DRAM; words of four bytes that are data; programs of more than 64 tiles",
    cost="the observed run of `races`; late runs for each finding",
    applies=lambda seen: 65,  # to every run: some are right by luck
    run=run,
)
