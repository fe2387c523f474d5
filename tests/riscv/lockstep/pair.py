"""Two tiles, one per engine, that get the same program and must never differ."""

from typing import Any

import numpy as np

from bhemu.errors import BhemuError, Internal
from bhemu.machine.tile import Tile
from bhemu.memmap import CORE_NAMES
from bhemu.riscv import turn
from bhemu.tensix.state import MEMBERS, POINTERS

# Not compared: host addresses; how pollers are run, by slices, which differ where one engine
# asks for a page of code; what an engine keeps for itself; what means nothing after a slice.
OWN = {*POINTERS, *turn.MEMBERS, "regs", "scratch", "attention", "detail"}
OWN |= {"code_page", "flush", "translated", "translate_after", "page_count"}
COMPARED = [member.name for member in MEMBERS if member.name not in OWN]


class Pair:
    """A Unicorn tile and a compiled tile."""

    def __init__(self, **options: Any) -> None:
        self.tiles = [Tile(engine=engine, **options) for engine in ("unicorn", "compiled")]

    def both(self, act: Any) -> None:
        """Do something to each tile."""
        for tile in self.tiles:
            act(tile)

    def outcomes(self, **how: Any) -> list[str]:
        """How a run of each tile ended, an error with its rule and all its text."""
        return [outcome(tile, **how) for tile in self.tiles]

    def differences(self) -> list[str]:
        """Members of the record that differ, and registers."""
        one, other = self.tiles
        found = [
            name
            for name in COMPARED
            if not np.array_equal(getattr(one.state, name), getattr(other.state, name))
        ]
        for core in CORE_NAMES:
            if list(one.core[core].regs) != list(other.core[core].regs):
                found.append(f"registers of {core}")
        return found

    def positions(self) -> list[list[Any]]:
        """Of each tile: clock, and state, pc, count and registers of each core."""
        return [
            [
                tile.clock,
                *((c.state, c.pc, c.retired, c.regs.tolist()) for c in tile.core.values()),
            ]
            for tile in self.tiles
        ]


def outcome(tile: Tile, **how: Any) -> str:
    """The stop, or the error in full."""
    try:
        stop = tile.run(**how)
    except BhemuError as problem:
        if isinstance(problem, Internal):
            raise
        return f"{type(problem).__name__} {problem.rule} {problem} {problem.where}"
    return f"{stop.reason} {stop.where} {stop.clock}"
