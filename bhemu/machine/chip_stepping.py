"""Stepping one tile of a chip: the stepper's limits and breakpoints, the chip's run loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

from bhemu.errors import InputError
from bhemu.machine.runner import count_to
from bhemu.machine.stepping import Machine
from bhemu.machine.stop import Stop, now
from bhemu.machine.until import Until
from bhemu.parts import TilePart


class RunsChip(Protocol):
    """What is asked of a chip."""

    def run(
        self,
        until: Any = ...,
        *,
        limit: int | None = ...,
        timeout_s: float | None = ...,
        resume: bool = ...,
    ) -> Stop:
        """Run all tiles."""

    @property
    def end(self) -> Any:
        """How its runs end that say nothing else."""

    def holds(self, xy: tuple[int, int], address: int, value: int) -> bool:
        """Whether a word of L1 of a tile has that value."""


class ChipMachine(Machine):
    """The stepper of one tile, which all tiles of its chip run along with."""

    def __init__(self, tile: TilePart, chip: RunsChip) -> None:
        super().__init__(tile)
        self._chip = chip

    def run(
        self,
        until: Until = None,
        limit: int | None = None,
        timeout_s: float | None = None,
        resume: bool = False,
    ) -> Stop:
        """As Chip.run; `until` is about this tile, without it the program's end condition holds.

        limit: in units of this tile's clock, exact; the clock of a stop is that of this tile.
        """
        self.check_idle("run")
        if until is None and self.last is not None and self._is_over(self.last):
            return self.last
        asked: Callable[[Any], bool] | str | None
        if callable(until):
            condition = until
            asked = lambda _: condition(self.tile)  # noqa: E731
        elif until is None or until == "idle":
            asked = None if until is None else "idle"
        else:
            raise InputError("words of a tile on a chip: chip.run([((x, y), address, value)])")
        s = self.tile.state
        s.limit[0] = -1 if limit is None else count_to("limit", now(s), limit)
        try:
            reached = self._chip.run(asked, timeout_s=timeout_s, resume=resume)
        finally:
            s.limit[0] = -1
        self.last = replace(reached, clock=now(s))
        return self.last

    def _is_over(self, last: Stop) -> bool:
        """Whether the last run has met the program's end condition, which still holds."""
        still = last.reason == "until" and last.clock == now(self.tile.state)
        words = self._chip.end.words
        return still and bool(words) and all(self._chip.holds(*word) for word in words)
