"""Unwritten words that NoC requests carry: where each word in L1 or DRAM comes from.

Words of four bytes are followed, through observed tiles and pages of DRAM.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bhemu.devices import niu_request as request
from bhemu.devices.noc_map import TENSIX as _TENSIX
from bhemu.jit.record import plain
from bhemu.memmap import L1_SIZE
from bhemu.noc import memory
from bhemu.noc.record import MEMORY_PAGE, MEMORY_SHIFT
from bhemu.why.order.sent import Sent

Key = tuple[int, int]  # an observed tile: -1 and its number; a page: its memory and number
STRIDE = 1 << 32
"""Between areas, where bytes of all of them have numbers."""
_PART = 8  # bytes of the record for which a byte of `fresh` stands
_number, _offset = plain(memory.number), plain(memory.offset)


class Hop(NamedTuple):
    """A request that has carried a word; before: the hop before it, -1: none."""

    before: int
    sent: Sent


@dataclass
class _Area:
    """Words of the L1 of a tile, or of a page.

    origin: 1 + the byte from which a request has carried the word, 0 = no request has. hop: that
    request. written: a request has carried written bytes here.
    """

    origin: npt.NDArray[np.int64]
    hop: npt.NDArray[np.int32]
    written: npt.NDArray[np.bool_]


class Uses(NamedTuple):
    """Used words: their origins, the tile and actor that used them (-1: carried), hops."""

    origin: npt.NDArray[np.int64]
    tile: int
    actor: npt.NDArray[np.int64]
    hop: npt.NDArray[np.int32]


class Moves:
    """Follows the requests of observed tiles; `records`: theirs."""

    def __init__(self, records: Sequence[Any]) -> None:
        self._records = records
        self._areas: dict[Key, _Area] = {}
        self.keys: list[Key] = []  # by the number that `origin` has
        self.hops: list[Hop] = []
        self._replaced: list[Uses] = []

    def arrives(self, sent: Sent) -> None:
        """A request has arrived."""
        if sent.is_register:
            return
        own, size = [((-1, sent.tile), sent.own[0])], sent.remote[1] - sent.remote[0]
        at = sent.remote[0]
        ends = [[((-1, n), at)] for n in sent.reached] or [self._pages(sent, size)]
        if sent.reads:
            self._carry(sent, ends[0], own, size)
            return
        takes = sent.takes_data and sent.kind == request.WRITE
        for end in ends:
            self._carry(sent, own if takes else [], end, size)

    def _pages(self, sent: Sent, size: int) -> list[tuple[Key, int]]:
        """The parts of memory pages that a request reaches; none if it reaches a tile."""
        endpoint = int(sent.row[request.ENDPOINT])
        if sent.is_multicast or endpoint & 15 == _TENSIX:
            return []
        which, at = int(_number(endpoint)), int(_offset(endpoint, sent.remote[0]))
        found = []
        while size > 0:
            found.append(((which, at >> MEMORY_SHIFT), at & (MEMORY_PAGE - 1)))
            part = MEMORY_PAGE - (at & (MEMORY_PAGE - 1))
            at, size = at + part, size - part
        return found

    def _carry(self, sent: Sent, source: Any, target: Any, size: int) -> None:
        """Carry words from one place to another; without a source they are written."""
        if len(source) > 1 or len(target) > 1 or size <= 0:
            return  # beyond the end of a page
        for key, low in target:
            words = (low + size + 3 >> 2) - (low >> 2)
            origin, hop = np.zeros(words, np.int64), np.full(words, -1, np.int32)
            if source and not (source[0][1] | low) & 3:
                origin, before = self._taken(source[0][0], source[0][1] >> 2, words)
                for one in np.unique(before[origin > 0]).tolist():
                    hop[(before == one) & (origin > 0)] = len(self.hops)
                    self.hops.append(Hop(one, sent))
            self._put(key, low >> 2, origin, hop)

    def _area(self, key: Key) -> tuple[int, _Area]:
        if key not in self._areas:
            words = (L1_SIZE if key[0] < 0 else MEMORY_PAGE) // 4
            self._areas[key] = _Area(
                np.zeros(words, np.int64), np.zeros(words, np.int32), np.zeros(words, np.bool_)
            )
            self.keys.append(key)
        return self.keys.index(key), self._areas[key]

    def _origins(self, key: Key, words: Any) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """The origins of words, written or not, and the requests, -1: none."""
        number, area = self._area(key)
        at = np.arange(len(area.origin), dtype=np.int64)[words]
        held, own = area.origin[words], number * STRIDE + 4 * at + 1
        return np.where(held > 0, held, own), np.where(held > 0, area.hop[words], -1)

    def _taken(self, key: Key, first: int, count: int) -> Any:
        """The origins of words, 0 = written; the requests that have brought them."""
        words = slice(first, first + count)
        origin, hop = self._origins(key, words)
        written = self._areas[key].written[words]
        if key[0] < 0:
            written = written | (self._records[key[1]].maker[words] > 0)
        origin[written] = 0
        return origin, hop

    def _put(self, key: Key, first: int, origin: Any, hop: Any) -> None:
        words = slice(first, first + len(origin))
        if key[0] < 0:
            o = self._records[key[1]]
            self._replaced += self._used(key, np.flatnonzero(o.user[words]) + first)
            o.user[words] = o.maker[words] = 0
            flags = o.fresh.view(np.uint8)[4 * first // _PART : 4 * words.stop // _PART + 1]
            bits = np.unpackbits(flags, bitorder="little")
            low = 4 * first % _PART
            bits[low : low + 4 * len(origin)] = np.repeat(origin > 0, 4)
            flags[:] = np.packbits(bits, bitorder="little")
        _, area = self._area(key)
        area.origin[words], area.hop[words], area.written[words] = origin, hop, origin == 0

    def _used(self, key: Key, words: npt.NDArray[np.int64]) -> list[Uses]:
        if not words.size:
            return []
        actors = self._records[key[1]].user[words].astype(np.int64)
        origin, hop = self._origins(key, words)
        return [Uses(origin, key[1], actors - 1, hop)]

    def uses(self) -> Iterator[Uses]:
        """All words of L1 that were used, then those that were carried and lie somewhere."""
        yield from self._replaced
        for n, o in enumerate(self._records):
            yield from self._used((-1, n), np.flatnonzero(o.user[: L1_SIZE // 4]))
        for area in self._areas.values():
            words = np.flatnonzero(area.origin)
            yield Uses(area.origin[words], -1, np.full(len(words), -1, np.int64), area.hop[words])
