"""A chip whose memory a host shares: L1 of its tiles and DRAM stand in one file of no folder."""

from __future__ import annotations

import contextlib
import copy
import ctypes
import mmap
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import numpy.typing as npt

from bhemu.devices import noc_map
from bhemu.errors import BhemuError, InputError
from bhemu.jit.record import Record
from bhemu.machine.ethernet import Links
from bhemu.machine.machine import Chip
from bhemu.machine.tile import Tile
from bhemu.memmap import DEBUG_BASE, L1_SIZE, RISCV_DEBUG_REG_SOFT_RESET_0
from bhemu.noc.grid import BANKS, TILES, XY, Grid, number_at
from bhemu.noc.network import Network
from bhemu.noc.record import MEMORY_PAGE, MEMORY_PAGES, MEMORY_SHIFT
from bhemu.program.options import ChipOptions
from bhemu.tensix.state import DTYPE, OFFSET, State

if TYPE_CHECKING:
    from bhemu.errors import NoProgress
    from bhemu.machine.machine import Bank
    from bhemu.machine.saved import Snapshot
    from bhemu.program.recorded import Recorder

Bytes = npt.NDArray[np.uint8]

# The layout of the file; libbhemu/libbhemu.h says the same.

MAGIC, LAYOUT = 0x62686D75, 6
GRANULE = 256  # bytes of L1 that one mark is for
_GRANULES = L1_SIZE // GRANULE
_BANK = 1 << 32
_HUGE = 2 << 20
_NORESERVE = 0x4000  # of mmap: no room is set aside; Python 3.11 does not name it
_FIXED = 0x10  # of mmap: in place of what is mapped there
HEAD = np.dtype(
    {
        "names": [
            *("magic", "layout", "stands", "plain", "size", "tiles", "tile_stride", "dram"),
            *("dram_size", "marks", "data", "data_size", "soft_reset", "asleep", "touched"),
            *("behind", "made", "waits", "reset", "map"),
        ],
        "formats": [
            *["<u4"] * 4,
            *["<u8"] * 9,
            "<u4",
            *[("u1", (TILES,))] * 4,
            ("<u4", (TILES,)),
            ("<u4", (noc_map.COORDINATES,)),
        ],
    },
    align=True,
)
DATA = 1 << 20  # bytes of the longest message
_STANDS = ("idle", "polling")  # the reasons for which only a host can go on


def _up(at: int, unit: int = mmap.PAGESIZE) -> int:
    return (at + unit - 1) & -unit


MARKS_AT = _up(HEAD.itemsize)
DATA_AT = _up(MARKS_AT + TILES * _GRANULES)
TILES_AT = _up(DATA_AT + DATA, _HUGE)
STRIDE = _up(DTYPE.itemsize)
_L1_END = _up(OFFSET["l1"] + L1_SIZE)
DRAM_AT = _up(TILES_AT + TILES * STRIDE, _HUGE)
SIZE = DRAM_AT + BANKS * _BANK


