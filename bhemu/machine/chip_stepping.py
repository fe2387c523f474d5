"""Stepping one tile of a chip: the stepper's limits and breakpoints, the chip's run loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from bhemu.errors import InputError
from bhemu.machine.stepping import Machine
from bhemu.machine.stop import Stop
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
        """As Chip.run; `until` is about this tile, without it the program's end condition holds."""
        self.check_idle("run")
        asked: Callable[[Any], bool] | str | None
        if callable(until):
            condition = until
            asked = lambda _: condition(self.tile)  # noqa: E731
        elif until is None or until == "idle":
            asked = None if until is None else "idle"
        else:
            raise InputError("words of a tile on a chip: chip.run([((x, y), address, value)])")
        self.last = self._chip.run(asked, limit=limit, timeout_s=timeout_s, resume=resume)
        return self.last
