"""The machine: Tensix tiles on their NoCs, banks of DRAM, and what a host reaches besides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Unpack

from bhemu import arguments
from bhemu.devices import noc_map
from bhemu.devices.noc_map import COLUMNS
from bhemu.errors import InputError, NoProgress, UnknownName
from bhemu.jit import Later
from bhemu.machine.controls import Controls
from bhemu.machine.ethernet import EthernetTile
from bhemu.machine.rounds import RoundsOnNetwork
from bhemu.machine.run import RunLoop
from bhemu.machine.tile import Tile, coordinate, engine_name, late_of, plain_bytes, takes
from bhemu.memmap import DEBUG_BASE, L1_SIZE, RISCV_DEBUG_REG_SOFT_RESET_0, SOFT_RESET_ALL
from bhemu.noc.grid import TILES, XY, Grid, tile_at
from bhemu.noc.network import Network, memory_of
from bhemu.noc.record import MEMORY_PAGE, MEMORY_SHIFT
from bhemu.noc.times import WINDOW
from bhemu.program.options import DELIVERIES, SHARED, ChipOptions, filled
from bhemu.program.tensor import Tensors
from bhemu.tensix.state import DRAWN, MODELLED

if TYPE_CHECKING:
    from bhemu.machine import saved
    from bhemu.machine.error_text import HostAccess
    from bhemu.machine.saved import Snapshot
    from bhemu.program.specs import OutputSpec
else:
    saved = Later("bhemu.machine.saved")

_INTERNAL = frozenset(
    """loop network host_access tiles_made tile_at_index number_of expose exposed chosen tile_at
    output check_thread NOUN INTERNAL""".split()
)
_DELIVERY = dict(zip(DELIVERIES, (0, 8), strict=True))  # rounds by which a request may be held back
_HINT = "Tensix tiles are at x 1-7 and 10-16, y 2-11, DRAM banks at x 17-18, y 12-23"


@takes(ChipOptions)
class Machine(Controls):
    """Tiles that run together on the NoCs of one Blackhole chip; those of `tiles` exist at once.

    Cores are in reset. Coordinates are the translated ones; (x, y) of a Tensix tile is that of its
    NOC_ID_LOGICAL. A machine belongs to the thread that made it. With `delivery` "late" requests
    are held back by up to 8 rounds, in any order that hardware allows. Options (docs/options.md has
    their values):
    """

    NOUN, INTERNAL = "machine", _INTERNAL
    _place = (0, 1)  # its number, of how many chips that are linked (ethernet.py)

    def __init__(self, *, tiles: Iterable[XY] = (), **options: Unpack[ChipOptions]) -> None:
        super().__init__()
        chosen = filled(ChipOptions, options, type(self).__name__)
        self.late = late_of(chosen["late"])
        self.timing = chosen["timing"]
        modelled = self.timing == "model"
        if modelled and (self.late is not None or chosen["delivery"] != DELIVERIES[0]):
            raise InputError("late and delivery draw times, timing models them: give one of them")
        timed = modelled or self.late is not None
        self.engine = engine_name(chosen["engine"], "compiled", timed)
        self.threads = chosen["threads"]
        of_tiles = {name: chosen[name] for name in SHARED}
        self._options: dict[str, Any] = {**of_tiles, "engine": self.engine, "livelock": 0}
        # The harvested columns
        harvest = chosen["harvest"]
        try:
            found = tuple(sorted({arguments.integer("column", x) for x in harvest}))
        except TypeError:
            found = (-1,)
        if any(x not in COLUMNS for x in found) or len(found) == len(COLUMNS):
            raise InputError(
                f"harvest = {harvest!r} must name physical columns of Tensix tiles",
                hint="for example (16, 15)",
            )
        seed, grid = chosen["seed"], Grid(found, chosen["dram_banks"], *self._place)
        self.network = self._lay(grid, chosen["poison"], seed)
        self.network.state.late[0] = _DELIVERY[chosen["delivery"]]
        self.network.state.timed[0] = (MODELLED if modelled else DRAWN) if timed else 0
        self.network.state.seed[0] = seed & arguments.MOST
        self._tiles: dict[int, Tile] = {}
        self._reached: dict[tuple[int, int, int], Tile | Bank] = {}  # by NoC and coordinate
        self._exposed: set[int] = set()
        livelock = chosen["livelock"]
        if timed:  # windows are shorter than rounds
            livelock *= max(chosen["quantum"] // WINDOW, 1)
        self._rounds = RoundsOnNetwork(self, self.network, livelock, self.threads)
        self._loop = RunLoop(self._rounds)
        if not isinstance(tiles, Iterable):
            raise InputError(f"tiles = {tiles!r} must name tiles", hint="for example [(1, 2)]")
        for xy in tiles:
            self.tile_at_index(self.number_of(xy))
        for t in range(TILES, grid.tiles):
            self.tile_at_index(t)

    # Tiles and memory; views are made for each look, so that a chip is no reference cycle

    @property
    def tile(self) -> Tiles:
        """The Tensix tiles by coordinate; one that was never touched is made when asked for."""
        return Tiles(self)

    @property
    def dram(self) -> tuple[Bank, ...]:
        """The banks of DRAM."""
        banks = range(self.network.grid.banks)
        return tuple(DramBank(self, b, noc_map.DRAM_SIZE, f"DRAM bank {b}") for b in banks)

    def tile_at_index(self, t: int) -> Tile:
        """Tile `t`, made when it is not there yet."""
        if t not in self._tiles:
            tile = self._new_tile(tile_at(t))
            self._tiles[t] = tile
            self.network.join(t, tile.state)
            tile.attach(self.network, t, self._loop)
            self._loop.joined(tile)
        return self._tiles[t]

    def _lay(self, grid: Grid, poison: str | None, seed: int) -> Network:
        """The network of a machine that is being made."""
        return Network(grid, poison, seed)

    def _new_tile(self, xy: XY) -> Tile:
        """The tile at a coordinate, powered up."""
        if xy[0] not in COLUMNS:
            return EthernetTile(self.network.grid, xy=xy, **self._options)
        return Tile(xy=xy, **self._options)

    def tiles_made(self) -> tuple[Tile, ...]:
        """The tiles that are made, in the order of their numbers."""
        return tuple(self._tiles[t] for t in sorted(self._tiles))

    def tiles(self) -> tuple[Tile, ...]:
        """The tiles that exist: those that something has touched, row by row."""
        return tuple(self.expose(t) for t in sorted(self._tiles))

    def expose(self, t: int) -> Tile:
        """Tile `t`, for a user: from now on each run expects any change of it."""
        self._exposed.add(t)
        return self.tile_at_index(t)

    def exposed(self) -> tuple[Tile, ...]:
        """The tiles that a user may hold."""
        return tuple(self._tiles[t] for t in sorted(self._exposed))

    def tile_at(self, xy: object) -> Tile:
        """The tile at a coordinate, for a user."""
        return self.expose(self.number_of(xy))

    def chosen(self, tile: object) -> Tile:
        """The tile at a coordinate; without one the only one of the program, or that exists."""
        if tile is not None:
            return self.tile_at(tile)
        program = self._loop.program
        placed = [] if program is None else [xy for part in program.placed() for xy in part.at]
        named = placed or [one.xy for one in self.tiles_made()]
        if len(named) == 1:
            return self.tile_at(named[0])
        few = ", ".join(f"({x},{y})" for x, y in named[:4])
        raise InputError(
            f"which of {len(named)} tiles?" if named else "which tile? none is in use",
            hint="tile=(1, 2)" + (f"; there are {few}" if named else ""),
        )

    def number_of(self, xy: object) -> int:
        """The number of the tile with cores at a translated coordinate; InputError elsewhere."""
        self.check_thread()
        x, y = coordinate(xy)
        word = self.network.endpoint(0, (x, y))
        if word & 15 == noc_map.TENSIX:
            return word >> 4 & 0xFF
        what = noc_map.KIND_NAMES[word & 15]
        raise UnknownName(f"({x},{y}) is no Tensix tile ({what})", hint=_HINT)

    # What a host reaches

    def read(self, x: int, y: int, address: int | str, n: int, noc: int = 0) -> bytes:
        """`n` bytes at endpoint (x, y), as the host over a NoC; registers in whole words.

        Of a Tensix tile the address may be the name of a register or symbol.
        """
        n, place = arguments.integer("n", n), self._reach(x, y, noc)
        if isinstance(place, Bank):
            at = arguments.integer("address", address)
            return place.read(at - _base(place, at), n)
        first = place.address(address)
        if first < L1_SIZE:
            return place.read(first, n)
        return b"".join(place.read32(at).to_bytes(4, "little") for at in _words(place.xy, first, n))

    def write(
        self, x: int, y: int, address: int | str, data: bytes | bytearray | memoryview, noc: int = 0
    ) -> None:
        """Bytes to endpoint (x, y), as the host over a NoC; registers in whole words."""
        plain, place = plain_bytes(data), self._reach(x, y, noc)
        if isinstance(place, Bank):
            at = arguments.integer("address", address)
            place.write(at - _base(place, at), plain.data)
            return
        first = place.address(address)
        if first < L1_SIZE:
            place.write(first, plain.data)
            return
        for i, at in enumerate(_words(place.xy, first, len(plain))):
            place.write32(at, int.from_bytes(plain[4 * i : 4 * i + 4].tobytes(), "little"))

    def read32(self, x: int, y: int, address: int | str, noc: int = 0) -> int:
        """One word at an endpoint."""
        return int.from_bytes(self.read(x, y, address, 4, noc), "little")

    def write32(self, x: int, y: int, address: int | str, value: int, noc: int = 0) -> None:
        """Store one word at an endpoint."""
        data = arguments.word("value", value).to_bytes(4, "little")
        self.write(x, y, address, data, noc)

    def _reach(self, x: int, y: int, noc: int) -> Tile | Bank:
        """The tile or memory at a coordinate; InputError where nothing answers a host."""
        self.check_thread()
        if type(x) is type(y) is type(noc) is int:
            known = self._reached.get((noc, x, y))
            if known is not None:
                return known
        x, y = coordinate((x, y))
        noc = arguments.integer("noc", noc, 0, 1)
        found = self._reached[noc, x, y] = self._endpoint(x, y, noc)
        return found

    def _endpoint(self, x: int, y: int, noc: int) -> Tile | Bank:
        word = self.network.endpoint(noc, (x, y))
        kind, index = word & 15, word >> 4 & 0xFF
        if kind == noc_map.TENSIX:
            return self.tile_at_index(index)
        if kind == noc_map.DRAM:
            return self.dram[index]
        if kind in _OTHERS:
            name = f"{noc_map.KIND_NAMES[kind]} ({x},{y})"
            return Bank(self, memory_of(word), _OTHERS[kind], name)
        raise UnknownName(
            f"({x},{y}) on NoC {noc} is a {noc_map.KIND_NAMES[kind]}, which is not modelled"
            if kind
            else f"({x},{y}) is the coordinate of no tile on NoC {noc}",
            hint=_HINT,
        )

    # Running

    @property
    def loop(self) -> RunLoop:
        """The run loop."""
        return self._loop

    def output(self, spec: OutputSpec) -> tuple[int, bytes]:
        """The address of an output of a program, in L1 or in each bank, and its bytes."""
        if spec.dram is not None:
            place = spec.dram
            data = place.read(spec.size, lambda b, at, n: self.dram[b].read(at, n))
            return place.address, data
        tile = self.chosen(spec.tile)
        address = tile.address(spec.at)
        return address, tile.read(address, spec.size)

    def standstill(self, xy: XY) -> NoProgress:
        """The error of a host that waits in vain: what the cores of the tile at `xy` wait for."""
        from bhemu.machine.hang.graph import standstill

        tile = self._reach(*coordinate(xy), 0)
        return standstill(self, tile if isinstance(tile, Tile) else self.tile_at(xy))

    @property
    def host_access(self) -> HostAccess | None:
        """The first request since power-up that wanted a page of the host's memory."""
        return self._rounds.host_access

    @property
    def clock(self) -> int:
        """The largest progress of a tile in each round, at least 1 per round, summed up."""
        return self._loop.rounds.clock

    @property
    def round(self) -> int:
        """Rounds completed."""
        return self._loop.rounds.count

    @property
    def idle(self) -> bool:
        """Whether nothing can move before a host writes."""
        state = self.network.state
        busy = state.awake.any() or any(tile.state.noc_requests[0] for tile in self.tiles_made())
        return not busy

    # States

    def snapshot(self) -> Snapshot:
        """The whole state as it is now, breakpoints excepted: restore() takes it, save() a file."""
        self._check_not_running("snapshot")
        return saved.of_machine(self)

    def restore(self, snapshot: Snapshot) -> None:
        """Back to the state of a snapshot, of this or another chip; runs go on exactly as there."""
        self._check_not_running("restore")
        saved.restore_machine(self, snapshot)

    def reset(self) -> None:
        """Power-up again: memory, registers, clock; programs are forgotten."""
        self._check_not_running("reset")
        saved.restore_checked(self, saved.powered_up(self.network))
        self.loop.forget()
        self._rounds.host_access = None

    # What a chip is to Python

    def __repr__(self) -> str:
        awake = int(self.network.state.awake.sum())
        problem = "" if self.error is None else f"; stopped by {type(self.error).__name__}"
        return (
            f"<{type(self).__name__} {len(self.tile)} Tensix tiles, {len(self._tiles)} touched,"
            f" {awake} awake; {len(self.dram)} DRAM banks; clock {self.clock}{problem}>"
        )


