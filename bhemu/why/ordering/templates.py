"""MOP templates that a core changes while a MOP that it has pushed may still use them.

The thread takes a MOP from its queue when it comes to it. What has told the core since then how far
its thread is, be it mop_sync, TTSync or a semaphore, is taken as enough.
"""

from bhemu.machine.tile import Tile
from bhemu.memmap import (
    INSTRN_BUF_BASE,
    INSTRN_BUF_END,
    MOP_CFG_BASE,
    MOP_CFG_END,
    PC_BUF_BASE,
    PC_BUF_MOP_SYNC_OFFSET,
    PC_BUF_TTSYNC_OFFSET,
)
from bhemu.riscv.formats import Pushed
from bhemu.riscv.isa import decode
from bhemu.tensix.frontend import MOP
from bhemu.why.findings import Finding, likely, place
from bhemu.why.ordering.vector_clocks import Order
from bhemu.why.walk import Access, Instruction, where

_TRISCS = range(1, 4)
_SYNCS = PC_BUF_BASE + PC_BUF_TTSYNC_OFFSET, PC_BUF_BASE + PC_BUF_MOP_SYNC_OFFSET


class Templates:
    """Follows what the TRISCs of a tile push and store."""

    def __init__(self, tile: Tile, order: Order) -> None:
        self._tile, self._order = tile, order
        self._pushed: dict[int, tuple[Instruction, int]] = {}  # by core: the MOP, what it knew then
        self._held: dict[tuple[int, int], int] = {}  # by core and address
        self.found: dict[int, tuple[Instruction, Instruction]] = {}  # by core

    @classmethod
    def of(cls, tile: Tile) -> "Templates":
        """Those that somebody else has found."""
        return cls(tile, Order(units=False))

    def instruction(self, step: Instruction, access: Access | None) -> None:
        """A core has executed an instruction."""
        core = step.core
        if core not in _TRISCS:
            return
        if self._word(step, access) >> 24 == MOP:
            self._pushed[core] = step, self._known(core)
        elif access is None:
            return
        elif access.reads and access.address in _SYNCS:
            self._pushed.pop(core, None)
        elif access.writes and MOP_CFG_BASE <= access.address < MOP_CFG_END:
            before = self._held.get((core, access.address))
            self._held[core, access.address] = access.value
            pushed, known = self._pushed.get(core, (None, 0))
            if pushed is not None and before != access.value and known == self._known(core):
                self.found.setdefault(core, (step, pushed))

    def _known(self, core: int) -> int:
        """How far the core knows its thread to be."""
        return int(self._order.clocks[core, self._order.issue(core - 1)])

    @staticmethod
    def _word(step: Instruction, access: Access | None) -> int:
        """The word that an instruction pushes; 0: none."""
        cls = decode(step.word)
        if cls is not None and issubclass(cls, Pushed):
            return cls.pushed(step.word)
        pushes = access is not None and access.writes
        if pushes and access is not None and INSTRN_BUF_BASE <= access.address < INSTRN_BUF_END:
            return access.value
        return 0

    def findings(self) -> list[Finding]:
        """One for each core."""
        return [self._finding(*both) for both in self.found.values()]

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
            likely("race"),
        )
