"""The stepper's commands for saved states."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bhemu.debug.commands import Commands
from bhemu.machine.saved import Snapshot
from bhemu.program import files


@dataclass(frozen=True)
class StateFiles:
    """Which files save and load touch: where a name of a command stands, what is not overwritten.

    `place` raises InputError for a name that a command may not use.
    """

    kept: tuple[Path, ...] = ()
    place: Callable[[str], Path] = Path


class States(Commands):
    """save, load; the rest of the stepper is stepper.py."""

    _files: StateFiles

    def show(self) -> None:
        """Where the selected core stands."""
        raise NotImplementedError

    def do_save(self, args: list[str]) -> None:
        """save FILE.npz: write the state of all tiles; bhemu step FILE.npz begins there."""
        self._need(args, 1, 1, "save FILE.npz")
        path = self._files.place(args[0])
        files.check_writable(path, "save", self._files.kept)
        self.tile.machine.snapshot().save(path)
        self._out(f"saved: {path}, clock {self.tile.clock}")

    def do_load(self, args: list[str]) -> None:
        """load FILE.npz: go to a saved state; the past begins there."""
        self._need(args, 1, 1, "load FILE.npz")
        path = self._files.place(args[0])
        self.tile.machine.restore(Snapshot.load(path))
        self._out(f"clock {self.tile.clock}")
        self.show()