class Chip(Machine):
    """One Blackhole chip, powered up with all cores in reset; arguments as Machine's.

    Its tiles are made when something touches them.
    """

    NOUN = "chip"


class LinkedChip(Chip):
    """Chip `number` of so many; its Ethernet tiles exist. Options as Chip's."""

    def __init__(self, number: int, chips: int = 2, **options: Unpack[ChipOptions]) -> None:
        self._place = number, chips
        super().__init__(**options)


_OTHERS = {noc_map.PCIE: noc_map.PCIE_SIZE, noc_map.ARC: 1 << 32, noc_map.ETHERNET: 1 << 32}


def _base(place: Bank, address: int) -> int:
    """What is subtracted of an address: the host's memory begins at bit 60 for PCIe."""
    is_host = place.size == noc_map.PCIE_SIZE and address >= noc_map.PCIE_HOST
    return noc_map.PCIE_HOST if is_host else 0


def _words(xy: XY, address: int, n: int) -> range:
    """The addresses of the registers of an access by whole words."""
    if address & 3 or n & 3:
        raise InputError(
            f"{n} bytes at {address:#010x} of tile ({xy[0]},{xy[1]}): registers are accessed in"
            " whole aligned words"
        )
    return range(address, address + n, 4)


_DRAM_RESET = DEBUG_BASE + RISCV_DEBUG_REG_SOFT_RESET_0


