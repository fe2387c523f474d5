"""Random choices that are the same on every machine: raw PCG64 words, nothing of numpy on top."""

import zlib
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T")
_BLOCK = 4096


class Dice:
    """Choices of (unit, seed, index).

    Only `random_raw` of PCG64 and SeedSequence are used: numpy keeps these two stable for ever,
    the distributions of Generator are not.
    """

    def __init__(self, unit: str, seed: int, index: int) -> None:
        entropy = [zlib.crc32(unit.encode()), seed, index]
        self._source = np.random.PCG64(np.random.SeedSequence(entropy))
        self._words: list[int] = []

    def _word(self) -> int:
        if not self._words:
            self._words = [int(w) for w in self._source.random_raw(_BLOCK)]
        return self._words.pop()

    def below(self, n: int) -> int:
        """0 .. n-1."""
        return self._word() % n

    def between(self, low: int, high: int) -> int:
        """low .. high, both included."""
        return low + self.below(high - low + 1)

    def chance(self, one_in: int) -> bool:
        """True once in `one_in` times."""
        return self.below(one_in) == 0

    def pick(self, items: Sequence[T]) -> T:
        """One of the items."""
        return items[self.below(len(items))]

    def raw(self, n: int) -> npt.NDArray[np.uint64]:
        """`n` random 64-bit words."""
        words: npt.NDArray[np.uint64] = self._source.random_raw(n)
        return words

    def array(self, n: int, limit: int) -> npt.NDArray[np.int64]:
        """`n` values of 0 .. limit-1."""
        return (self.raw(n) % np.uint64(limit)).astype(np.int64)
