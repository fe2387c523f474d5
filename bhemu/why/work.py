"""What runs of a program cost, counted as instructions of some 2 ns: the same on every machine."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from bhemu.machine.tile import Tile
from bhemu.why.walk import Walk

# What a run costs besides its instructions, a Tensix word, a launch, and each further tile of it.
_RUN, _WORD, _LAUNCH, _TILE = 500_000, 40, 10_000_000, 1_500_000
_BYTE = 4  # that is changed before a run
_LOOK, _LOOK_AT_WORD = 15_000, 50_000  # an instruction or word of a walk


@dataclass
class Work:
    """What has been done so far."""

    done: int = 0

    def launched(self, tiles: int) -> None:
        """A program was launched."""
        self.done += _LAUNCH + _TILE * (tiles - 1)

    def restored(self, tiles: int, changed: int) -> None:
        """Tiles were put back to the launch, and so many bytes changed."""
        self.done += _TILE * tiles + _BYTE * changed

    def ran(self, instructions: int) -> None:
        """A launched program was run, and executed these."""
        self.done += _RUN + instructions

    def walked(self, walks: Iterable[Walk]) -> None:
        """Steps of a program were looked at."""
        for walk in walks:
            self.done += _LOOK * walk.instructions + _LOOK_AT_WORD * walk.words


def executed(tiles: Iterable[Tile]) -> int:
    """Instructions and words that tiles have executed, as instructions."""
    return sum(
        int(tile.state.retired.sum()) + _WORD * int(tile.state.executed.sum()) for tile in tiles
    )


def tiles_of(machine: Any) -> list[Tile]:
    """The tiles that a machine has."""
    return [machine] if isinstance(machine, Tile) else list(machine.tiles_made())
