"""What executed words used: their operands in words, and who set the configuration they read."""

from collections import deque

from bhemu.machine.operands import effective, set_by
from bhemu.machine.tile import Tile
from bhemu.tensix.rules import DONE

Seen = tuple[str, str]  # meaning, who set what it used


class Operands:
    """Looks at every word before it executes; `next` gives what was seen, in that order."""

    def __init__(self, tile: Tile) -> None:
        self._tile = tile
        self._seen: deque[Seen] = deque()
        tile.backend.table.observe(self._before, self._after)

    def _before(self, t: int, word: int) -> Seen:
        return effective(self._tile.state, t, word), set_by(self._tile, t, word)

    def _after(self, seen: Seen, status: int) -> None:
        if status == DONE:
            self._seen.append(seen)

    def next(self) -> Seen:
        """What was seen of the next executed word."""
        return self._seen.popleft()