class Bank(Tensors):
    """One memory: a bank of DRAM, or the memory of PCIe, ARC or Ethernet; sparse."""

    def __init__(self, chip: Machine, which: int, size: int, name: str) -> None:
        self._chip, self._which, self.size, self.name = chip, which, size, name

    def _check(self, address: int, n: int) -> None:
        self._chip.check_thread()
        if address < 0 or address + n > self.size:
            raise InputError(
                f"{address:#x}..{address + n:#x} is outside {self.name} (0..{self.size:#x})"
            )

    def read(self, address: int, n: int) -> bytes:
        """`n` bytes; what nothing has written holds what `poison` says."""
        address, n = arguments.integer("address", address), arguments.integer("n", n)
        self._check(address, n)
        return self._chip.network.read(self._which, address, n)

    def write(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """Store bytes."""
        plain, address = plain_bytes(data), arguments.integer("address", address)
        self._check(address, len(plain))
        self._chip.network.write(self._which, address, plain)

    @property
    def pages(self) -> list[int]:
        """The addresses of the pages that exist, each of 256 KiB."""
        made = self._chip.network.pages
        return sorted(page << MEMORY_SHIFT for which, page in made if which == self._which)

    def __repr__(self) -> str:
        return f"<{self.name}: {len(self.pages)} pages of {MEMORY_PAGE >> 10} KiB>"


class DramBank(Bank):
    """A bank of DRAM; of its tile's registers a host finds the soft reset, which stays held."""

    def read(self, address: int, n: int) -> bytes:
        """As of every memory."""
        if (address, n) == (_DRAM_RESET, 4):
            return SOFT_RESET_ALL.to_bytes(4, "little")
        return super().read(address, n)

    def write(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """As to every memory."""
        if address != _DRAM_RESET:
            super().write(address, data)
        elif bytes(data) != SOFT_RESET_ALL.to_bytes(4, "little"):
            hint = f"soft reset takes {SOFT_RESET_ALL:#x} only"
            raise InputError(f"the RISC-V core of {self.name} is not modelled", hint=hint)


class Tiles(Mapping[XY, "Tile"]):
    """The Tensix tiles by coordinate; one that was never touched is made when it is asked for."""

    def __init__(self, chip: Machine) -> None:
        self._chip = chip

    def __getitem__(self, xy: XY) -> Tile:
        return self._chip.expose(self._chip.number_of(xy))

    def __contains__(self, xy: object) -> bool:
        try:
            self._chip.number_of(xy)
        except InputError:
            return False
        return True

    def __iter__(self) -> Iterator[XY]:
        return (tile_at(t) for t in range(TILES) if self._chip.network.state.column[t] >= 0)

    def __len__(self) -> int:
        return int((self._chip.network.state.column[:TILES] >= 0).sum())

    def __repr__(self) -> str:
        return f"<{len(self)} Tensix tiles, {len(self._chip.tiles_made())} of them touched>"
