"""Words that are polled and get their first value too late: who polls them has been let go by then.

Until that store the poller sees what the program before has left there. Who wins is a matter of
speed, which no poll settles: whatever is in the word may let it go on.
"""

from dataclasses import dataclass
from typing import Any

from bhemu.memmap import CORE_NAMES
from bhemu.riscv.formats import Branch
from bhemu.riscv.isa import decode
from bhemu.why.check import Context
from bhemu.why.findings import Finding, place
from bhemu.why.order.events import Clock, Event
from bhemu.why.order.looks import Look
from bhemu.why.order.observe import name as name_of
from bhemu.why.walk import where
from bhemu.why.witness import witnessed

_UNWRITTEN = 0xFFFFFFFF  # what a word holds that nobody writes before the launch, filled so


@dataclass(frozen=True)
class FirstLook:
    """A core's first poll of a word: what it knew before, who had let it start, at what clock."""

    look: Look
    seen: Clock
    starter: int
    started: int

    @property
    def _spins(self) -> bool:
        """Whether its branch, taken, looks again."""
        last = self.look.behind[-1] if self.look.behind else None
        cls: Any = None if last is None else decode(last.word)
        if last is None or cls is None or not issubclass(cls, Branch):
            return False
        back = last.pc + int(cls.offset.get(last.word))
        return back <= self.look.step.pc < last.pc

    def too_late(self, values: list[tuple[int, Event]]) -> Event | None:
        """The first store to the word, where it only says "wait" and nothing puts it first.

        It is by the core that has let the poller start, and behind that.
        """
        if len(values) < 2 or not self._spins or any(value < 0 for value, _ in values):
            return None
        first, event = values[0]
        if not self.look.ends(first) or all(self.look.ends(value) for value, _ in values):
            return None
        behind = event.agent == self.starter and event.clock > self.started
        return event if behind and event.clock > self.seen[self.starter] else None


def findings(
    context: Context, late: list[tuple[Any, list[tuple[Event, FirstLook]]]]
) -> list[Finding]:
    """Of tiles and their first stores that come too late: to words that no host has written."""
    found: dict[tuple[int, int], Finding] = {}
    for tile, stores in late:
        machine: Any = context.launch(poison="ff", **context.alone) if stores else None
        for event, first in stores:
            launched = machine.tile[tile.xy] if context.is_chip else machine
            key = event.step.core, event.step.pc
            if launched.read32(first.look.word) == _UNWRITTEN and key not in found:
                finding = _finding(tile, event, first)
                found[key] = witnessed(context, finding, tile.xy, event.step, first.look.step)
    return list(found.values())


def _finding(tile: Any, event: Event, first: FirstLook) -> Finding:
    poll, store = first.look.step, event.step
    reader, name = CORE_NAMES[poll.core], name_of(first.look.word >> 2)
    text = f"{CORE_NAMES[store.core]} gives {name} its first value only behind the release of"
    text += f" {reader}, which polls it and may go on by what is there before"
    return Finding(
        "races",
        "error",
        text,
        place(where(tile, store), store.clock, tile),
        place(where(tile, poll), poll.clock, tile),
        (f"no order puts the store at clock {store.clock} before the poll at clock {poll.clock}",),
        f"store it before {reader} is let go",
    )
