"""Bytes that tiles send to each other, used or overwritten without an order between tiles.

Of two accesses that nothing orders the write comes first, and the read needs it, unless the read
still needs the bytes from before. The first side lets the second side go on with a request that it
sends after its access. So the first side sends that request too early, or the second side does not
wait for it, or not for enough.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from bhemu.devices import niu_request as request
from bhemu.machine.error_text import outside_headers, where_core
from bhemu.machine.hang.givers import name_of
from bhemu.memmap import CORE_NAMES
from bhemu.program.schema import SESSION
from bhemu.why import order as r
from bhemu.why.check import Check, Context
from bhemu.why.checks.buffers import bytes_at, page_at
from bhemu.why.checks.contract import in_shared_bytes
from bhemu.why.findings import Finding, place
from bhemu.why.order.conflicts import (
    Conflict,
    Event,
    Look,
    Observed,
    first_clock,
    in_dram,
    is_old,
    knows_looks,
    looks,
    observed,
    tiles,
)
from bhemu.why.order.observe import l1_address
from bhemu.why.order.observe import name as place_name
from bhemu.why.order.tiles import Sent, Tiles
from bhemu.why.steps import NOTHING, OLD, SET_BACK, Act, Blame, Step, maker
from bhemu.why.witness import Pair, PairFinding, with_late_runs

_NO_ORDER = (
    "no answer that was waited for and no word that was looked at orders them; each tile has a"
    " clock of its own"
)
_PLACE = "one of both means another place, or the read of what was there before should come first"
_EITHER = "one of both writes to the wrong place, or the second does not wait for the first"
_STORE_BEFORE = "store to it before the other tile is told to go on, or let the NoC add to it"
_FLIT = 64  # bytes that the NoC moves at once


@dataclass(frozen=True)
class Disorder:
    """A conflict of two tiles, in L1 of the tile `seen` or in DRAM: `first` should be done before
    `second`.

    pair: as it happened. late: the requests that make the second access of any conflict.
    """

    together: Tiles
    seen: Observed
    pair: Conflict
    first: Event
    second: Event
    late: list[Sent | None]
    filled: bool = False  # the read knows of another tile's write before that of the first side

    @property
    def place(self) -> int:
        """The address."""
        found = l1_address(self.pair.place) if self.pair.bank is None else self.pair.place
        assert found is not None
        return found

    def sent_by(self, side: Event) -> list[Sent]:
        """All requests of the core that makes an access."""
        return [one for one in self.together.sent[side.home] if one.core == side.owner]

    def _blame(
        self, home: int, step: Step, text: str, advice: str, *, either: bool = False
    ) -> Blame:
        return Blame(Act(self.together.observers[home].tile, step), text, advice, either)

    def blamed(self) -> Blame:
        """The act that is wrong."""
        first, second, blame = self.first, self.second, self._blame
        flag = self.pair.bank is None and self.place >> 2 in self.together.flags[self.seen.number]
        heard = int(second.known[_column(first)])  # of what the first side has sent
        if _is_set(first, second) and flag and any(x.epoch <= heard for x in self.sent_by(first)):
            text = "because the other tile may have changed the word by then"
            return blame(first.home, first.step, text, _STORE_BEFORE)
        if _is_set(first, second) and (one := second.sent or first.sent) and one.increments:
            store = second if first.sent else first
            text = "because its store may wipe out what the other tile adds there"
            return blame(store.home, store.step, text, _STORE_BEFORE)
        ranges = self._range(first), self._range(second)
        few = min(high for _, high in ranges) - max(low for low, _ in ranges)
        if all(low + _FLIT < high and few < _FLIT for low, high in ranges):
            sides = [side for side in (first, second) if side.write]
            odd = [side for side in sides if self._range(side)[0] % _FLIT]
            write = [*odd, *sides][0]
            text = f"because both have only {few} bytes there in common: one of both has the wrong"
            advice = "compare the addresses and lengths on both sides"
            return blame(write.home, write.step, f"{text} address or length", advice)
        known = heard if first.sent else 0
        after = (one for one in self.sent_by(first) if first.owner_clock < one.epoch <= known)
        if first.sent and (told := next(after, None)) is not None:
            asked = "read may not have arrived" if first.sent.reads else "write may not have"
            if not first.sent.reads:
                asked += " arrived" if first.write else " left"
            text = f"because what it has asked the NoC to {asked} by then"
            advice = "wait for the answer of the request before it (a barrier)"
            return blame(told.tile, told.step, text, advice)
        look = self._wait()
        if look is not None:
            return self._blamed_for(look)
        if first.write and second.write and not flag:
            return self._either_write()
        text, advice = "wait for the other tile", "wait for a word that the other tile changes"
        return blame(second.home, second.step, f"{NOTHING} {text}", advice)

    def _blamed_for(self, look: Look) -> Blame:
        """The act that is wrong if the second side has waited, as this look says."""
        first, second, blame = self.first, self.second, self._blame
        if (flag_at := self._never_looked_at()) is not None:
            text = f"{NOTHING} look at L1 {flag_at:#x}, which the other tile changes after that"
            return blame(second.home, second.step, text, "wait for that word before")
        if first.write and (old := self.old_value) is not None:
            text = f"because L1 {4 * old.word:#x} still holds {OLD}"
            return blame(second.home, old.step, text, SET_BACK)
        told = self._told(look)
        too_few, too_early = self._counted(look, told)
        if self.filled and not too_few:
            advice = "compare the addresses on both sides"
            return blame(first.home, first.step, _PLACE, advice, either=True)
        if told is not None and too_early and not too_few:
            text = "because it lets the other tile go on too early"
            advice = "send it after the last access to the bytes that the other tile uses"
            return blame(told.tile, told.step, text, advice)
        advice = "compare the count with its value at the start plus the number of expected"
        advice += " requests"
        if too_few:
            text = "because it does not wait until the other tile is done"
            return blame(second.home, look.step, text, advice)
        if first.write and second.write:
            return self._either_write()
        text = f"either {self._line(second.home, look.step)} waits too late or for too few, or"
        if told is not None:
            text += f" {self._line(told.tile, told.step)} of the other tile comes too early, or"
        text += " both sides mean different places"
        return blame(second.home, look.step, text, advice, either=True)

    def _line(self, home: int, step: Step) -> str:
        where = outside_headers(Act(self.together.observers[home].tile, step).where)
        return f"{where.file}:{where.line}"

    def _either_write(self) -> Blame:
        """Named is who writes to another tile, the second one if both do."""
        sides = [side for side in (self.second, self.first) if side.home != self.seen.number]
        by = [*sides, self.second][0]
        return self._blame(by.home, by.step, _EITHER, "compare where both write", either=True)

    def _range(self, side: Event) -> tuple[int, int]:
        """What a side accesses; of a core that looks at data before it sends them all of these."""
        if (sent := side.sent) is None:
            since = (one for one in self.sent_by(side) if one.epoch >= side.owner_clock)
            later = (one.own for one in since if not one.reads)
            here = (own for own in later if own[0] <= self.place < own[1])
            return next(here, (self.place, self.place + 4))
        return sent.own if side.write == sent.reads else sent.remote

    def _wait(self) -> Look | None:
        """The last look at a flag that the first side's tile sends to, of which the second side
        knows; of its own since it last made the same access."""
        second, home = self.second, self.second.home
        again = [one.epoch for one in self._alike()]
        before = max((epoch for epoch in again if epoch < second.owner_clock), default=0)
        known = second.known[r.OWNERS * home :]  # how far the cores of its tile were
        flags, by = self.together.flags[home].items(), self.first.home
        words = [word for word, sent in flags if any(one.tile == by for one in sent.values())]
        before_it = [one for one in self._looks(words) if one.epoch <= int(known[one.core])]
        own = [one for one in before_it if one.core == second.owner and one.epoch >= before]
        if own:
            return None if self._is_for_another(own[-1]) else own[-1]
        return before_it[-1] if before_it and second.sent is None else None

    def _alike(self) -> Iterator[Sent]:
        """The requests of the second side from the same line to the same tiles."""
        if (sent := self.second.sent) is not None:
            for one in self.sent_by(self.second):
                if one.step.pc == sent.step.pc and one.reached == sent.reached:
                    yield one

    def _never_looked_at(self) -> int | None:
        """A word that the first side changes after its write and the other tile never looks at."""
        first, home = self.first, self.second.home
        o = self.together.observers[home].record
        sent = self.sent_by(first) if first.write and knows_looks(o) else []
        looked = {*o.passed[: int(o.passes[0]), 2].tolist()}
        after = (one for one in sent if one.is_flag and one.epoch > first.owner_clock)
        there = (one for one in after if home in one.reached and one.step.pc != first.step.pc)
        return next((o.remote[0] for o in there if o.remote[0] >> 2 not in looked), None)

    def _told(self, look: Look) -> Sent | None:
        """The last request to the word of a look, by the first side's tile, of which the second
        side knows."""
        known = self.second.known[r.OWNERS * self.first.home :]
        sent = self._sent_to(look.word).values()
        told = (one for one in sent if one.epoch <= int(known[one.core]))
        return max(told, key=lambda one: one.epoch, default=None)

    @property
    def old_value(self) -> Look | None:
        """The second side's wait, if a value ends it that has let the same wait end before, and
        some of the other tile's values are never needed."""
        if not self._is_complete or (look := self._wait()) is None:
            return None
        return look if is_old(self._looks([look.word]), look, self._sent_to(look.word)) else None

    @property
    def _is_complete(self) -> bool:
        """Whether what the second side's tile never needed is known."""
        return self.seen.whole and knows_looks(self.together.observers[self.second.home].record)

    def _looks(self, words: Sequence[int]) -> list[Look]:
        """The looks of the second side's tile at these words."""
        return looks(self.together.observers[self.second.home].record, words)

    def _sent_to(self, word: int) -> dict[int, Sent]:
        """The requests of the first side's tile to a word of the second side's, by number."""
        sent = self.together.flags[self.second.home][word]
        return {number: one for number, one in sent.items() if one.tile == self.first.home}

    def _counted(self, look: Look, told: Sent | None) -> tuple[bool, bool]:
        """Whether the wait of a look is for too few, and whether `told` is too early, as far as the
        counts of the whole run prove it; both or none of both where they prove nothing.

        A wait for what the other side is to write is for too few if some of its requests to the
        word are never needed. A wait for room is right if it comes before each access and none is
        left at the end, or if as many are as there are places, or as are needed from one access to
        this place to the next; it is for too few if more accesses are ahead of the requests that it
        needs than there are places.
        """
        if not self._is_complete:
            return False, False
        second = self.second
        every, numbers = self._looks([look.word]), [*self._sent_to(look.word)]
        most = max(one.needed for one in every)
        rest = sum(number > most for number in numbers)
        early = told is not None and self._is_early(told)
        if second.sent is None or not second.write:
            return rest > 0, early and not rest
        ahead, here, same = 0, list[int](), [*self._alike()]
        for k, one in enumerate(same):
            waits = (w.needed for w in every if w.core == one.core and w.epoch <= one.epoch)
            last = max(waits, default=-1)
            given = sum(number <= last for number in numbers)
            ahead = max(ahead, k + 1 - given)
            here += [given] if one.remote[0] <= self.place < one.remote[1] else []
        places, turns = len({one.remote[0] for one in same}), [b - a for a, b in pairwise(here)]
        first_asks = all(given > k for k, given in enumerate(here))
        right = rest in (places, *turns[-1:]) or (rest == 0 and first_asks)
        return not right and ahead > places, early and right

    def _is_for_another(self, look: Look) -> bool:
        """Whether the core waited for another request that it sent after this read.

        Then that request is in order, and the read says nothing of the second side.
        """
        sent = self.second.sent
        return any(
            look.epoch < one.epoch < self.second.owner_clock
            and not one.is_flag
            and (sent is None or (one.step.pc != sent.step.pc and one.reached == sent.reached))
            and not any(one is other for other in self.late)
            for one in self.sent_by(self.second)
        )

    def _is_early(self, told: Sent) -> bool:
        """Whether the first such request comes before the first such access."""
        first, observers = self.first, self.together.observers
        epoch = first_clock(observers[first.home].record, first, self.together.sent[first.home])
        sends = (one for one in self.together.sent[first.home] if one.core == told.core)
        same = next(one for one in sends if one.remote[0] == told.remote[0])
        if told.core == first.owner:
            return same.epoch < epoch
        return int(same.known[r.PLAIN + _column(first)]) < epoch


