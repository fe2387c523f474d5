"""Why a run ended, and where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bhemu.errors import Where
from bhemu.machine import error_text
from bhemu.machine.watching import Change
from bhemu.tensix.state import State

if TYPE_CHECKING:
    from bhemu.machine.tile import Tile


@dataclass(frozen=True, repr=False)
class Stop:
    """Why a run ended: "until", "idle", "limit", "timeout", "breakpoint", "watchpoint", "step",
    "interrupt", of a chip "rounds" or "polling" too.

    `where` is the place of the core that stopped (None when no single core did), `clock` the
    tile's clock, `breakpoint` the number of the breakpoint that was reached, `change` what a
    watchpoint saw.
    """

    reason: str
    where: Where | None
    clock: int
    breakpoint: int | None = None
    change: Change | None = None

    def __repr__(self) -> str:
        number = "" if self.breakpoint is None else f" {self.breakpoint}"
        number += "" if self.change is None else f" ({self.change})"
        place = "" if self.where is None else f", {self.where}"
        return f"<Stop {self.reason}{number}, clock {self.clock}{place}>"


def now(s: State) -> int:
    """The clock, what the open turn has retired so far included: a limit counts from here."""
    open_turn = int(s.turn_given[0] - s.left[int(s.agent[0])]) if s.turn_open[0] else 0
    return int(s.clock[0]) + open_turn


def stop(tile: Tile, reason: str, number: int | None = None, change: Change | None = None) -> Stop:
    """The stop of a tile that stands now."""
    s = tile.state
    where = None if change is None else change.where
    if reason in ("step", "breakpoint") and s.turn_open[0]:
        where = error_text.where_core(tile, int(s.agent[0]))
    return Stop(reason, where, now(s), number, change)
