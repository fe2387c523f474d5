"""A chip's record with what Python keeps for it: compiled entries, pages of memory, coordinates."""

import ctypes
import time
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from bhemu import memmap as mm
from bhemu.devices import niu_request as request
from bhemu.devices import noc_map
from bhemu.devices.noc_map import on_noc
from bhemu.jit import machine_code
from bhemu.jit.build import function, load
from bhemu.jit.record import plain
from bhemu.jit.subset import JIT
from bhemu.noc import firmware, memory, record, rounds
from bhemu.noc.grid import TILES, XY, Grid, tile_at
from bhemu.noc.memory import DramWatches
from bhemu.system import interrupts
from bhemu.tensix.in_flight import NEVER, ask_sleepers
from bhemu.tensix.state import State

ENTRIES = {
    "run_rounds": function(record.CHIP_STEP, rounds.run_rounds),
    "open_round": function(record.CHIP_STEP, rounds.open_round),
    "run_tiles": function(record.CHIP_STEP, rounds.run_tiles),
    "finish_round": function(record.CHIP_STEP, rounds.finish_round),
    "catch_up": function(record.CHIP_STEP, record.catch_up_some),
}
_STEP = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
_TRANSLATES = 1 << 14  # NIU_CFG_0
_FILL = {None: 0, "off": 0, "zero": 0, "ff": 0xFF, "random": -1}

Pages = dict[tuple[int, int], npt.NDArray[np.uint8]]
Transfer = Callable[[bool, int, npt.NDArray[np.uint8]], None]
"""Moves bytes of the host's memory: whether they are written, their address at the PCIe tile."""


