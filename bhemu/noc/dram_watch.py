"""Watchpoints on DRAM: bytes of a bank, compared after every request that is performed there.

A watchpoint is a row of `chip.dram_watch`; `chip.dram_seen` holds what was last seen there.
A hit is kept in `chip.dram_hit`, with the bytes before and after, and delivery stops behind the
request. Nothing is compared while none is set.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from bhemu.devices import niu_request as request
from bhemu.jit.address import load_word
from bhemu.jit.subset import njit
from bhemu.noc import memory
from bhemu.noc.grid import Grid
from bhemu.noc.record import DRAM_WATCHES, ChipState
from bhemu.tensix.observe import CHANGES, READS

OWNER, NUMBER, MEMORY, AT, LENGTH, ACCESS = range(6)  # columns of a watchpoint
ROW, READ, SENDER, CORE, PC = range(5)  # of a hit; ROW counts from 1


class Memories(Protocol):
    """What is asked of the chip's network."""

    state: ChipState
    grid: Grid

    def read(self, which: int, at: int, n: int, *, make: bool = False) -> bytes:
        """Bytes of a memory; `make`: of pages that are there from now on."""


@dataclass(frozen=True)
class Place:
    """Bytes of a bank of DRAM."""

    bank: int
    at: int
    length: int


@njit
def _byte(chip: Any, which: Any, at: Any) -> Any:
    """A byte of a page that is made."""
    address = memory.host_address(chip, which, at)
    return (load_word(address & ~3) >> (8 * (address & 3))) & 0xFF


@njit
def _differs(chip: Any, i: Any) -> Any:
    which, at = chip.dram_watch[i, MEMORY], chip.dram_watch[i, AT]
    for k in range(chip.dram_watch[i, LENGTH]):
        if np.int64(chip.dram_seen[i, k]) != _byte(chip, which, at + k):
            return True
    return False


@njit
def _take(chip: Any, i: Any) -> None:
    """What is there now is what the next change is compared with."""
    which, at = chip.dram_watch[i, MEMORY], chip.dram_watch[i, AT]
    for k in range(chip.dram_watch[i, LENGTH]):
        chip.dram_seen[i, k] = np.uint8(_byte(chip, which, at + k))


@njit
def _note(chip: Any, i: Any, t: Any, row: Any, read: Any) -> None:
    """A hit: by whom, and what was there before and after."""
    chip.dram_hit[ROW], chip.dram_hit[READ], chip.dram_hit[SENDER] = i + 1, read, t
    chip.dram_hit[CORE], chip.dram_hit[PC] = row[request.CORE], row[request.PC]
    for k in range(chip.dram_watch[i, LENGTH]):
        chip.dram_before[k] = chip.dram_seen[i, k]
    _take(chip, i)
    for k in range(chip.dram_watch[i, LENGTH]):
        chip.dram_after[k] = chip.dram_seen[i, k]


@njit
def look(chip: Any, t: Any, row: Any, which: Any, at: Any) -> None:
    """A request of tile `t` to the memory `which`, from `at` on, has been performed."""
    kind = request.kind(row[request.CONTROL])
    reads, end = kind == request.READ or kind == request.ATOMIC, at + request.size(row)
    for i in range(chip.dram_watch_count[0]):
        if chip.dram_watch[i, MEMORY] != which:
            continue
        first, access = chip.dram_watch[i, AT], chip.dram_watch[i, ACCESS]
        inside = at < first + chip.dram_watch[i, LENGTH] and first < end
        new = _differs(chip, i)
        if chip.dram_hit[ROW] == 0 and new and access & CHANGES:
            _note(chip, i, t, row, np.int64(0))
        elif chip.dram_hit[ROW] == 0 and reads and inside and access & READS:
            _note(chip, i, t, row, np.int64(1))
        if new:
            _take(chip, i)


@dataclass(frozen=True)
class Hit:
    """What a watchpoint on DRAM has seen: whose it is, the values, who sent the request."""

    owner: int
    number: int
    before: int
    after: int
    read: bool
    sender: int
    core: int
    pc: int


class DramWatches:
    """The watchpoints on DRAM of all tiles' debuggers, as the record of the chip holds them."""

    def __init__(self, memories: Memories) -> None:
        self._memories = memories

    def banks(self) -> int:
        """The banks that the chip has."""
        return self._memories.grid.banks

    def replace(self, owner: int, wanted: dict[int, tuple[Place, int]]) -> bool:
        """Tile `owner` watches these and no others: number -> place, access; False: too many."""
        c = self._memories.state
        kept = [row.copy() for row in c.dram_watch[: c.dram_watch_count[0]] if row[OWNER] != owner]
        rows = [
            (owner, number, place.bank, place.at, place.length, access)
            for number, (place, access) in wanted.items()
        ]
        if len(kept) + len(rows) > DRAM_WATCHES:
            return False
        for i, row in enumerate((*kept, *rows)):
            c.dram_watch[i] = row
        c.dram_watch_count[0] = len(kept) + len(rows)
        self.refresh()
        return True

    def refresh(self) -> None:
        """A run begins: what is there now is no change (a host may have written it)."""
        c = self._memories.state
        c.dram_hit[:] = 0
        for i in range(int(c.dram_watch_count[0])):
            which, at, length = (int(n) for n in c.dram_watch[i, (MEMORY, AT, LENGTH)])
            data = self._memories.read(which, at, length, make=True)
            c.dram_seen[i, :length] = np.frombuffer(data, np.uint8)

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """None stops anything."""
        c = self._memories.state
        count = int(c.dram_watch_count[0])
        c.dram_watch_count[0] = 0
        try:
            yield
        finally:
            c.dram_watch_count[0] = count

    def taken(self) -> Hit:
        """The hit that stopped the run, which goes on behind it."""
        c = self._memories.state
        row, read, sender, core, pc = (int(n) for n in c.dram_hit)
        owner, number, _, _, length, _ = (int(n) for n in c.dram_watch[row - 1])
        before, after = (
            int.from_bytes(data[:length].tobytes(), "little")
            for data in (c.dram_before, c.dram_after)
        )
        c.dram_hit[:] = 0
        return Hit(owner, number, before, after, bool(read), sender, core, pc)
