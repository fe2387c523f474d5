"""Bytes that tiles send to each other, used or overwritten without an order between tiles.

Of two accesses that nothing orders the write comes first, and the read needs it, unless the read
still needs the bytes from before. The first side lets the second side go on with a request that it
sends after its access. So the first side sends that request too early, or the second side does not
wait for it, or not for enough.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from bhemu.machine.tile import Tile
from bhemu.noc.grid import XY
from bhemu.why.check import Check, Context
from bhemu.why.findings import Finding, place, with_evidence
from bhemu.why.order import record as r
from bhemu.why.order.conflicts import step_of, tiles
from bhemu.why.order.observe import owner_of
from bhemu.why.order.tiles import FAR, Sent, Tiles
from bhemu.why.steps import Act, Blame, Instruction, Step, Word, maker
from bhemu.why.witness import Pair, PairFinding, with_late_runs

_FLIT = 64  # bytes that the NoC moves at once


@dataclass(frozen=True)
class Passed:
    """A core of tile `home` has read a word that other tiles change, and gone on.

    by: the requests that the core needed for this.
    """

    home: int
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
    def pc(self) -> int:
        """The pc of the access; the REPLAY's pc for a word that a REPLAY plays."""
        return self.step.pushed if isinstance(self.step, Word) else self.step.pc


