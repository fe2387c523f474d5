"""Which step uses or writes a byte, as the observed run tells."""

from collections.abc import Iterator
from functools import cached_property
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bhemu.devices import niu_request as request
from bhemu.devices import noc_map
from bhemu.errors import Where
from bhemu.jit.record import plain
from bhemu.jit.subset import JIT
from bhemu.noc import memory
from bhemu.noc.record import MEMORY_PAGE, MEMORY_SHIFT
from bhemu.why.check import Context
from bhemu.why.order.conflicts import observed, tiles
from bhemu.why.order.sent import Sent
from bhemu.why.steps import where
from bhemu.why.unwritten.trials import STRIDE, Fill, Trials

_FIRST = 5  # column of an actor: when it acted first
_number, _offset = plain(memory.number), plain(memory.offset)


class Reader(NamedTuple):
    """The step that uses a value, its clock, and whether that is a request to the NoC."""

    clock: int
    where: Where
    by_noc: bool


class Users:
    """Answers questions about bytes, as `trials` numbers them, from the observed run.

    A request uses what it reads. What it brings counts as written, as it does for a core that
    stores a value which it has loaded.
    """

    def __init__(self, context: Context, trials: Trials) -> None:
        self._trials = trials
        self._seen = observed(context) if JIT else []
        together = tiles(context) if JIT else None
        self._sent: list[Sent] = [] if together is None else [*chain(*together.sent)]
        numbers = {tile.xy: n for n, tile in enumerate(trials.tiles)}
        self._numbers = [numbers[one.tile.xy] for one in self._seen]

    def used(self, fill: Fill) -> Fill:
        """The bytes of a fill that were used."""
        kept = np.isin(fill.at & ~3, self._words[0])
        for low, high, _ in self._reads:
            kept[slice(*np.searchsorted(fill.at, (low, high)))] = True
        return Fill(fill.at[kept], fill.values[kept])

    def reader(self, fill: Fill) -> Reader | None:
        """The first step that uses one of these bytes."""
        words, users = self._words
        found: list[Reader] = []
        hits = users[np.isin(words, fill.at & ~3)]
        for n, actor in np.unique(hits, axis=0).tolist():
            at, clock = self._seen[n].act(actor)
            sent = at.core is not None and any(
                (one.tile, one.step.pc, one.step.clock) == (n, at.pc, clock) for one in self._sent
            )
            found.append(Reader(clock, at, sent))
        for low, high, one in self._reads:
            first, last = np.searchsorted(fill.at, (low, high))
            if first < last:
                at = where(self._seen[one.tile].tile, one.step)
                found.append(Reader(one.step.clock, at, True))
        return min(found, key=lambda one: one.clock, default=None)

    def maker(self, at: int) -> tuple[Where, int] | None:
        """The last step, not a request, that wrote a byte of a tile, and its clock."""
        number, rest = divmod(at, STRIDE)
        if number not in self._numbers:
            return None
        seen = self._seen[self._numbers.index(number)]
        actor = int(seen.record.maker[rest >> 2])
        return seen.act(actor, last=True) if actor else None

    def made(self, at: npt.NDArray[np.int64], number: int) -> npt.NDArray[np.bool_]:
        """Which bytes of a tile a core or unit has written."""
        if number not in self._numbers:
            return np.zeros(len(at), np.bool_)
        found: npt.NDArray[np.bool_] = (
            self._seen[self._numbers.index(number)].record.maker[at >> 2] > 0
        )
        return found

    def request_up_to(self, at: int, most: int) -> tuple[Where, int] | None:
        """The last request that brought what ends shortly before a byte, and its clock."""
        number, rest = divmod(at, STRIDE)
        found = [
            one
            for one in self._sent
            for n in ([one.tile] if one.reads else one.reached if one.takes_data else [])
            if self._numbers[n] == number
            and 0 <= rest - (one.own if one.reads else one.remote)[1] < most
        ]
        if not found:
            return None
        last = max(found, key=lambda one: one.step.clock)
        return where(self._seen[last.tile].tile, last.step), last.step.clock

    @cached_property
    def _words(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The first bytes of words that steps of their tiles have used; tile and actor of each."""
        words, users = [np.empty(0, np.int64)], [np.empty((0, 2), np.int64)]
        for n, seen in enumerate(self._seen):
            at = np.flatnonzero(seen.record.user)
            words.append(self._numbers[n] * STRIDE + 4 * at.astype(np.int64))
            actors = seen.record.user[at].astype(np.int64)
            users.append(np.stack([np.full(len(at), n), actors], axis=1))
        return np.concatenate(words), np.concatenate(users)

    @cached_property
    def _reads(self) -> list[tuple[int, int, Sent]]:
        """The ranges that requests have read in other tiles and in DRAM."""
        sent = [one for one in self._sent if one.reads and not one.is_register]
        return [(low, high, one) for one in sent for low, high in self._ends(one)]

    def _ends(self, one: Sent) -> Iterator[tuple[int, int]]:
        low, high = one.remote
        yield from (
            (self._numbers[n] * STRIDE + low, self._numbers[n] * STRIDE + high) for n in one.reached
        )
        endpoint = int(one.row[request.ENDPOINT])
        if endpoint & 15 == noc_map.TENSIX:
            return
        which, at = int(_number(endpoint)), int(_offset(endpoint, low))
        end = at + high - low
        while at < end:
            page, first = (which, at >> MEMORY_SHIFT), at & (MEMORY_PAGE - 1)
            last = min(first + end - at, MEMORY_PAGE)
            if page in self._trials.pages:
                number = len(self._trials.tiles) + self._trials.pages.index(page)
                yield number * STRIDE + first, number * STRIDE + last
            at += last - first
