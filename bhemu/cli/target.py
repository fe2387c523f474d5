"""What a command runs: a program launched on a tile or on a chip, and the tile that is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bhemu.cli.options import Settings
from bhemu.cli.progress import Progress
from bhemu.errors import InputError
from bhemu.launch.session import Launched
from bhemu.program import coordinates

if TYPE_CHECKING:
    from bhemu.program.specs import Program


class Target(Launched):
    """A launched program: `tile` is the one that is shown."""

    def __init__(self, chosen: Settings, progress: Progress) -> None:
        self.chosen = chosen
        _check_tile(chosen, [xy for part in chosen.program.placed() for xy in part.at])
        super().__init__(chosen.program, chosen.tile, progress=progress)

    def of_tile(self) -> Program:
        """The program as the shown tile has it."""
        return self.part(self.tile.xy)

    def save(self) -> None:
        """Write the state of the machine to the file of --save, if any."""
        if self.chosen.save is not None:
            self.machine.snapshot().save(self.chosen.save)


def _check_tile(chosen: Settings, named: list[coordinates.XY]) -> None:
    """--tile names one of the program's tiles, and only a program on a chip has several."""
    if chosen.tile is None:
        return
    if chosen.program.is_alone:
        raise InputError("--tile goes with a program of a chip", hint="this one has one tile")
    if chosen.tile not in named:
        x, y = chosen.tile
        raise InputError(
            f"--tile {x},{y}: the program has nothing there", hint=f"tiles: {_listed(named)}"
        )


def _listed(named: list[coordinates.XY]) -> str:
    return coordinates.text(sorted(named, key=lambda xy: (xy[1], xy[0])))
