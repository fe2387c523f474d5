"""MOP templates that a core changes while a MOP that it has pushed may still use them.

The thread takes a MOP from its queue when it comes to it. What has told the core since then how far
its thread is, be it mop_sync, TTSync or a semaphore, is taken as enough.
"""

from bhemu.machine.tile import Tile
from bhemu.program.lateness import Acts
from bhemu.why.check import Context
from bhemu.why.findings import Finding, place
from bhemu.why.walk import Instruction, where
from bhemu.why.witness import witnessed


class Templates:
    """What a TRISC has stored too early, by core: the store, the MOP."""

    def __init__(self, tile: Tile) -> None:
        self._tile = tile
        self.found: dict[int, tuple[Instruction, Instruction]] = {}

    def findings(self, context: Context) -> list[Finding]:
        """One for each core."""
        found = []
        for store, pushed in self.found.values():
            pair = self._tile.xy, Acts(f"T{store.core - 1}"), store
            found.append(witnessed(context, self._finding(store, pushed), *pair))
        return found

    def _finding(self, store: Instruction, pushed: Instruction) -> Finding:
        thread = store.core - 1
        text = f"a store of trisc{thread} changes the MOP template of T{thread}, which a MOP pushed"
        text += " before may still use"
        return Finding(
            "races",
            "error",
            text,
            place(where(self._tile, store), store.clock, self._tile),
            place(where(self._tile, pushed), pushed.clock, self._tile),
            ("neither mop_sync, TTSync nor a semaphore tells the core in between that it is done",),
            "wait for the MOP first: mop_sync (PC_BUF 0xFFE80008), or tensix_sync",
        )