def _column(side: Event) -> int:
    """That of the owner of an access, among those of all tiles."""
    return r.OWNERS * side.home + side.owner


def _does(side: Event) -> str:
    """What an access does to the word, in words."""
    verb = "writing" if side.write else "reading"
    if side.sent is None:
        return verb
    return "sending" if not side.write and not side.sent.reads else f"{verb} over the NoC"


def _is_set(first: Event, second: Event) -> bool:
    """Whether a core stores to a word that a request changes."""
    return first.write and second.write and (first.sent is None or second.sent is None)


# The findings.


def run(context: Context) -> list[Finding]:
    """The conflicts between tiles, each culprit once."""
    together = tiles(context)
    if together is None or together.few:
        return []
    return with_late_runs(context, _pairs(context, together))


def _announced(context: Context, one: Disorder) -> Blame | None:
    """The core that announces the page with the bytes to the second side, which waits for that."""
    seen, second, at = one.seen, one.second, one.place
    is_own = one.pair.bank is None and second.sent is None and second.home == seen.number
    if not is_own or not one.first.write:
        return None
    page = page_at(context, seen, at, second.step.clock)
    event = None if page is None else page.told
    if event is None or event.core == second.step.core:
        return None
    known = int(second.vector[event.core])
    steps = (step for clock, step in seen.releases(event.core) if clock <= known)
    by = next((step for step in steps if step.pc == event.pc), None)
    if by is None:
        return None
    text = f"because it announces {page} before what the other tile writes there has come"
    advice = "wait for a word that the other tile changes before the page is announced"
    return Blame(Act(seen.tile, by), text, advice)


