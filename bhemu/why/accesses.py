"""The accesses of a run to places that agents share, and who made which of them last."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bhemu.why import touched
from bhemu.why.order import Clock, Taken
from bhemu.why.walk import Step, Word


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
    poll: tuple[int, Step] | None  # of a core, its last load of a word that it polls
    vector: Clock


@dataclass(frozen=True)
class Conflict:
    """Two accesses to `place` in the order in which they happened; `units`: see Order."""

    place: int
    first: Event
    second: Event
    units: bool
    foreign: bool = False  # the second has changed what belongs to the first's thread


class Shadow:
    """The last write of each place and the last read of each agent, as numbers of events."""

    def __init__(self) -> None:
        self.events: list[Event | None] = [None]
        self.written = np.zeros(touched.END, np.int32)
        self.read: dict[int, npt.NDArray[np.int32]] = {}

    def add(self, event: Event) -> int:
        """Keep an event; its number."""
        self.events.append(event)
        return len(self.events) - 1

    def readers(self, agent: int) -> npt.NDArray[np.int32]:
        """The last read of an agent, by place."""
        if agent not in self.read:
            self.read[agent] = np.zeros(touched.END, np.int32)
        return self.read[agent]

    def before(self, low: int, high: int, write: bool) -> Iterator[tuple[int, Event]]:
        """(place, event) of the accesses that one to these places may conflict with."""
        tables = [self.written, *(self.read.values() if write else ())]
        for table in tables:
            part = table[low:high]
            first = int(part[0])
            if (part == first).all():
                numbers, at = [first], [0]
            else:
                found, index = np.unique(part, return_index=True)
                numbers, at = found.tolist(), index.tolist()
            for number, place in zip(numbers, at, strict=True):
                event = self.events[number]
                if event is not None:
                    yield low + place, event


def thread_of(event: Event) -> int | None:
    """The thread that an access belongs to: of a TRISC its own."""
    step = event.step
    if isinstance(step, Word):
        return step.thread if step.core else None
    return step.core - 1 if 1 <= step.core <= 3 else None
