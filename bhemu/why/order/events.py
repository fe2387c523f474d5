"""An access of an observed run, and two of them that nothing orders."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bhemu.tensix.config import CONFIG_WORDS
from bhemu.why.order import config_bits
from bhemu.why.order import record as r
from bhemu.why.order.observe import kind
from bhemu.why.walk import Step, Word

Clock = npt.NDArray[np.int64]
"""How far each agent (record.py) has come; of cores, threads and host alone."""


@dataclass(frozen=True)
class Taken:
    """What a thread has passed a SEMWAIT by, of semaphore `index`: posts or gets.

    one_more: what one more of them would have been behind; before: the word in front of the wait;
    step, value: the SEMINIT; gets: how often it was taken.
    """

    index: int
    of_posts: bool
    one_more: Clock | None
    before: Step | None
    step: Step | None
    value: int
    gets: int


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

    @property
    def thread(self) -> int | None:
        """The thread that it belongs to: of a TRISC its own."""
        step = self.step
        if isinstance(step, Word):
            return step.thread if step.core else None
        return step.core - 1 if 1 <= step.core <= 3 else None


@dataclass(frozen=True)
class Conflict:
    """Two accesses to `place` (record.py) in the order in which they happened.

    units: it is one where units take time; foreign: the second has changed what belongs to the
    first's thread; clears: of two cores' stores to a Config word the one without the fields that
    the other sets.
    """

    place: int
    first: Event
    second: Event
    units: bool
    foreign: bool = False
    clears: Event | None = None
    number: int = 0  # among the pairs of its tile

    @property
    def thread(self) -> int | None:
        """The thread whose unit alone reads the place, if it is of Config."""
        if kind(self.place) != "Config":
            return None
        return config_bits.threads().get((self.place - r.CONFIG) % (32 * CONFIG_WORDS))