def _disorders(context: Context, together: Tiles, every: Sequence[Observed]) -> list[Disorder]:
    """All pairs, the earliest first, of these those of a core or unit.

    The order in which a pair of a right run happened is meant. What a run did in the order that is
    meant does not make it wrong, so these pairs of a wrong run come last. A wait that an old value
    ends comes first: what its core does then comes too early, too.
    """
    found, late, fine = [], list[Sent | None](), context.symptom.fine
    pairs = [(seen, one) for seen in every for one in seen.conflicts(units=True, apart=True)]
    for seen, one in [*pairs, *((every[0], one) for one in in_dram(together))]:
        sides = first, second = one.first, one.second
        write, read = sides if first.write else (second, first)
        previous = write.previous
        if _is_set(*sides):
            flag = (l1_address(one.place) or 0) >> 2 in together.flags[seen.number]
            sides = (second, first) if flag and first.sent is not None else sides
        elif not fine and read.write:
            sides = second, first
        elif not fine:
            sides = write, read
            kept = previous is not None and previous[1] <= read.known[previous[0]]
            if kept and Disorder(together, seen, one, write, read, late).old_value is None:
                sides = read, write  # what was there before is still needed
        late.append(sides[1].sent)
        older = None if fine or sides[0] is not write or read.write else write.older
        filled = older is not None and older[1] <= read.known[older[0]]
        found.append(Disorder(together, seen, one, *sides, late, filled))

    def rank(one: Disorder) -> tuple[bool, bool, int, bool]:
        as_meant = not fine and one.first is one.pair.first
        old = one.first.write and one.old_value is not None
        of_requests = one.first.sent is not None and one.second.sent is not None
        return as_meant, not old, one.pair.second.step.clock, of_requests

    return sorted(found, key=rank)


