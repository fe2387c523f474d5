"""Words of L1 by which cores of a tile tell each other how far they are; what a poll proves.

A word that counts proves no more than it must have reached for the poll to end as it did: in
another schedule the core may have looked then.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from bhemu.memmap import L1_SIZE
from bhemu.riscv.formats import Atomic, Load
from bhemu.riscv.isa import decode
from bhemu.why.order.conflicts import Event
from order_walk.looks import Look
from order_walk.steps import Access, Executed
from order_walk.vector_clocks import Clock


class Polls:
    """The values that cores have stored to words of L1, and the polls whose branch is to come."""

    def __init__(self, l1: npt.NDArray[np.uint8]) -> None:
        """l1: as the program begins."""
        self._first = l1[:L1_SIZE].view("<u4").copy()
        self._values: dict[int, list[tuple[int, Event]]] = {}
        self._looks: dict[int, Look] = {}  # by core
        self.stores: list[tuple[int, int, Executed]] = []  # all to L1: word, clock, which

    def stored(self, access: Access, event: Event) -> None:
        """A core has stored to L1; what is less than a word leaves no value that is known."""
        whole = access.size == 4 and access.address % 4 == 0 and not access.reads
        value = access.value & 0xFFFFFFFF if whole else -1
        self._values.setdefault(access.address & ~3, []).append((value, event))

    def begin(self, step: Executed, word: int) -> None:
        """A core has loaded a polled word."""
        self._looks[step.core] = Look(word, step, [])

    def ended(self, step: Executed) -> Look | None:
        """The poll of a core that is over with its next instruction, if it is."""
        look = self._looks.get(step.core)
        if look is None:
            return None
        cls: Any = decode(step.word)
        other = cls is not None and issubclass(cls, Load | Atomic)
        goes = None if other else look.goes_on(step)
        if goes is False:
            return None
        del self._looks[step.core]
        if not goes:
            look.behind.clear()
        return look

    def least(self, look: Look, last: Event | None, seen: Clock) -> Event | None:
        """Of the stores since the last that the reader knows the first that ends the poll so.

        last: who has written the word last, which is told where the stores of cores are not all.
        seen: what the reader knows. None: no store was needed.
        """
        values = self._values.get(look.word, [])
        if not look.behind or not values or values[-1][1] is not last:
            return last
        if any(value < 0 for value, _ in values):
            return last
        known = [n for n, (_, one) in enumerate(values) if one.clock <= seen[one.agent]]
        floor = known[-1] if known else -1
        for n in range(floor, len(values)):
            value = values[n][0] if n >= 0 else int(self._first[look.word >> 2])
            if look.ends(value) == look.ended:
                return values[n][1] if n >= 0 else None
        return last
