"""Which step uses, writes or carries a byte, as the observed run tells."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from bhemu.errors import Where
from bhemu.jit.subset import JIT
from bhemu.memmap import L1_SIZE
from bhemu.why.check import Context
from bhemu.why.order.conflicts import observed, tiles
from bhemu.why.steps import where
from bhemu.why.unwritten.moves import STRIDE as AREA
from bhemu.why.unwritten.moves import Uses
from bhemu.why.unwritten.trials import STRIDE, Fill, Trials

_FIRST = 5  # column of an actor: when it acted first


@dataclass(frozen=True)
class Reader:
    """The step that uses a value, its clock, and the requests that have carried the value there."""

    where: Where
    clock: int
    carriers: tuple[Where, ...] = ()


class Users:
    """Answers questions about bytes, as `trials` numbers them, from the observed run."""

    def __init__(self, context: Context, trials: Trials) -> None:
        self._trials = trials
        self._seen = observed(context) if JIT else []
        self._together = together = tiles(context) if JIT else None
        self._moves = None if together is None else together.moves
        numbers = {tile.xy: n for n, tile in enumerate(trials.tiles)}
        self._numbers = [numbers[one.tile.xy] for one in self._seen]

    def used(self, fill: Fill) -> Fill:
        """The bytes of a fill that were used or carried."""
        kept = np.isin(fill.at & ~3, self._words[0])
        return Fill(fill.at[kept], fill.values[kept])

    def reader(self, fill: Fill) -> Reader | None:
        """The first step that uses one of these bytes; the last that carries them if none does."""
        words, uses, rows = self._words
        hits = rows[np.isin(words, fill.at & ~3)].tolist()
        found = [(*self._moment(uses[number], row), number, row) for number, row in hits]
        if not found:
            return None
        *_, number, row = min(found)
        use = uses[number]
        carriers = self._carriers(int(use.hop[row]))
        if use.tile < 0:
            at, clock = carriers[-1]
            return Reader(at, clock, tuple(one for one, _ in carriers[:-1]))
        at, clock = self._seen[use.tile].act(int(use.actor[row]) + 1)
        return Reader(at, clock, tuple(one for one, _ in carriers))

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

    def request_up_to(self, at: int) -> tuple[Where, int] | None:
        """The last request that brought to a tile what ends before a byte, and its clock."""
        number, rest = divmod(at, STRIDE)
        found = [
            one
            for one in (() if self._together is None else chain(*self._together.sent))
            for n in ([one.tile] if one.reads else one.reached if one.takes_data else [])
            if self._numbers[n] == number and (one.own if one.reads else one.remote)[1] == rest
        ]
        if not found:
            return None
        last = max(found, key=lambda one: one.step.clock)
        return where(self._seen[last.tile].tile, last.step), last.step.clock

    def _moment(self, use: Uses, row: int) -> tuple[int, bool, int]:
        """The order of a use among others: values with more hops come last; then its clock."""
        hops, hop, last = 0, int(use.hop[row]), None
        while hop >= 0:
            assert self._moves is not None
            hops, (hop, sent) = hops - 1, self._moves.hops[hop]
            last = last or sent
        if use.tile < 0:
            assert last is not None
            return hops, True, int(last.step.clock)
        return hops, False, int(self._seen[use.tile].record.actor[use.actor[row], _FIRST])

    def _carriers(self, hop: int) -> list[tuple[Where, int]]:
        """The requests up to a hop, in order, each line once."""
        found: list[tuple[Where, int]] = []
        while hop >= 0:
            assert self._moves is not None
            hop, sent = self._moves.hops[hop]
            at = where(self._seen[sent.tile].tile, sent.step)
            if at not in [one for one, _ in found]:
                found.insert(0, (at, sent.step.clock))
        return found

    @cached_property
    def _words(self) -> tuple[npt.NDArray[np.int64], list[Uses], npt.NDArray[np.int64]]:
        """Used words, as `trials` numbers their first bytes; the uses; by word its use and row."""
        uses = list(self._uses())
        words = [np.empty(0, np.int64), *(one.origin for one in uses)]
        rows = [np.empty((0, 2), np.int64)]
        for number, one in enumerate(uses):
            row = np.arange(len(one.origin))
            rows.append(np.stack([np.full(len(row), number), row], axis=1))
        return np.concatenate(words), uses, np.concatenate(rows)

    def _uses(self) -> Iterator[Uses]:
        for n, seen in enumerate(self._seen):
            user: Any = seen.record.user
            words = np.flatnonzero(user)
            words = words[words >= L1_SIZE // 4] if self._moves is not None else words
            origin = self._numbers[n] * STRIDE + 4 * words.astype(np.int64)
            actors = user[words].astype(np.int64) - 1
            yield Uses(origin, n, actors, np.full(len(words), -1, np.int32))
        if self._moves is None:
            return
        moved = list(self._moves.uses())  # this gives a key to places that no request has touched
        pages = {key: len(self._trials.tiles) + n for n, key in enumerate(self._trials.pages)}
        numbers = np.array(
            [
                self._numbers[at] if kind < 0 else pages.get((kind, at), -1)
                for kind, at in self._moves.keys
            ],
            np.int64,
        )
        for one in moved:
            number = numbers[(one.origin - 1) // AREA]
            origin = np.where(number < 0, -1, number * STRIDE + (one.origin - 1) % AREA)
            yield one._replace(origin=origin)