def _pairs(context: Context, together: Tiles) -> Iterator[tuple[object, PairFinding]]:
    """The conflicts by culprit; later ones of a tile that has gone on too early are left out."""
    ahead: set[int] = set()
    for one in _disorders(context, together, observed(context)):
        first, second = one.first, one.second
        if not ahead.isdisjoint((first.home, second.home)):
            continue
        blame = one.blamed()
        if blame.text.startswith(NOTHING):
            blame = _announced(context, one) or blame
        tiles = [together.observers[side.home].tile for side in (first, second)]
        if blame.act.tile is tiles[1]:
            ahead.add(second.home)
        bank = one.pair.bank
        code = one.seen.stand_at(one.pair) if bank is None else []  # that made it
        ends = bytes_at(context, one.seen.tile, one.place) if bank is None else None
        here, there, of, its = map(name_of, (one.seen.tile, *tiles, blame.act.tile))
        then = "and" if blame.either else "before"
        at = f"L1 {one.place:#x} of tile {here}" if bank is None else ""
        at = at or f"DRAM bank {bank}, {one.place:#x}"
        text = (
            f"nothing orders tile {there} {_does(first)} {at} {then}"
            f" tile {of} {_does(second)} it: {blame.told(f'{maker(blame.act.step)} of tile {its}')}"
        )
        acts = Act(tiles[0], first.step), Act(tiles[1], second.step)
        each = ("one", "the other") if blame.either else ("should come first,", "should come then,")
        evidence = (*map("{} {}".format, each, acts), _NO_ORDER, *code)
        victim = acts[blame.act.tile is acts[0].tile]
        culprit, other = blame.culprit(), place(victim.where, victim.step.clock)
        finding = Finding("transfers", "error", text, culprit, other, evidence, blame.advice, ends)
        if bank is None:
            why = f"nothing orders tile {there} {_does(first)} {at} and tile {of}"
            why = f"{why} {_does(second)} it"
            finding = in_shared_bytes(context, one.seen.tile.xy, one.place, finding, why)
        key = tuple(culprit.get(name) for name in ("core", "file", "line"))
        apart = None if first.home == second.home else tiles[1].xy
        pair = Pair(tiles[0].xy, first.step, second.step, first.sent is not None, apart)
        yield key, PairFinding(finding, pair)


