"""What an executed word may end the wait of: the hang analysis asks every word that somebody holds.

A class says it in `effects(values)`, with the values of its fields by name.
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum, auto
from typing import NamedTuple

Values = Mapping[str, int]


class Kind(Enum):
    """What happens to the target."""

    POSTS = auto()  # semaphore: incremented
    TAKES = auto()  # semaphore: decremented
    SETS_ABOVE_ZERO = auto()  # semaphore
    SETS_BELOW_MAXIMUM = auto()  # semaphore
    RELEASES = auto()  # mutex
    HANDS_OVER = auto()  # Src bank: to the matrix unit
    FREES = auto()  # Src bank: to the unpacker
    STORES = auto()  # address of a register


class Effect(NamedTuple):
    """One thing that a word does; `target`: number of the semaphore, mutex or Src, or address."""

    kind: Kind
    target: int


# Fields by which instructions of several units give Src banks back: bit 0 SrcA, bit 1 SrcB.
_GIVES_BACK = ("clear_dvalid", "clear_ab_vld", "cleardvalid")


def of_mask(kind: Kind, mask: int) -> Iterator[Effect]:
    """The effect on each target whose bit is set."""
    return (Effect(kind, i) for i in range(mask.bit_length()) if mask >> i & 1)


def gives_back(values: Values) -> Iterable[Effect]:
    """Src banks that the word returns to the unpackers."""
    return [e for name in _GIVES_BACK for e in of_mask(Kind.FREES, values.get(name, 0))]
