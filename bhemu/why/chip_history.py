"""The past of one tile of a chip: the whole chip is put back to the beginning and runs again.

A moment is named by the clock of that tile, which counts its own instructions and words.
"""

from dataclasses import dataclass, replace
from typing import Any

from bhemu import report
from bhemu.chip import Chip
from bhemu.chip_snapshot import ChipSnapshot
from bhemu.errors import BhemuError
from bhemu.history import History, Mark
from bhemu.machine.chip_stepping import ChipMachine
from bhemu.machine.stop import Stop, now
from bhemu.memmap import CORE_NAMES
from bhemu.tile import Tile


@dataclass(frozen=True)
class ChipMark(Mark):
    """A moment of a whole chip."""

    state: ChipSnapshot | None = None


class ChipHistory(History):
    """As History, of a tile of a chip; what a host changes between runs is not remembered."""

    def __init__(self, tile: Tile, chip: Chip) -> None:
        self._chip = chip
        self._stepping = ChipMachine(tile, chip)
        tile.machine = self._stepping
        super().__init__(tile, self._stepping)

    def ran(self) -> None:
        """The chip has run to its end."""
        self._last = max(self._last, now(self.tile.state))

    def last_stop(self) -> Stop:
        """As History; who wrote over the NoC with the source line that its own tile knows."""
        stop = super().last_stop()
        change = stop.change
        if change is None or change.where.core is None:
            return stop
        xy = change.where.tile
        if not isinstance(xy, tuple) or xy == self.tile.xy:
            return stop
        sender, core = self._chip.tile[xy], CORE_NAMES.index(change.where.core)
        where = report.where_core(sender, core, change.where.pc)
        return replace(stop, change=replace(change, where=where))

    def _mark(self, *, changed: bool = False) -> Mark:
        s: Any = self.tile.state
        counts = (tuple(int(n) for n in counts) for counts in (s.retired, s.executed))
        retired, executed = counts
        state = self._chip.snapshot()
        return ChipMark(now(s), retired, executed, (), {}, (), None, changed, state)

    def _restore(self, mark: Mark) -> None:
        assert isinstance(mark, ChipMark)
        assert mark.state is not None
        error: BhemuError | None = mark.state.error
        self._chip.restore(mark.state)
        self._chip.runner.error = error
        self.machine.seen.clear()
