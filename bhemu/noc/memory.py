"""DRAM and host memory on the NoC, and watchpoints on it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bhemu.devices import niu_request as request
from bhemu.devices import noc_map
from bhemu.jit.intrinsics import fill, load_word, move
from bhemu.jit.subset import njit
from bhemu.noc import record
from bhemu.tensix.observe import CHANGES, READS

if TYPE_CHECKING:
    from bhemu.noc.network import Network

# Memory at endpoints that are no Tensix tile: DRAM banks and the like, made page by page.

WANT_TILE, WANT_PAGE = 0, 1


@njit
def number(endpoint: Any) -> Any:
    """The memory at an endpoint, as the record counts them."""
    kind = noc_map.kind(endpoint)
    if kind == noc_map.PCIE:
        return np.int64(record.PCIE_MEMORY)
    if kind == noc_map.ARC:
        return np.int64(record.ARC_MEMORY)
    first = record.ETHERNET_MEMORY if kind == noc_map.ETHERNET else 0
    return np.int64(noc_map.index(endpoint) + first)


@njit
def offset(endpoint: Any, address: Any) -> Any:
    """Where an address of the endpoint stands in its memory."""
    return address - noc_map.PCIE_HOST if noc_map.kind(endpoint) == noc_map.PCIE else address


@njit
def has(chip: Any, memory: Any, at: Any, n: Any) -> Any:
    """Whether every page of a range is made; notes the first that is not."""
    for page in range(at >> record.MEMORY_SHIFT, ((at + n - 1) >> record.MEMORY_SHIFT) + 1):
        if chip.page[memory, page] == 0:
            chip.wanted[0], chip.wanted[1], chip.wanted[2] = WANT_PAGE, memory, page
            return False
    return True


@njit
def host_address(chip: Any, memory: Any, at: Any) -> Any:
    """The host address of a byte of a page that is made."""
    return np.int64(chip.page[memory, at >> record.MEMORY_SHIFT]) + (at & (record.MEMORY_PAGE - 1))


@njit
def write(chip: Any, memory: Any, at: Any, source: Any, n: Any) -> None:
    """Copy bytes from a host address into pages that are made."""
    while n > 0:
        part = min(n, record.MEMORY_PAGE - (at & (record.MEMORY_PAGE - 1)))
        move(host_address(chip, memory, at), source, part)
        at, source, n = at + part, source + part, n - part


@njit
def read(chip: Any, memory: Any, at: Any, to: Any, n: Any) -> None:
    """Copy bytes to a host address; a page that is not made is blank."""
    while n > 0:
        part = min(n, record.MEMORY_PAGE - (at & (record.MEMORY_PAGE - 1)))
        if chip.page[memory, at >> record.MEMORY_SHIFT] == 0:
            fill(to, chip.blank[0], part)
        else:
            move(to, host_address(chip, memory, at), part)
        at, to, n = at + part, to + part, n - part


@njit
def reach(chip: Any, row: Any) -> Any:
    """Whether the pages of a request are there; a read of DRAM needs none where blank is one byte.

    The host's memory gets a page at the first access of any kind: so Python hears of it; of every
    request, where a host shares it.
    """
    control, endpoint = row[request.CONTROL], row[request.ENDPOINT]
    which = number(endpoint)
    if which == record.PCIE_MEMORY and chip.host[0] != 0:
        served = chip.host[1] != 0
        chip.host[1] = 0
        chip.wanted[0], chip.wanted[1] = WANT_PAGE, record.PCIE_MEMORY
        return served
    if request.kind(control) == request.READ and chip.blank[0] >= 0 and which < record.PCIE_MEMORY:
        return True
    at = offset(endpoint, row[request.REMOTE])
    first = at & ~15  # of the line that an atomic changes, or byte enables
    begin = first if request.has_enables(control) else at
    return has(chip, which, first, begin - first + request.size(row))


@njit
def write_enabled(to: Any, source: Any, mask: Any) -> None:
    """Copy those of 64 bytes whose bit of the mask is set, between host addresses."""
    for i in range(request.BE_BYTES):
        if (mask >> i) & 1:
            move(to + i, source + i, np.int64(1))


# Watchpoints on DRAM: bytes of a bank, compared after every request that is performed there.
#
# A watchpoint is a row of `chip.dram_watch`; `chip.dram_seen` holds what was last seen there.
# A hit is kept in `chip.dram_hit`, with the bytes before and after, and delivery stops after the
# request. Nothing is compared while none is set.

OWNER, NUMBER, MEMORY, AT, LENGTH, ACCESS = range(6)  # columns of a watchpoint
ROW, READ, SENDER, CORE, PC = range(5)  # of a hit; ROW counts from 1


@dataclass(frozen=True)
class Place:
    """Bytes of a bank of DRAM."""

    bank: int
    at: int
    length: int


@njit
def _byte(chip: Any, which: Any, at: Any) -> Any:
    """A byte of a page that is made."""
    address = host_address(chip, which, at)
    return (load_word(address & ~3) >> (8 * (address & 3))) & 0xFF


@njit
def _take(chip: Any, i: Any) -> None:
    """What is there now is what the next change is compared with."""
    which, at = chip.dram_watch[i, MEMORY], chip.dram_watch[i, AT]
    for k in range(chip.dram_watch[i, LENGTH]):
        chip.dram_seen[i, k] = np.uint8(_byte(chip, which, at + k))


@njit
def _note(chip: Any, i: Any, t: Any, row: Any, read: Any) -> None:
    """A hit: its sender, and what was there before and after."""
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
        new = False
        for k in range(chip.dram_watch[i, LENGTH]):
            new = new or np.int64(chip.dram_seen[i, k]) != _byte(chip, which, first + k)
        if chip.dram_hit[ROW] == 0 and new and access & CHANGES:
            _note(chip, i, t, row, np.int64(0))
        elif chip.dram_hit[ROW] == 0 and reads and inside and access & READS:
            _note(chip, i, t, row, np.int64(1))
        if new:
            _take(chip, i)


@dataclass(frozen=True)
class Hit:
    """What a watchpoint on DRAM has seen: its owner, the values, the sender of the request."""

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

    def __init__(self, network: "Network") -> None:
        self._network = network

    def banks(self) -> int:
        """The banks that the chip has."""
        return self._network.grid.banks

    def replace(self, owner: int, wanted: dict[int, tuple[Place, int]]) -> bool:
        """Tile `owner` watches these and no others: number -> place, access; False: too many."""
        c = self._network.state
        kept = [row.copy() for row in c.dram_watch[: c.dram_watch_count[0]] if row[OWNER] != owner]
        rows = [
            (owner, number, place.bank, place.at, place.length, access)
            for number, (place, access) in wanted.items()
        ]
        if len(kept) + len(rows) > record.DRAM_WATCHES:
            return False
        for i, row in enumerate((*kept, *rows)):
            c.dram_watch[i] = row
        c.dram_watch_count[0] = len(kept) + len(rows)
        self.refresh()
        return True

    def refresh(self) -> None:
        """A run begins: what is there now is no change (a host may have written it)."""
        c = self._network.state
        c.dram_hit[:] = 0
        for i in range(int(c.dram_watch_count[0])):
            which, at, length = (int(n) for n in c.dram_watch[i, (MEMORY, AT, LENGTH)])
            data = self._network.read(which, at, length, make=True)
            c.dram_seen[i, :length] = np.frombuffer(data, np.uint8)

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """None stops anything."""
        c = self._network.state
        count = int(c.dram_watch_count[0])
        c.dram_watch_count[0] = 0
        try:
            yield
        finally:
            c.dram_watch_count[0] = count

    def taken(self) -> Hit:
        """The hit that stopped the run, which goes on after it."""
        c = self._network.state
        row, read, sender, core, pc = (int(n) for n in c.dram_hit)
        owner, number, _, _, length, _ = (int(n) for n in c.dram_watch[row - 1])
        kept = (data[:length].tobytes() for data in (c.dram_before, c.dram_after))
        before, after = (int.from_bytes(data, "little") for data in kept)
        c.dram_hit[:] = 0
        return Hit(owner, number, before, after, bool(read), sender, core, pc)