CHECK = Check(
    "transfers",
    proves="that a tile uses what another one sends to it before this is known to have arrived, or"
    " that a tile writes over what another one may still need; named is who does not wait, waits"
    " for too little, or lets the other side go on too early",
    misses="DRAM of sessions; words on which a core branches, as data; programs of more than 64"
    " tiles",
    cost="the observed run of `races`; late runs for each finding",
    applies=lambda seen: 65,  # to every run: some are right by luck
    run=run,
)


# Requests whose data are used before they arrive, or that a kernel does not wait for.


_ADVICE = {
    request.READ: "wait for its answer (noc_async_read_barrier) before its data are used",
    request.WRITE: "wait until it has been acknowledged (noc_async_write_barrier) before others are"
    " told, and until it has left before its source changes",
    request.ATOMIC: "wait for its answer (noc_async_atomic_barrier)",
}


def _barriers(context: Context) -> list[Finding]:
    """Requests whose data are used too early; kernels that end before their answers."""
    if tiles(context) is None:
        return []
    if found := with_late_runs(context, _unordered(context)):
        return found
    # of a session firmware goes on with what its kernels have asked for
    hangs = context.symptom.error is not None
    left = () if hangs or context.program.kind == SESSION else _unanswered(context)
    return with_late_runs(context, left)