class Walk:
    """The results of an observed run of all tiles: pairs, reads of flags, requests.

    stand: puts the code of a session back (Tiles).
    """

    def __init__(self, tiles: Tiles) -> None:
        self.sent, self.flags, self.stand = tiles.sent, tiles.flags, tiles.stand
        self.tiles: list[Tile] = [one.tile for one in tiles.observers]
        self.records = [one.record for one in tiles.observers]

    @cached_property
    def passed(self) -> list[list[Passed]]:
        """The reads of each tile after which its cores went on, in order."""
        return [self._passed(n) for n in range(len(self.records))]

    def _passed(self, n: int) -> list[Passed]:
        o, found = self.records[n], []
        last = int(o.passes[0])
        for i in range(max(last - r.PASSED, 0), last):
            core, clock, word, pc, text, floor, upto, time = o.passed[i % r.PASSED].tolist()
            values = self.flags[n].get(word, {})
            by = tuple(values[k] for k in range(floor + 1, upto + 1) if k in values)
            step = Instruction(time, core, pc, text)
            found.append(Passed(n, core, clock, 4 * word, step, by))
        return found

    def first_access(self, n: int, owner: int, pc: int) -> int | None:
        """The clock of the first access of an owner of tile `n` to L1 from a place in the code."""
        found = self.records[n].first_access
        at = np.flatnonzero((found[:, 0] == owner + 1) & (found[:, 1] == pc))
        return int(found[at[0], 2]) if at.size else None

    def sides(self, n: int) -> list[tuple[int, Side, Side]]:
        """The address and both accesses of each pair of tile `n`, the earlier access first."""
        o, found = self.records[n], []
        for i in range(int(o.far_pairs[0])):
            row = o.far_pair[i].tolist()
            near = self._near(n, row[r.FP_EVENT :], o.far_pair_known[i].copy())
            first, second = (
                self._far(n, o.far_event[row[k]].tolist()) if row[k] else near
                for k in (r.FP_FIRST, r.FP_SECOND)
            )
            found.append((row[r.FP_PLACE], first, second))
        return found

    def _near(self, n: int, row: list[int], known: npt.NDArray[np.int64]) -> Side:
        owner = owner_of(row[r.AGENT])
        own = slice(r.SHARED * n, r.SHARED * (n + 1))
        np.maximum(known[own], row[r.KNOWN : r.KNOWN + r.SHARED], out=known[own])
        previous = (row[r.PREVIOUS] - 1, row[r.PREVIOUS + 1]) if row[r.PREVIOUS] else None
        step = step_of(row)
        return Side(n, owner, row[r.OWNER_CLOCK], bool(row[r.WRITE]), step, None, known, previous)

    def _far(self, n: int, row: list[int]) -> Side:
        sent = self.sent[row[r.F_HOME]][row[r.F_NUMBER]]
        previous = (row[r.F_PREVIOUS] - 1, row[r.F_PREVIOUS + 1]) if row[r.F_PREVIOUS] else None
        home, write = row[r.F_HOME], bool(row[r.F_WRITE])
        return Side(home, sent.core, sent.epoch, write, sent.step, sent, sent.known, previous)


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

    def stand(self) -> list[str]:
        """Restore the code that made the pair, of a session; see CodeThen."""
        steps = [(side.home, side.step) for side in (self.first, self.second)]
        return self.walk.stand((self.number, FAR, self.pair), steps)

    @property
    def tile(self) -> Tile:
        """The tile whose L1 holds the place."""
        return self.walk.tiles[self.number]

    @property
    def is_flag(self) -> bool:
        """Whether a core stores to a flag: a word by which another tile tells it something."""
        return _is_set(self.first, self.second) and self.place >> 2 in self.walk.flags[self.number]

    def blamed(self) -> Blame:
        """The act that is wrong."""
        first = self.first
        if self.is_flag:
            return self._blame(
                first.home, first.step,
                "because the other tile may have changed the word by then",
                "store to it before the other tile is told to go on",
            )  # fmt: skip
        if (few := self._shared()) is not None:
            write = first if first.write else self.second
            return self._blame(
                write.home, write.step,
                f"because both have only {few} bytes there in common: one of both has the wrong"
                " address or length",
                "compare the addresses and lengths on both sides",
            )  # fmt: skip
        if (told := self._told()) is not None:
            return self._blame(
                told.tile, told.step, f"because what it has {self._unfinished()} by then",
                "wait for the answer of the request before it (a barrier)",
            )  # fmt: skip
        second, passed = self.second, self._wait()
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

    def _shared(self) -> int | None:
        """How many bytes both requests have in common, if that is a small part of each."""
        ranges = [self._range(side) for side in (self.first, self.second)]
        both = max(low for low, _ in ranges), min(high for _, high in ranges)
        few = both[1] - both[0]
        return few if all(low + _FLIT < high and few < _FLIT for low, high in ranges) else None

    def _range(self, side: Side) -> tuple[int, int]:
        """What a side accesses; of a core that looks at data before it sends them all of these."""
        sent = side.sent
        if sent is None:
            own = [one for one in self.walk.sent[side.home] if one.core == side.owner]
            later = [one for one in own if one.epoch >= side.epoch and not one.reads]
            sent = next((o for o in later if o.own[0] <= self.place < o.own[1]), None)
        if sent is None:
            return self.place, self.place + 4
        return sent.own if side.write == sent.reads else sent.remote

    def _unfinished(self) -> str:
        sent = self.first.sent
        if sent is not None and not self.first.write and not sent.reads:
            return "asked the NoC to write may not have left"
        reads = sent is not None and sent.reads
        return f"asked the NoC to {'read' if reads else 'write'} may not have arrived"

    def _told(self) -> Sent | None:
        """A request that the first side sent after its access and that the second side knows of."""
        first, second = self.first, self.second
        if first.sent is None:
            return None
        known = int(second.known[r.SHARED * first.home + first.owner])
        later = [one for one in self.walk.sent[first.home] if one.core == first.owner]
        return next((one for one in later if first.epoch < one.epoch <= known), None)

    def _words(self) -> set[tuple[int, int]]:
        """(tile, word) of the flags that the first side's tile sends to."""
        return {
            (n, 4 * word)
            for n, flags in enumerate(self.walk.flags)
            for word, values in flags.items()
            if any(one.tile == self.first.home for one in values.values())
        }

    def _wait(self) -> Passed | None:
        """The second side's last read of such a flag, since it last made the same access."""
        second, words = self.second, self._words()
        before = self._again()
        looks = [one for one in self.walk.passed[second.home] if (second.home, one.word) in words]
        own = [one for one in looks if one.core == second.owner]
        own = [one for one in own if before <= one.epoch <= second.epoch]
        if own or second.sent is not None:
            return own[-1] if own and not self._is_for_another(own[-1]) else None
        known = second.known[r.SHARED * second.home :]  # how far the cores of its tile were
        others = [one for one in looks if one.epoch <= int(known[one.core])]
        return others[-1] if others else None

    def _is_for_another(self, look: Passed) -> bool:
        """Whether the core waited for another request that it sent after this read.

        Then that request is in order, and the read says nothing of the second side.
        """
        sent = self.second.sent
        unordered = [
            _in_order(self.walk, n, place, first, second)[1].sent
            for n in range(len(self.walk.tiles))
            for place, first, second in self.walk.sides(n)
        ]
        return any(
            one.core == self.second.owner
            and look.epoch < one.epoch < self.second.epoch
            and not one.is_flag
            and (sent is None or one.step.pc != sent.step.pc)
            and not any(one is other for other in unordered)
            for one in self.walk.sent[self.second.home]
        )

    def _again(self) -> int:
        """The second side's clock when it last sent the same request; 0: it never did."""
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

    def _is_early(self, told: Sent) -> bool:
        """Whether the first such request comes before the first such access."""
        first = self.first
        sends = [one for one in self.walk.sent[first.home] if one.core == told.core]
        same = [one for one in sends if one.remote[0] == told.remote[0]]
        epoch = self.walk.first_access(first.home, first.owner, first.pc) or first.epoch
        if first.sent is not None:
            own = [one for one in self.walk.sent[first.home] if one.core == first.owner]
            epoch = next(one.epoch for one in own if one.step.pc == first.pc)
        if told.core == first.owner:
            return same[0].epoch < epoch
        return int(same[0].known[r.SHARED * first.home + first.owner]) < epoch


