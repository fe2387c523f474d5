"""The chip: Tensix tiles on their NoCs, banks of DRAM, and what a host reaches besides."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bhemu import arguments, chip_snapshot
from bhemu.chip_parts import Bank, DramBank, Tiles, plain_bytes
from bhemu.chip_snapshot import ChipSnapshot
from bhemu.devices import noc_map
from bhemu.devices.noc_map import COLUMNS, tile_number
from bhemu.errors import BhemuError, InputError, NoProgress, UnknownName
from bhemu.machine.chip_runner import ChipRunner, Until
from bhemu.machine.senders import HostAccess
from bhemu.machine.stop import Stop
from bhemu.memmap import L1_SIZE
from bhemu.noc.grid import BANKS, XY, Grid, tile_at
from bhemu.noc.network import Network, memory_of
from bhemu.one_thread import OneThread
from bhemu.options import L0, POISON, coordinate, engine_name, silent
from bhemu.program import interleave
from bhemu.program.outputs import OutputResult, collect
from bhemu.program.places import DELIVERIES
from bhemu.program.specs import LIVELOCK, QUANTUM, OutputSpec, Program
from bhemu.tile import Tile

_INTERNAL = frozenset(
    """launched end holds host_access network made numbered number_of runner hand_out handed_out
    check_thread NOUN INTERNAL""".split()
)
_DELIVERY = dict(zip(DELIVERIES, (0, 8), strict=True))  # rounds by which a request may be held back
_HINT = "Tensix tiles are at x 1-7 and 10-16, y 2-11, DRAM banks at x 17-18, y 12-23"


@dataclass(frozen=True)
class ChipEnd:
    """How a program's runs end unless told otherwise.

    words: (tile, L1 address, value) that must all hold, none = until idle; clock: the chip's clock
    at which it is too late; timeout_s: of each run.
    """

    words: tuple[tuple[XY, int, int], ...] = ()
    clock: int | None = None
    timeout_s: float | None = None


class Chip(OneThread):
    """One Blackhole chip, powered up with all cores in reset.

    harvest: physical columns of Tensix tiles that are fused off; dram_banks: 7 or 8; delivery:
    "round" delivers what the tiles sent at the end of each round, "late" holds requests back by up
    to 8 rounds in any order that hardware allows, as `seed` decides; the other arguments are
    Tile's, `engine` None being what BHEMU_ENGINE says, else "compiled".
    Coordinates are the translated ones; (x, y) of a Tensix tile is that of its NOC_ID_LOGICAL. A
    chip belongs to the thread that made it.
    """

    NOUN, INTERNAL = "chip", _INTERNAL

    def __init__(
        self,
        *,
        harvest: Sequence[int] = (),
        dram_banks: int = BANKS,
        seed: int = 0,
        quantum: int = QUANTUM,
        ub: str = "error",
        poison: str | None = None,
        reference: str = "ttsim",
        stochastic: int | str | None = None,
        engine: str | None = None,
        delivery: str = "round",
        threads: int = 1,
        l0: str = "off",
        livelock: int = LIVELOCK,
        progress: Callable[[str, float], None] = silent,
    ) -> None:
        super().__init__()
        seed = arguments.integer("seed", seed)
        arguments.choice("poison", poison, POISON)
        arguments.choice("l0", l0, L0)
        self.engine = engine_name(engine, "compiled")
        self._options: dict[str, Any] = {
            "seed": seed,
            "quantum": quantum,
            "ub": ub,
            "poison": poison,
            "reference": reference,
            "stochastic": stochastic,
            "engine": self.engine,
            "l0": l0,
            "livelock": 0,
            "progress": progress,
        }
        self.threads = arguments.integer("threads", threads, 1, 64)
        quiet = arguments.integer("livelock", livelock, 0, arguments.MOST)
        banks = arguments.integer("dram_banks", dram_banks, BANKS - 1, BANKS)
        self.network = Network(Grid(_columns(harvest), banks), poison, seed)
        self.network.state.late[0] = arguments.choice("delivery", delivery, _DELIVERY)
        self.network.state.late_pc[0] = -1
        self.network.state.seed[0] = seed & arguments.MOST
        self._tiles: dict[int, Tile] = {}
        self._reached: dict[tuple[int, int, int], Tile | Bank] = {}  # by NoC and coordinate
        self._handed_out: set[int] = set()
        self.runner = ChipRunner(self, quiet, self.threads)
        self._program: Program | None = None
        self._end = ChipEnd()

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

    def numbered(self, t: int) -> Tile:
        """Tile `t`, made when it is not there yet."""
        if t not in self._tiles:
            tile = Tile(xy=tile_at(t), **self._options)
            self._tiles[t] = tile
            self.network.join(t, tile.state)
            tile.joined(self.network, t)
        return self._tiles[t]

    def made(self) -> Sequence[Tile]:
        """The tiles that are made, in the order of their numbers."""
        return [self._tiles[t] for t in sorted(self._tiles)]

    def tiles(self) -> tuple[Tile, ...]:
        """The tiles that exist: those that something has touched, row by row."""
        return tuple(self.hand_out(t) for t in sorted(self._tiles))

    def hand_out(self, t: int) -> Tile:
        """Tile `t`, for a user: from now on each run expects any change of it."""
        self._handed_out.add(t)
        return self.numbered(t)

    def handed_out(self) -> Sequence[tuple[int, Tile]]:
        """The tiles that a user may hold, with their numbers."""
        return [(t, self._tiles[t]) for t in sorted(self._handed_out)]

    def number_of(self, xy: object) -> int:
        """The number of the Tensix tile at a translated coordinate; InputError elsewhere."""
        self.check_thread()
        x, y = coordinate(xy)
        word = self.network.endpoint(0, (x, y))
        if x in COLUMNS and word & 15 == noc_map.TENSIX:
            return tile_number(x, y)
        what = noc_map.KIND_NAMES[word & 15]
        raise UnknownName(f"({x},{y}) is no Tensix tile ({what})", hint=_HINT)

    # What a host reaches

    def read(self, x: int, y: int, address: int, n: int, noc: int = 0) -> bytes:
        """`n` bytes at endpoint (x, y), as the host over a NoC; registers in whole words."""
        address, n = arguments.integer("address", address), arguments.integer("n", n)
        place = self._reach(x, y, noc)
        if isinstance(place, Bank):
            return place.read(address - _base(place, address), n)
        if address < L1_SIZE:
            return place.read(address, n)
        return b"".join(
            place.read32(at).to_bytes(4, "little") for at in _words(place.xy, address, n)
        )

    def write(
        self, x: int, y: int, address: int, data: bytes | bytearray | memoryview, noc: int = 0
    ) -> None:
        """Bytes to endpoint (x, y), as the host over a NoC; registers in whole words."""
        plain, address = plain_bytes(data), arguments.integer("address", address)
        place = self._reach(x, y, noc)
        if isinstance(place, Bank):
            place.write(address - _base(place, address), plain.data)
        elif address < L1_SIZE:
            place.write(address, plain.data)
        else:
            for i, at in enumerate(_words(place.xy, address, len(plain))):
                place.write32(at, int.from_bytes(plain[4 * i : 4 * i + 4].tobytes(), "little"))

    def read32(self, x: int, y: int, address: int, noc: int = 0) -> int:
        """One word at an endpoint."""
        return int.from_bytes(self.read(x, y, address, 4, noc), "little")

    def write32(self, x: int, y: int, address: int, value: int, noc: int = 0) -> None:
        """Store one word at an endpoint."""
        data = arguments.word("value", value).to_bytes(4, "little")
        self.write(x, y, address, data, noc)

    def _reach(self, x: int, y: int, noc: int) -> "Tile | Bank":
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

    def _endpoint(self, x: int, y: int, noc: int) -> "Tile | Bank":
        word = self.network.endpoint(noc, (x, y))
        kind, index = word & 15, word >> 4 & 0xFF
        if kind == noc_map.TENSIX:
            return self.numbered(index)
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

    def launched(self, program: Program, end: ChipEnd) -> None:
        """`program` is on the chip, and this is how its runs end."""
        self._program, self._end = program, end

    @property
    def end(self) -> ChipEnd:
        """How runs end that say nothing else."""
        return self._end

    def holds(self, xy: XY, address: int, value: int) -> bool:
        """Whether a word of L1 of a tile has that value, as an end condition asks."""
        return self.tile[xy].read32(address) == value

    def check(self) -> list[OutputResult]:
        """The outputs of the launched program: saved where it says so, and compared."""
        if self._program is None:
            raise InputError("no program was launched", hint="Program.load(path).launch()")
        return collect(self._program, self.output)

    def output(self, spec: OutputSpec) -> tuple[int, bytes]:
        """The address of an output of a program, in L1 or in each bank, and its bytes."""
        if spec.dram is not None:
            place = spec.dram
            data = interleave.read(place, spec.size, lambda b, at, n: self.dram[b].read(at, n))
            return place.address, data
        if spec.tile is None:
            raise InputError(f"{spec.origin}: in L1 of which tile?", hint='tile = "1,2"')
        tile = self.tile[spec.tile]
        address = tile.address(spec.at)
        return address, tile.read(address, spec.size)

    def run(
        self,
        until: Until = None,
        *,
        limit: int | None = None,
        timeout_s: float | None = None,
        resume: bool = False,
        rounds: int | None = None,
    ) -> Stop:
        """Run all tiles until `until`, until nothing can move, or until a limit.

        until: a callable (chip) -> bool, asked once per round, or words of L1 that must all hold at
        the end of a round, as [((x, y), address, value), ...], or "idle", or "polling": every core
        that runs only polls, so that nothing changes until a host writes; limit in units of the
        chip's clock; rounds: at most so many. Without `until` a launched program says how its runs
        end. Errors: BhemuError; again raised until run(resume=True).
        """
        self.check_thread()
        if until is None:
            until = list(self._end.words) or None
            if limit is None and self._end.clock is not None:
                limit = max(self._end.clock - self.clock, 1)
            timeout_s = self._end.timeout_s if timeout_s is None else timeout_s
        return self.runner.run(until, limit, timeout_s, resume, rounds)

    def standstill(self, xy: XY) -> NoProgress:
        """The error of a host that waits in vain: what the cores of the tile at `xy` wait for."""
        from bhemu.hang.network import standstill

        return standstill(self, self.numbered(self.number_of(xy)))

    @property
    def host_access(self) -> HostAccess | None:
        """The first request since power-up that wanted a page of the host's memory."""
        return self.runner.host_access

    @property
    def clock(self) -> int:
        """The largest progress of a tile in each round, at least 1 per round, summed up."""
        return int(self.network.state.clock[0])

    @property
    def round(self) -> int:
        """Rounds completed."""
        return int(self.network.state.round[0])

    @property
    def idle(self) -> bool:
        """Whether nothing can move before a host writes."""
        state = self.network.state
        busy = state.awake.any() or any(tile.state.noc_requests[0] for tile in self.made())
        return not busy

    @property
    def error(self) -> BhemuError | None:
        """The error that stopped the last run."""
        return self.runner.error

    @property
    def stop(self) -> Stop | None:
        """How the last run ended; None when none did, or with an error."""
        return self.runner.last

    # States

    def snapshot(self) -> ChipSnapshot:
        """The whole state as it is now, breakpoints excepted: restore() takes it, save() a file."""
        self.check_thread()
        self.runner.check_idle("snapshot")
        return chip_snapshot.take(self.network, self._tiles, self.runner)

    def restore(self, saved: ChipSnapshot) -> None:
        """Back to the state of a snapshot, of this or another chip; runs go on exactly as there."""
        self.check_thread()
        self.runner.check_idle("restore")
        if not isinstance(saved, ChipSnapshot):
            raise InputError(
                f"{saved!r} is no snapshot of a chip", hint="ChipSnapshot.load(path) reads a file"
            )
        chip_snapshot.check(self.network, saved)
        for t in saved.tiles:
            self.numbered(t)
        chip_snapshot.restore(self.network, self._tiles, self.runner, saved)

    def reset(self) -> None:
        """Power-up again: memory, registers, clock; programs are forgotten."""
        self.check_thread()
        self.runner.check_idle("reset")
        chip_snapshot.reset(self.network, self._tiles, self.runner)
        self.runner.host_access = None
        self._program, self._end = None, ChipEnd()

    # What a chip is to Python

    def __repr__(self) -> str:
        awake = int(self.network.state.awake.sum())
        problem = "" if self.error is None else f"; stopped by {type(self.error).__name__}"
        return (
            f"<Chip {len(self.tile)} Tensix tiles, {len(self._tiles)} touched, {awake} awake;"
            f" {len(self.dram)} DRAM banks; clock {self.clock}{problem}>"
        )


_OTHERS = {
    noc_map.PCIE: noc_map.PCIE_SIZE,
    noc_map.ARC: 1 << 32,
    noc_map.ETHERNET: 1 << 32,
}


def _base(place: Bank, address: int) -> int:
    """What is subtracted of an address: the host's memory begins at bit 60 for PCIe."""
    return (
        noc_map.PCIE_HOST if place.size == noc_map.PCIE_SIZE and address >= noc_map.PCIE_HOST else 0
    )


def _words(xy: XY, address: int, n: int) -> range:
    """The addresses of the registers of an access by whole words."""
    if address & 3 or n & 3:
        raise InputError(
            f"{n} bytes at {address:#010x} of tile ({xy[0]},{xy[1]}): registers are accessed in"
            " whole aligned words"
        )
    return range(address, address + n, 4)


def _columns(harvest: Any) -> tuple[int, ...]:
    """The harvested columns."""
    try:
        found = tuple(sorted({arguments.integer("column", x) for x in harvest}))
    except TypeError:
        found = (-1,)
    if any(x not in COLUMNS for x in found) or len(found) == len(COLUMNS):
        raise InputError(
            f"harvest = {harvest!r} must name physical columns of Tensix tiles",
            hint="for example (16, 15)",
        )
    return found