class Arena:
    """The file, mapped; it is gone when no process holds it. InputError where there is no room."""

    def __init__(self) -> None:
        try:
            self.fd = os.memfd_create("bhemu", os.MFD_CLOEXEC)
            os.ftruncate(self.fd, SIZE)
            self._map = mmap.mmap(self.fd, SIZE, mmap.MAP_SHARED | _NORESERVE)
        except OSError as problem:
            hint = f"{SIZE >> 30} GiB of address space, most of them never used: ulimit -v, -f"
            text = f"the chip's memory cannot be made: {problem.strerror}"
            raise InputError(text, hint=hint) from problem
        self.bytes: Bytes = np.frombuffer(self._map, np.uint8)
        self.head: Any = self.bytes[: HEAD.itemsize].view(HEAD)[0]
        self.new_tile: tuple[npt.NDArray[np.intp], Bytes] | None = None
        self._touched, self._waits = self.head["touched"], self.head["waits"]
        self.marks = self.bytes[MARKS_AT : MARKS_AT + TILES * _GRANULES].reshape(TILES, _GRANULES)
        self.data = self.bytes[DATA_AT : DATA_AT + DATA]
        values = {
            "magic": MAGIC,
            "layout": LAYOUT,
            "size": SIZE,
            "stands": 1,
            "asleep": 1,
            "plain": 1,
            "tiles": TILES_AT + OFFSET["l1"],
            "tile_stride": STRIDE,
            "dram": DRAM_AT,
            "dram_size": noc_map.DRAM_SIZE,
            "marks": MARKS_AT,
            "data": DATA_AT,
            "data_size": DATA,
            "soft_reset": TILES_AT + OFFSET["debug"] + RISCV_DEBUG_REG_SOFT_RESET_0,
        }
        for name, value in values.items():
            self.head[name] = value

    def detach(self) -> None:
        """In a process that was forked: go on with a copy of the file, mapped where it was."""
        fd, size = os.memfd_create("bhemu", os.MFD_CLOEXEC), ctypes.c_size_t(SIZE)
        os.ftruncate(fd, SIZE)
        for at, end in self._held():
            os.lseek(fd, at, os.SEEK_SET)
            while at < end:
                at += os.sendfile(fd, self.fd, at, end - at)
        base = ctypes.c_void_p(self.bytes.ctypes.data)
        access, flags = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED | _NORESERVE | _FIXED
        library = ctypes.CDLL(None)
        library.mmap.restype = ctypes.c_void_p
        if library.mmap(base, size, access, flags, fd, ctypes.c_long(0)) != base.value:
            raise InputError("the copy of the chip's memory cannot be mapped")
        file = os.fstat(self.fd)
        for name in os.listdir("/proc/self/fd"):  # Python's map holds one of its own
            with contextlib.suppress(OSError):
                if os.path.samestat(os.fstat(int(name)), file):
                    os.dup2(fd, int(name), inheritable=False)
        os.close(fd)

    def _held(self) -> Iterator[tuple[int, int]]:
        """What of the file is there: from, to."""
        end = 0
        with contextlib.suppress(OSError):  # no more
            while end < SIZE:
                at = os.lseek(self.fd, end, os.SEEK_DATA)
                end = os.lseek(self.fd, at, os.SEEK_HOLE)
                yield at, end

    def tile(self, t: int) -> Bytes:
        """Where the record of tile `t` is made."""
        return self.bytes[TILES_AT + t * STRIDE : TILES_AT + (t + 1) * STRIDE]

    def page(self, bank: int, page: int) -> Bytes:
        """A page of a bank."""
        at = DRAM_AT + bank * _BANK + (page << MEMORY_SHIFT)
        return self.bytes[at : at + MEMORY_PAGE]

    def used(self) -> Iterator[tuple[int, int]]:
        """The pages of DRAM that anybody has touched: bank, page."""
        for at in self._touched_in(DRAM_AT, SIZE, MEMORY_PAGE):
            bank, within = divmod(at - DRAM_AT, _BANK)
            yield bank, within >> MEMORY_SHIFT

    def keep_new_tile(self, t: int) -> None:
        """Tile `t` is new: the others begin as copies of all of it but L1."""
        start = TILES_AT + t * STRIDE
        touched = self._touched_in(start + _L1_END, start + STRIDE, mmap.PAGESIZE)
        at = np.array([(one - start) // mmap.PAGESIZE for one in touched])
        self.new_tile = at, self.tile(t).reshape(-1, mmap.PAGESIZE)[at]

    def _touched_in(self, at: int, end: int, unit: int) -> Iterator[int]:
        """Where `unit` bytes of the file begin of which anybody has touched some; `at` is one."""
        start = at
        while at < end:
            try:
                at = os.lseek(self.fd, at, os.SEEK_DATA)
            except OSError:  # no more bytes
                return
            at -= (at - start) % unit
            if at < end:
                yield at
            at += unit

    def take_resets(self) -> list[tuple[int, int]]:
        """Tiles whose soft reset the host has written, each with its value; they are forgotten."""
        if not self._waits.any():
            return []
        tiles = self._waits.nonzero()[0].tolist()
        self._waits[:] = 0
        return [(t, int(self.head["reset"][t])) for t in tiles]

    def take_marks(self) -> Iterator[tuple[int, list[tuple[int, int]]]]:
        """Tiles whose L1 the host has written, each with (address, bytes); they are forgotten."""
        touched = self._touched
        if not touched.any():
            return
        for t in (int(t) for t in touched.nonzero()[0]):
            touched[t] = 0
            marks = self.marks[t]
            edges = (marks[1:] != marks[:-1]).nonzero()[0].tolist()
            edges = [0] * int(marks[0]) + [one + 1 for one in edges] + [_GRANULES] * int(marks[-1])
            marks[:] = 0
            pairs = zip(edges[::2], edges[1::2], strict=True)
            yield t, [(first * GRANULE, (last - first) * GRANULE) for first, last in pairs]


class _Copy(State):
    """The record of a new tile, as `pages` of another new one say."""

    is_copy = True

    def __init__(self, memory: Bytes, pages: tuple[npt.NDArray[np.intp], Bytes]) -> None:
        Record.__init__(self, memory)
        self.py = self.words = self.accesses = self.order = None
        at, held = pages
        self.buffer.reshape(-1, mmap.PAGESIZE)[at] = held
        self.host[0] = self.base


class SharedTile(Tile):
    """A tile whose record stands in the file."""

    def __init__(self, arena: Arena, **options: Any) -> None:
        self._arena = arena
        super().__init__(**options)

    def _record(self) -> State:
        room, pages = self._arena.tile(number_at(self.xy)), self._arena.new_tile
        return State(room) if pages is None else _Copy(room, pages)


class SharedNetwork(Network):
    """A network whose DRAM is the file's."""

    def __init__(self, arena: Arena, grid: Grid, poison: str | None, seed: int) -> None:
        super().__init__(grid, poison, seed)
        self._arena = arena
        c = self.state
        base = arena.bytes.ctypes.data
        pages = np.arange(MEMORY_PAGES, dtype=np.uint64) << np.uint64(MEMORY_SHIFT)
        for bank in range(grid.banks):
            c.page[bank] = pages + np.uint64(base + DRAM_AT + bank * _BANK)

    def make_page(self, which: int, page: int) -> Bytes:
        """As of every network; of DRAM, where it stands in the file."""
        if which >= BANKS:
            return super().make_page(which, page)
        made = self.pages[which, page] = self._arena.page(which, page)
        return made

    def read(self, which: int, at: int, n: int, *, make: bool = False) -> bytes:
        """As of every network; DRAM is all there."""
        return super().read(which, at, n, make=make or which < BANKS)


class SharedChip(Chip):
    """A chip whose L1 and DRAM a host reads and writes itself; `take_writes` before it runs."""

    def __init__(self, number: int = 0, chips: int = 1, **options: Unpack[ChipOptions]) -> None:
        if options.get("poison") not in (None, "off", "zero"):
            text = f"poison {options.get('poison')}: memory that a host shares holds 0 at first"
            hint = "leave --poison away, or use the folder without the library"
            raise InputError(text, hint=hint)
        self._place = number, chips
        self.arena, self._ready = Arena(), False
        self.touched = True  # since it stood
        self._behind, self._idle = 0, False  # rounds missed since; nothing of it runs at all
        self._asked = False  # whether the host has had a tile settled since time passed
        super().__init__(**options)
        words = self.network.state.map[0, 0]
        runs = (words & 15 == noc_map.TENSIX) & (words >> 4 & 0xFF >= TILES)
        self.arena.head["map"] = np.where(runs, noc_map.ETHERNET, words)  # the host asks for those

    def _lay(self, grid: Grid, poison: str | None, seed: int) -> SharedNetwork:
        return SharedNetwork(self.arena, grid, poison, seed)

    def _new_tile(self, xy: XY) -> Tile:
        t = self.network.endpoint(0, xy) >> 4 & 0xFF
        if t >= TILES:
            return super()._new_tile(xy)
        made = SharedTile(self.arena, xy=xy, **self._options)
        if self.arena.new_tile is None:
            self.arena.keep_new_tile(t)
        self.arena.head["made"][t] = 1
        return made

    def take_writes(self) -> None:
        """What the host has written takes effect: code is translated again, its tiles wake."""
        for t, value in self.arena.take_resets():
            self.touched, tile = True, self.tile_at_index(t)
            self.settle(t)
            self.network.wake(t, tile.state)
            tile.backend.write(DEBUG_BASE + RISCV_DEBUG_REG_SOFT_RESET_0, value)
        for t, places in self.arena.take_marks():
            self.touched, tile = True, self.tile_at_index(t)
            for address, n in places if tile.state.code_page.any() else ():
                tile.backend.written(address, n)
            self.network.wake(t, tile.state)

    def snapshot(self) -> Snapshot:
        """As of every chip."""
        self.settle()
        for bank, page in self.arena.used():  # those that the host has filled
            self.network.make_page(bank, page)
        return super().snapshot()

    def _reach(self, x: int, y: int, noc: int) -> Tile | Bank:
        place = super()._reach(x, y, noc)
        if isinstance(place, Tile):
            self.settle(place.number)
        return place

    def standstill(self, xy: XY) -> NoProgress:
        """As of every machine."""
        self.settle()
        return super().standstill(xy)

    def run_rounds(self, rounds: int) -> str:
        """Run until only the host can go on, at most so many rounds; why it ended."""
        self.take_writes()
        return self.straight(rounds)

    def straight(self, rounds: int = 1) -> str:
        """As run_rounds, after take_writes; tiles that only poll lag until settle()."""
        self._asked = False
        if not self._ready:
            self._ready = True
            return str(self.run("polling", rounds=rounds).reason)
        try:  # what ends a run stands in the record: no other thread drives this chip
            stop = self._rounds.straight(rounds)
            return "rounds" if stop is None else stop.reason
        except BhemuError as problem:
            self.loop.error = copy.copy(problem)
            self._rounds.settle()
            raise

    def next_round(self) -> None:
        """A round; of a chip that stands, untouched, later."""
        if not self.touched:
            self._behind += not self._idle  # no time passes on an idle one
            return
        self._catch_up()
        reason = self.straight(1)
        self.touched, self._idle = reason not in _STANDS, reason == "idle"

    def _catch_up(self) -> None:
        """The rounds that passed while the chip stood: every tile does what it did in the last."""
        if self._behind:
            self.network.state.until_polling[0] = 0
            self._rounds.straight(self._behind)
            self.network.state.until_polling[0] = 1
            self._behind = 0

    def settle(self, t: int | None = None) -> None:
        """Tile `t`, or every tile, is where it would be if it had had all its turns."""
        self._catch_up()
        if t is None or self.network.state.timed[0] or self.network.state.skip_from[t] >= 0:
            self._rounds.settle(t)
            self.tell_behind()

    def settle_for_host(self, t: int) -> None:
        """The host is to write L1 of tile `t`; a second one before time passes settles all."""
        self.settle(None if self._asked else t)
        self._asked = True

    def tell_behind(self) -> None:
        """Tell the host the tiles that it must have settled before it writes their L1."""
        self.arena.head["behind"] = self.network.state.skip_from[:TILES] >= 0


class SharedChips:
    """The chips of a session, in one clock: each has its round, then the links carry what waits.

    A chip that stands has its rounds later: when anything touches it.
    """

    def __init__(self, chips: Sequence[SharedChip]) -> None:
        self.chips = chips
        self._links = Links(chips) if len(chips) > 1 else None

    def record(self, recorders: Sequence[Recorder]) -> None:
        """Keep what links carry: one recorder for each chip."""
        if self._links is not None:
            self._links.recorders = recorders

    def run_rounds(self, rounds: int) -> bool:
        """At most so many rounds; whether only the host can go on."""
        try:
            if self._links is None:
                return self.chips[0].run_rounds(rounds) in _STANDS
            for chip in self.chips:
                chip.take_writes()
            for _ in range(rounds):
                for chip in self.chips:
                    chip.next_round()
                waiting = self._links.waiting()
                for tile in waiting:
                    tile.machine.settle(tile.number)
                    tile.machine.touched = True
                if waiting:
                    self._links.carry()
                elif not any(chip.touched for chip in self.chips):
                    break
            return not any(chip.touched for chip in self.chips)
        finally:
            for chip in self.chips:
                chip.tell_behind()
