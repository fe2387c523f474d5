"""The stepper's commands for saved states."""

from pathlib import Path

from bhemu.debug.commands import Commands
from bhemu.machine.saved import Snapshot
from bhemu.program import files


class States(Commands):
    """save, load; the rest of the stepper is stepper.py."""

    def show(self) -> None:
        """Where the selected core stands."""
        raise NotImplementedError

    def do_save(self, args: list[str]) -> None:
        """save FILE.npz: write the state of all tiles; bhemu step FILE.npz begins there."""
        self._need(args, 1, 1, "save FILE.npz")
        path = Path(args[0])
        files.check_writable(path, "save")
        self.tile.machine.snapshot().save(path)
        self._out(f"saved: {path}, clock {self.tile.clock}")

    def do_load(self, args: list[str]) -> None:
        """load FILE.npz: go to a saved state; the past begins there."""
        self._need(args, 1, 1, "load FILE.npz")
        self.tile.machine.restore(Snapshot.load(args[0]))
        self._out(f"clock {self.tile.clock}")
        self.show()
