"""The tile: record, cores, coprocessor, devices, put together (the motherboard)."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

import numpy as np
import numpy.typing as npt

from bhemu import arguments, memmap
from bhemu.devices.bus.address_map import WINDOWS, block_name
from bhemu.errors import BhemuError, InputError
from bhemu.jit import Later
from bhemu.machine import resolve
from bhemu.machine.backend import Backend, Told
from bhemu.machine.controls import Controls
from bhemu.machine.core import Core, Cores, Loaded
from bhemu.machine.rounds import RoundsOfOneTile
from bhemu.machine.run import RunLoop
from bhemu.machine.stepping import Stepping
from bhemu.machine.stop import now
from bhemu.noc.network import Network
from bhemu.program.options import (
    ENGINES,
    REFERENCES,
    Lateness,
    TileOptions,
    declared,
    filled,
    lateness,
)
from bhemu.program.tensor import Tensors
from bhemu.riscv import l0_cache
from bhemu.tensix import rules
from bhemu.tensix.lanes import DOWN, RANDOM, REFUSED, UP
from bhemu.tensix.state import MODELLED, RESET, State, reset
from bhemu.tensix.views import Tensix

if TYPE_CHECKING:
    from bhemu.machine import error_text
    from bhemu.machine.machine import Bank
    from bhemu.machine.saved import Snapshot
    from bhemu.program import loader
    from bhemu.program.specs import OutputSpec
    from bhemu.riscv.core_loop import ObservedRecord
else:
    error_text = Later("bhemu.machine.error_text")
    loader = Later("bhemu.program.loader")

# Options as the record holds them, and the call that takes them.

UB = {"error": rules.UB_ERROR, "warn": rules.UB_WARN, "silicon": rules.UB_SILICON}
REFERENCE = dict(
    zip(REFERENCES, (rules.REFERENCE_TTSIM, rules.REFERENCE_LLK, rules.REFERENCE_ISA), strict=True)
)
STOCHASTIC = {"off": REFUSED, "up": UP, "down": DOWN, "seed": RANDOM}
L0 = {"off": 0, "model": 1}
POISON = {None: 0, "off": 0, "zero": 0, "ff": 0xFF, "random": 0}
_NOC_SIDE = 63  # largest coordinate
_T = TypeVar("_T")


def takes(table: Any) -> Callable[[type[_T]], type[_T]]:
    """For a class whose constructor takes the options of `table`: its signature and help say so."""

    def described(cls: type[_T]) -> type[_T]:
        init: Any = cls.__init__
        first = [
            each
            for each in inspect.signature(init).parameters.values()
            if each.kind is not each.VAR_KEYWORD
        ]
        known = declared(table)
        own = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=option.default,
                annotation=table.__annotations__[name].__origin__,
            )
            for name, option in known.items()
        ]
        init.__signature__ = inspect.Signature([*first, *own])
        lines = [f"    {name}: {option.help.replace('--', '')}" for name, option in known.items()]
        cls.__doc__ = "\n".join([(cls.__doc__ or "").rstrip(), "", *lines, "    "])
        return cls

    return described


def late_of(value: int | str) -> Lateness | None:
    """What is late, by the value of the option; None where nothing is."""
    return None if value == "off" else lateness("late", value)


def engine_name(name: str | None, default: str, timed: bool = False) -> str:
    """The engine's name: as given, else what BHEMU_ENGINE says, else `default`.

    Timed runs ask the cores for single instructions, which the compiled engine alone can do.
    """
    if timed:
        return ENGINES[1]
    if name is not None:
        return name
    chosen = os.environ.get("BHEMU_ENGINE") or default
    return arguments.choice("BHEMU_ENGINE", chosen, {engine: engine for engine in ENGINES})


def coordinate(xy: Any) -> tuple[int, int]:
    """`xy` as a coordinate of the NoC."""
    try:
        x, y = (arguments.integer("coordinate", n, 0, _NOC_SIDE) for n in xy)
    except (TypeError, ValueError, InputError):
        raise InputError(
            f"xy = {xy!r} must be a NoC coordinate: two integers of 0 to {_NOC_SIDE}",
            hint="for example (1, 2)",
        ) from None
    return x, y


Seen = TypeVar("Seen")

tile_created: list[Callable[[Any], None]] = []  # told every Tile when it has been powered up


@contextmanager
def of_new_tiles(look: Callable[[Any], Seen]) -> Iterator[list[Seen]]:
    """What `look` gives of every tile that is made within the context."""
    found: list[Seen] = []

    def observe(tile: Any) -> None:
        found.append(look(tile))

    tile_created.append(observe)
    try:
        yield found
    finally:
        tile_created.remove(observe)


_INTERNAL = frozenset(
    """state bus backend inert log ranges placed add_image locate place publish_host_writes
    drain_log loaded check_thread attach powered_up poison NOUN INTERNAL loop stepping network
    number tile_at_index chosen tile_at tiles_made exposed output observe_cores
    before_reset""".split()
)
"""What the packages own and no user needs; left out of dir(tile)."""


def plain_bytes(data: Any, hint: str = "") -> npt.NDArray[np.uint8]:
    """Data that is written, as bytes."""
    try:
        return np.frombuffer(data, np.uint8)
    except (TypeError, ValueError, AttributeError, BufferError):
        raise InputError(f"write takes bytes, not {type(data).__name__}", hint=hint) from None


@takes(TileOptions)
class Tile(Controls, Tensors):
    """One Blackhole Tensix tile, powered up with all cores in reset.

    Addresses are integers or names of registers and symbols, as in "main+4". A tile belongs to the
    thread that made it. Options (docs/options.md has their values):
    """

    NOUN, INTERNAL = "tile", _INTERNAL
    _windows, _l1_end = WINDOWS, memmap.L1_SIZE

    def __init__(self, **options: Unpack[TileOptions]) -> None:
        super().__init__()
        chosen = filled(TileOptions, options, "Tile")
        self.xy, self.seed = coordinate(chosen["xy"]), chosen["seed"]
        self.poison, self.late = chosen["poison"], late_of(chosen["late"])
        self.timing = chosen["timing"]
        if self.late is not None and self.timing != "off":
            raise InputError("late draws times, timing models them: give one of them")
        timed = self.late is not None or self.timing == "model"
        self.engine = engine_name(chosen["engine"], ENGINES[0], timed)
        self.state = self._record()
        if not self.state.is_copy:
            self._choose(**chosen)
        if not callable(chosen["progress"]):
            raise InputError(f"progress = {chosen['progress']!r} must be callable")
        self.backend = Backend(self.state, chosen["progress"], self.engine, timed, self._windows)
        self.loaded = [Loaded() for _ in memmap.CORE_NAMES]
        self._shared_l1 = False
        self.number = 0
        self.network: Network | None = None
        self.stepping = Stepping(self, RunLoop(RoundsOfOneTile(self)))
        self.log: list[tuple[int, int, int, int, int]] = []
        self.ranges: list[tuple[int, int, str]] = []
        self.initial_values: list[tuple[int, bytes]] = []
        self.before_reset: list[Callable[[], None]] = []
        self._power_up(fresh=True)
        for observe in tile_created:
            observe(self)

    @functools.cached_property
    def tensix(self) -> Tensix:
        """The coprocessor's state, as views of the record."""
        return Tensix(self.state)

    def _record(self) -> State:
        """A record for a tile that is being made; of a host that shares memory, in that."""
        return State()

    def _choose(self, quantum: int, stochastic: str | int, livelock: int, **chosen: Any) -> None:
        """Write the options that the record holds."""
        s = self.state
        s.quantum[0], s.livelock[0] = quantum, livelock
        s.ub_mode[0], s.reference[0] = UB[chosen["ub"]], REFERENCE[chosen["reference"]]
        s.stochastic[0] = STOCHASTIC["seed" if isinstance(stochastic, int) else stochastic]
        s.stochastic_seed[0] = stochastic if isinstance(stochastic, int) else 0
        s.l0[0] = L0[chosen["l0"]]

    def _power_up(self, fresh: bool = False) -> None:
        """Registers and memory as after a reset; `fresh`: the record is new, all zero."""
        self.state.core_state[:] = RESET
        l0_cache.power_up(self.state, self.seed, self.xy)
        for window in self._windows:
            if window.power_up is not None:
                window.power_up(self.state, self.xy)
        if self.network is not None:
            self.network.power_up(self.number, self.state)
        if not fresh or POISON[self.poison]:
            self.state.l1[:] = POISON[self.poison]
        self._draw()

    def reset(self) -> None:
        """Power-up again: memory, registers, clock; programs are forgotten."""
        self._check_alone("reset")
        self.powered_up()
        self.loop.forget()

    def powered_up(self) -> None:
        """As after reset(); a chip does it for its tiles."""
        for told in self.before_reset:
            told()
        reset(self.state)
        self.backend.engine.reset()
        self._power_up()
        for own in self.loaded:
            own.forget()
        self.ranges.clear()
        self.initial_values.clear()
        self.stepping.forget()
        self.state.flush[:] = 1

    @property
    def core(self) -> Mapping[str, Core]:
        """The five cores by name; made for each look, so that a tile is no reference cycle."""
        return Cores(self)

    # Memory

    @property
    def l1(self) -> npt.NDArray[np.uint8]:
        """L1, uint8 (1572864,), writable; writes take effect at the next run."""
        self._shared_l1 = True
        return self.state.l1

    @property
    def clock(self) -> int:
        """Instructions (RISC-V and Tensix) retired in all turns, at least 1 per round."""
        return now(self.state)

    def address(self, name: int | str) -> int:
        """The address of a register or of a symbol of the loaded ELFs, as in "main+4"."""
        return resolve.resolve(self, name)

    def read(self, at: int | str, n: int) -> bytes:
        """`n` bytes of L1, as the host."""
        address = self._check_l1(at, arguments.integer("n", n))
        return self.state.l1[address : address + n].tobytes()

    def write(self, at: int | str, data: bytes | bytearray | memoryview) -> None:
        """Bytes into L1, as the host."""
        plain = plain_bytes(data, "put_tensor, write32")
        address = self._check_l1(at, len(plain))
        self.state.l1[address : address + len(plain)] = plain
        self.backend.written(address, len(plain))
        self._touched()

    def read32(self, at: int | str) -> int:
        """One word as the host over the NoC; InputError where the host may not."""
        address = self.address(at)
        if 0 <= address < self._l1_end:
            return int.from_bytes(self.read(address, 4), "little")
        status, value = self.backend.read(self._check_device(address))
        self._check_access(status, "read", address)
        return value

    def write32(self, at: int | str, value: int) -> None:
        """Store one word as the host over the NoC; InputError where the host may not."""
        address, value = self.address(at), arguments.word("value", value)
        if 0 <= address < self._l1_end:
            self.write(address, value.to_bytes(4, "little"))
            return
        self._touched()
        status = self.backend.write(self._check_device(address), value)
        self._check_access(status, "write", address)

    def _check_l1(self, at: int | str, n: int) -> int:
        self.check_thread()
        address = self.address(at)
        if address < 0 or address + n > self._l1_end:
            raise InputError(f"{address:#x}..{address + n:#x} is outside L1 (0..{self._l1_end:#x})")
        return address

    def _check_device(self, address: int) -> int:
        self.check_thread()
        if not memmap.DEVICE_BASE <= address < memmap.FAR_UNTIL or address & 3:
            raise InputError(
                f"{address:#010x} is no address the host can reach on this tile"
                f" ({block_name(address)})"
            )
        return address

    def _check_access(self, status: int, verb: str, address: int, agent: str = "the host") -> None:
        if status:
            from bhemu.machine.sentences import CONDITIONS, RULES

            text = RULES[status].sentence(self.state.detail) if status < 0 else ""
            raise InputError(
                f"{agent} cannot {verb} {address:#010x} ({block_name(address)}): "
                + (text or CONDITIONS[status].text)
            )

    # Programs

    def add_image(self, core: int, image: loader.Image, local: loader.Local, offset: int) -> None:
        """Place a checked ELF for `core` in L1 and its local memory; nothing half-written."""
        placements = loader.place(image, local=local, core=memmap.CORE_NAMES[core], offset=offset)
        loader.check_overlap(self.ranges, placements)
        for p in placements:
            if p.space == "l1":
                self.write(p.address, p.data)
                self.ranges.append((p.address, p.address + len(p.data), str(image.path)))
            else:
                self.state.local[core, p.address : p.address + len(p.data)] = np.frombuffer(
                    p.data, np.uint8
                )

    def locate(self, core: int, pc: int) -> tuple[str | None, str | None, int | None]:
        """("function+0x10", file, line) of a pc of core 0-4, None where unknown."""
        return Core(self, core, memmap.CORE_NAMES[core]).locate(pc)

    def place(self, core: int, pc: int) -> str:
        """One line: core, pc, function, file:line."""
        return str(error_text.where_core(self, core, pc))

    def observe_cores(self, callback: Told | None = None) -> ObservedRecord:
        """As of the backend; the engine is "compiled" from now on."""
        self.engine = "compiled"
        return self.backend.observe_cores(callback)

    def publish_host_writes(self) -> None:
        """Host writes take effect: drop translated code when L1 may have changed."""
        self.state.src_prepared[:] = 0
        if self._shared_l1:
            self.state.flush[:] = 1

    def drain_log(self) -> None:
        """Move executed words from the trace ring to `log`: (thread, word, pc, origin, clock)."""
        s = self.state
        for i in range(int(s.log_read[0]), int(s.log_write[0])):
            at = i % len(s.log)
            t, word, pc, origin = (int(x) for x in s.log[at])
            self.log.append((t, word, pc, origin, int(s.log_clock[at])))
        s.log_read[0] = s.log_write[0]

    # States

    def snapshot(self) -> Snapshot:
        """The whole state as it is now, breakpoints excepted: restore() takes it, save() a file.

        Of a tile of a chip, that of the tile.
        """
        from bhemu.machine import saved

        self.check_thread()
        return saved.of_tile(self)

    def restore(self, snapshot: Snapshot) -> None:
        """Back to the state of a snapshot, of this or another tile; runs go on exactly as there."""
        from bhemu.machine import saved

        self._check_alone("restore")
        saved.restore_tile(self, snapshot)

    def _check_alone(self, call: str) -> None:
        self._check_not_running(call)
        if self.network is not None:
            raise InputError(f"{call}: this tile is on a chip", hint=f"chip.{call}()")

    # The machine that the tile is, or is part of

    @property
    def loop(self) -> RunLoop:
        """The run loop of the machine."""
        return self.stepping.loop

    @property
    def machine(self) -> Any:
        """What this tile is part of: the chip, or the tile itself where it is alone."""
        return self.loop.rounds.owner

    @property
    def error(self) -> BhemuError | None:
        """The error that stopped the last run; of a tile of a chip, if it came from this tile."""
        mine = self.network is None or self.loop.rounds.broken == self.number
        return self.loop.error if mine else None

    @property
    def tile(self) -> Mapping[tuple[int, int], Tile]:
        """The tiles of the machine by coordinate: this one, or the chip's."""
        if self.network is None:
            return {self.xy: self}
        found: Mapping[tuple[int, int], Tile] = self.machine.tile
        return found

    @property
    def dram(self) -> tuple[Bank, ...]:
        """The banks of DRAM of the chip; a tile that is alone has none."""
        found: tuple[Bank, ...] = ()
        return found if self.network is None else self.machine.dram

    def chosen(self, tile: object) -> Tile:
        """This tile, which is the only one that can be named here."""
        if tile is not None and tile is not self and tile != self.xy:
            raise InputError(f"tile = {tile!r}: this is tile {self.xy}")
        return self

    def tile_at(self, xy: object) -> Tile:
        """The tile at a coordinate, which is this one; the chip's, of a tile of a chip."""
        if self.network is None:
            return self.chosen(coordinate(xy))
        found: Tile = self.machine.tile_at(xy)
        return found

    def tile_at_index(self, t: int) -> Tile:
        """The one tile."""
        return self

    def tiles_made(self) -> tuple[Tile, ...]:
        """The one tile."""
        return (self,)

    exposed = tiles_made

    def output(self, spec: OutputSpec) -> tuple[int, bytes]:
        """The address of an output of the program, and its bytes."""
        if self.network is not None:
            found: tuple[int, bytes] = self.machine.output(spec)
            return found
        address = self.address(spec.at)
        return address, self.read(address, spec.size)

    def attach(self, network: Network, number: int, loop: RunLoop) -> None:
        """The tile is tile `number` of a chip, whose run loop runs it."""
        self.network, self.number = network, number
        self.stepping = Stepping(self, loop)
        self.stepping.watched.dram = network.dram_watches, number
        self._draw()

    def _draw(self) -> None:
        """Begin what the seeds decide, differently on each tile of a chip."""
        if self.poison == "random":
            number = [] if self.network is None else [self.number]
            random = np.random.default_rng([self.seed, *number])
            self.state.l1[:] = random.integers(0, 256, memmap.L1_SIZE, np.uint8)
        if self.late is not None:
            from bhemu.timing import draws  # which no other run takes

            draws.begin(self.state, self.late, self.number, self.xy)
        elif self.timing == "model":
            self.state.timed[0] = MODELLED

    def _touched(self) -> None:
        """The host has changed something."""
        if self.network is not None:
            self.network.wake(self.number, self.state)

    # What a tile is to Python

    def __repr__(self) -> str:
        x, y = self.xy
        named = None if self.network is not None else self.loop.program
        program = "" if named is None else f" {named.name},"
        cores = " ".join(f"{core.name}:{core.state}" for core in self.core.values())
        problem = "" if self.error is None else f"; stopped by {type(self.error).__name__}"
        return f"<Tile ({x},{y}){program} clock {self.clock}; {cores}{problem}>"