class Network:
    """What lies between the tiles of a chip; `state` is its record."""

    def __init__(self, grid: Grid, poison: str | None, seed: int) -> None:
        self.grid, self._seed = grid, seed
        self.state = record.ChipState()
        self.pages: Pages = {}
        self.seconds = 0.0  # spent on compiling its entries, or loading them
        self._addresses: dict[str, int] = {}
        self.joined: dict[int, State] = {}  # the records of the tiles that are made
        self.dram_watches = DramWatches(weakref.proxy(self))
        self._transfer: Transfer | None = None
        self._window = np.empty(0, np.uint8)  # what a request to the host's memory finds there
        self.state.blank[0] = _FILL[poison]
        grid.fill(self.state.map)
        self.state.column[:] = -1
        self.state.tiles[0] = 1
        for t in range(grid.tiles):
            if (at := grid.physical(t)) is not None:
                self.state.column[t], self.state.row[t] = at

    def call(self, entry: str, n: int) -> int:
        """Run an entry of ENTRIES on the record."""
        if JIT:
            if entry not in self._addresses:
                began = time.monotonic()
                self._addresses[entry] = load(ENTRIES[entry]).address
                self.seconds += time.monotonic() - began
            status = int(_STEP(self._addresses[entry])(self.state.base, n))
            machine_code.surface()
            return status
        with interrupts.later(), np.errstate(over="ignore"):
            return int(ENTRIES[entry].function(self.state, n))

    def power_up(self, t: int, s: State) -> None:
        """What the chip's firmware has put into the NIUs of a tile, and its coordinates."""
        x, y = tile_at(t)
        physical = int(self.state.column[t]), int(self.state.row[t])
        for noc in (0, 1):
            own = on_noc(noc, physical)
            s.niu_node[noc] = int(s.niu_node[noc]) & ~0xFFF | own[0] | own[1] << 6
            number = int(s.niu_endpoint[noc]) & ~0xFF | t
            if t >= TILES:
                number = number & ~0xFFFFFF | noc_map.ETHERNET_TYPE << 16 | t - TILES
            s.niu_endpoint[noc] = number
            s.niu_config[noc, 0] = _TRANSLATES
            s.niu_config[noc, (mm.NOC_ID_LOGICAL - mm.NIU_CFG_0) >> 2] = x | y << 6
        s.noc_map[0] = self.state.base + record.OFFSET["map"]

    def join(self, t: int, s: State) -> None:
        """Tile `t` is made: its record is `s`."""
        self.power_up(t, s)
        self.joined[t] = s
        self.state.tile[t] = s.base
        end = int(self.state.tiles[0])
        self.state.event[min(t, end) : t + 1] = NEVER  # where no loop has looked yet
        self.state.tiles[0] = max(end, t + 1)
        self.wake(t, s)

    def wake(self, t: int, s: State) -> None:
        """Something has changed in a tile from outside."""
        if not self.state.awake[t]:
            self.state.awake[t] = 1
            s.clock[0] = max(int(s.clock[0]), int(self.state.clock[0]))
        if s.timed[0]:
            plain(ask_sleepers)(s)

    def under_way(self) -> bool:
        """Whether a request is not delivered yet."""
        return any(s.noc_requests[0] for s in self.joined.values())

    def endpoint(self, noc: int, xy: XY) -> int:
        """The word of the endpoint at a coordinate (noc_map.py)."""
        x, y = xy
        return int(self.state.map[0, noc, y << 6 | x])

    # Memory

    def make_page(self, which: int, page: int) -> npt.NDArray[np.uint8]:
        """Make a page of a memory, filled as untouched memory is."""
        made = np.zeros(record.MEMORY_PAGE, np.uint8)
        blank = int(self.state.blank[0])
        if which >= record.ARC_MEMORY:
            for (own, at), word in firmware.words(self.grid).items():
                if own == which and at >> record.MEMORY_SHIFT == page:
                    made.view("<u4")[(at & (record.MEMORY_PAGE - 1)) >> 2] = word
        elif blank < 0:
            random = np.random.default_rng((self._seed, which, page))
            made[:] = random.integers(0, 256, record.MEMORY_PAGE, np.uint8)
        elif blank:
            made[:] = blank
        self.pages[which, page] = made
        self.state.page[which, page] = made.ctypes.data
        return made

    def replace_pages(self, pages: Pages) -> None:
        """These pages and no others exist."""
        self.pages = {place: data.copy() for place, data in pages.items()}
        self.state.page[:] = 0
        if self._transfer is not None:
            self.share_host_memory(self._transfer)
        for (which, page), data in self.pages.items():
            self.state.page[which, page] = data.ctypes.data

    def _page(self, which: int, page: int) -> npt.NDArray[np.uint8]:
        made = self.pages.get((which, page))
        return self.make_page(which, page) if made is None else made

    def read(self, which: int, at: int, n: int, *, make: bool = False) -> bytes:
        """Bytes of a memory; pages that nothing has written stay unmade without `make`."""
        parts = []
        blank = int(self.state.blank[0])
        while n > 0:
            page, first = at >> record.MEMORY_SHIFT, at & (record.MEMORY_PAGE - 1)
            part = min(n, record.MEMORY_PAGE - first)
            unmade = (which, page) not in self.pages and not make
            if unmade and blank >= 0 and which < record.ARC_MEMORY:
                parts.append(bytes([blank]) * part)
            else:
                parts.append(self._page(which, page)[first : first + part].tobytes())
            at, n = at + part, n - part
        return b"".join(parts)

    def write(self, which: int, at: int, data: npt.NDArray[np.uint8]) -> None:
        """Bytes into a memory."""
        while len(data):
            first = at & (record.MEMORY_PAGE - 1)
            part = min(len(data), record.MEMORY_PAGE - first)
            self._page(which, at >> record.MEMORY_SHIFT)[first : first + part] = data[:part]
            at, data = at + part, data[part:]

    def wants_host_memory(self) -> bool:
        """Whether delivery has asked for a page of the host's memory."""
        kind, which, _ = (int(word) for word in self.state.wanted)
        return kind == memory.WANT_PAGE and which == record.PCIE_MEMORY

    def make_wanted(self) -> int | None:
        """Make the page that delivery needs, or say which tile the machine has to make.

        A request for the memory of a host that shares it is served.
        """
        kind, which, page = (int(word) for word in self.state.wanted)
        if kind == memory.WANT_TILE:
            return which
        if which == record.PCIE_MEMORY and self._transfer is not None:
            t, i = (int(word) for word in self.state.refused[:2])
            self._serve(self._transfer, self.joined[t], self.joined[t].noc_request[i])
            self.state.host[1] = 1
            return None
        self.make_page(which, page)
        return None

    def share_host_memory(self, transfer: Transfer) -> None:
        """From now on `transfer` moves what kernels read and write of the host's memory."""
        self._transfer = transfer
        # Two pages in turn are enough for one request, which is shorter than a page.
        self._window = np.zeros(2 * record.MEMORY_PAGE, np.uint8)
        turn = np.arange(record.MEMORY_PAGES, dtype=np.uint64) % np.uint64(2)
        first = np.uint64(self._window.ctypes.data)
        self.state.page[record.PCIE_MEMORY] = first + turn * np.uint64(record.MEMORY_PAGE)
        self.state.host[0] = 1

    def _serve(self, transfer: Transfer, s: State, row: Any) -> None:
        """Move the bytes of a request between the host and where the request looks for them.

        Atomics and inline writes go to no host: the NIU has refused them.
        """
        control, at = int(row[request.CONTROL]), int(row[request.REMOTE])
        kind, first = control & 3, int(row[request.DATA])
        if kind == request.READ:
            data = np.zeros(int(row[request.LENGTH]), np.uint8)
            transfer(False, at, data)
            within = (at - noc_map.PCIE_HOST) & (2 * record.MEMORY_PAGE - 1)
            place = (within + np.arange(len(data))) % len(self._window)
            self._window[place] = data
        elif control & request.BYTE_ENABLES:
            at &= ~15
            for k in range(request.BE_BYTES):
                if int(row[request.LENGTH]) >> k & 1:
                    transfer(True, at + k, s.noc_data[first + k : first + k + 1])
        else:
            transfer(True, at, s.noc_data[first : first + int(row[request.LENGTH])])


_number = plain(memory.number)


def memory_of(word: int) -> int:
    """The memory of an endpoint that is no tile (noc/record.py)."""
    return int(_number(word))
