"""The accesses of a run to places that agents share, and who made which of them last."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bhemu.why.walk import Step, Word
from order_walk import effects
from order_walk.effects import Range
from order_walk.vector_clocks import Clock, Taken


@dataclass(frozen=True)
class Event:
    """An access: who made it as whose part, and how far that agent was."""

    step: Step
    agent: int
    clock: int
    owner: int
    owner_clock: int  # of the core or thread's issue
    write: bool
    waited: bool  # the owner has waited for somebody since it last let somebody go on
    wait: Step | None  # a wait that the thread has issued and that does not hold this word
    push_clock: int  # of the core that pushed a word
    again: bool  # the owner has made the same access before, since it last waited
    taken: Taken | None  # the semaphore that it has last waited for
    acquired: int  # the owner's clock when it did
    poll: tuple[int, Step] | None  # its core's last load of a word that it polls
    vector: Clock
    before: Step | None = None  # of an access to Dst: the owner's last one before `taken`


@dataclass(frozen=True)
class Conflict:
    """Two accesses to `place` in the order in which they happened; `units`: see Order.

    `clears`: of two cores' stores to a Config word the one without the fields that the other sets.
    """

    place: int
    first: Event
    second: Event
    units: bool
    foreign: bool = False  # the second has changed what belongs to the first's thread
    clears: Event | None = None


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


def thread_of(event: Event) -> int | None:
    """The thread that an access belongs to: of a TRISC its own."""
    step = event.step
    if isinstance(step, Word):
        return step.thread if step.core else None
    return step.core - 1 if 1 <= step.core <= 3 else None
