"""The accesses of a run to places that agents share, and who made which of them last."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from bhemu.why.order.conflicts import Event
from order_walk import effects
from order_walk.effects import Range


class Shadow:
    """The last write of each place and the last read of each agent, as numbers of events."""

    def __init__(self) -> None:
        self.events: list[Event | None] = [None]
        self.written = np.zeros(effects.END, np.int32)
        self.read: dict[int, npt.NDArray[np.int32]] = {}

    def add(self, event: Event) -> int:
        """Keep an event; its number."""
        self.events.append(event)
        return len(self.events) - 1

    def readers(self, agent: int) -> npt.NDArray[np.int32]:
        """The last read of an agent, by place."""
        if agent not in self.read:
            self.read[agent] = np.zeros(effects.END, np.int32)
        return self.read[agent]

    def before(
        self, ranges: Sequence[Range], write: bool, ordered: Callable[[Event], bool]
    ) -> Iterator[tuple[int, Event]]:
        """(place, event) of the accesses that one to these places conflicts with.

        None of the ranges is empty; `ordered`: whether an event is before this access.
        """
        for table in (self.written, *(self.read.values() if write else ())):
            parts = [table[low:high] for low, high in ranges]
            numbers = parts[0] if len(parts) == 1 else np.concatenate(parts)
            for number in _distinct(numbers):
                event = self.events[number]
                if event is not None and not ordered(event):
                    yield _place(ranges, int(np.argmax(numbers == number))), event


def _distinct(numbers: npt.NDArray[np.int32]) -> Sequence[int]:
    first = int(numbers[0])
    if (numbers == first).all():
        return [first]
    found: list[int] = np.unique(numbers).tolist()
    return found


def _place(ranges: Sequence[Range], index: int) -> int:
    """The `index`-th place of some ranges."""
    for low, high in ranges:
        if index < high - low:
            return low + index
        index -= high - low
    raise IndexError(index)