def _unanswered(context: Context) -> Iterator[tuple[int, PairFinding]]:
    """Kernels that end without a look at the answers of their last requests, by pc."""
    together = tiles(context)
    assert together is not None
    whole = [(n, one.tile) for n, one in enumerate(together.observers) if not one.full]
    for tile, last in ((tile, last) for n, tile in whole for last in together.unanswered(n)):
        act, step = Act(tile, last.step), last.step
        if context.in_firmware(tile, step.core, step.pc):
            continue
        end = sent = outside_headers(act.where)
        if sent.function is not None:  # the last line of the function that sends it
            _, low, high = tile.core[CORE_NAMES[step.core]].function(step.pc)
            lines = [where_core(tile, step.core, pc) for pc in range(low, high, 4)]
            own = [one for one in map(outside_headers, lines) if one.file == sent.file]
            outer = (one for one in own if not one.inlined)
            end = max(outer, key=lambda one: one.line or 0, default=sent)
        text = f"{CORE_NAMES[step.core]} ends without a look at the answers of its last NoC"
        text, told = f"{text} {request.KIND_NAMES[last.kind]}s", f"the last of them is sent {act}"
        who, victim, advice = place(end, None), place(sent, step.clock), _ADVICE[last.kind]
        finding = Finding("barriers", "error", text, who, victim, (told,), advice)
        yield step.pc, PairFinding(finding, Pair(tile.xy, step, step, request=True))


def _unordered(context: Context) -> Iterator[tuple[int, PairFinding]]:
    """Requests whose source or target is used although no core has looked for their answer.

    A user that does not wait for the sender of the request at all is left out: `races` tells it.
    """
    seen = observed(context)
    plain = [(one.tile.xy, each) for one in seen for each in one.conflicts(units=False)]
    raced = {(xy, each.first.owner, each.second.owner) for xy, each in plain}
    for races, conflict in [(one, each) for one in seen for each in one.conflicts(units=True)]:
        tile, first, second = races.tile, conflict.first, conflict.second
        others = first.owner != second.owner
        if first.sent is None or (others and (tile.xy, first.owner, second.owner) in raced):
            continue
        blamed = (others and races.release_after(first)) or second.step
        code = races.stand_at(conflict)
        what = "target of a NoC read" if first.write else "source of a NoC write"
        text = f"the {what}, {place_name(conflict.place)}, is used while it may be on its way"
        asked = Act(tile, first.step)
        evidence = (
            f"asked for {asked}",
            f"used {Act(tile, second.step)}",
            "no branch in between needs a counter of the NoC interface unit to have counted it",
            *code,
        )
        acts = Act(tile, blamed), asked
        who, victim = (place(outside_headers(act.where), act.step.clock) for act in acts)
        if first.write and not others:  # its barrier stands after it
            who, victim = victim, who
        advice = _ADVICE[request.READ if first.write else request.WRITE]
        finding = Finding("barriers", "error", text, who, victim, evidence, advice)
        pair = Pair(tile.xy, first.step, second.step, request=True)
        yield first.step.pc, PairFinding(finding, pair)


BARRIERS = Check(
    "barriers",
    proves="the source or target of a NoC request that is used before a branch has needed a counter"
    " of answers to count it; a kernel that ends without a look at the answers of its last"
    " requests",
    misses="at the end of a kernel requests for whose answers it has looked, however early;"
    " programs of one tile",
    cost="the observed run of `races`; late runs for each finding",
    applies=lambda seen: 70 if seen.error is None else 0,
    run=_barriers,
)