def disorders(walk: Walk) -> list[Disorder]:
    """All pairs of a run, the earliest first."""
    found = []
    for n in range(len(walk.tiles)):
        for i, (at, one, other) in enumerate(walk.sides(n)):
            first, second = _in_order(walk, n, at, one, other)
            found.append(Disorder(walk, n, at, first, second, other.step.clock, i))
    return sorted(found, key=lambda one: one.clock)


def _is_set(first: Side, second: Side) -> bool:
    """Whether a core stores to a word that a request changes."""
    return first.write and second.write and (first.sent is None or second.sent is None)


def _in_order(walk: Walk, n: int, place: int, one: Side, other: Side) -> tuple[Side, Side]:
    """Both accesses, the one that should come first at the beginning."""
    if _is_set(one, other):
        is_flag = place >> 2 in walk.flags[n]
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
    for one in disorders(walk):
        first, second = one.first, one.second
        if not ahead.isdisjoint((first.home, second.home)):
            continue
        if one.blamed().act.tile is walk.tiles[second.home]:
            ahead.add(second.home)
        told = one.stand()
        finding = with_evidence(_finding(one), told)
        key = tuple(finding.culprit.get(name) for name in ("core", "file", "line"))
        xy, request = walk.tiles[first.home].xy, first.sent is not None
        apart = first.home != second.home
        yield key, PairFinding(finding, Pair(xy, first.step, second.step, request, apart))


def _finding(one: Disorder) -> Finding:
    blame, first, second = one.blamed(), one.first, one.second
    (at, text), tiles = blame.placed(), one.walk.tiles
    said = (
        f"nothing orders tile {_xy(tiles[first.home].xy)} {_does(first)} L1 {one.place:#x} of tile"
        f" {_xy(one.tile.xy)} before tile {_xy(tiles[second.home].xy)} {_does(second)} it:"
        f" {maker(blame.act.step)} of tile {_xy(blame.act.tile.xy)} is wrong, {text}"
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


def _xy(xy: XY) -> str:
    return f"({xy[0]},{xy[1]})"


def _does(side: Side) -> str:
    verb = "writing" if side.write else "reading"
    if side.sent is None:
        return verb
    leaves = not side.write and not side.sent.reads
    return "sending" if leaves else f"{verb} over the NoC"


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
