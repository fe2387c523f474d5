"""The tile: record, cores, coprocessor, devices, put together (the motherboard)."""

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from bhemu import arguments, events, memmap, names, report, snapshot
from bhemu.backend import Backend
from bhemu.controls import Controls
from bhemu.core import Core, Cores
from bhemu.devices.bus.address_map import WINDOWS, block_name
from bhemu.errors import InputError
from bhemu.machine.runner import LONGEST_TURN
from bhemu.machine.stepping import Machine
from bhemu.machine.stop import Stop, now
from bhemu.machine.until import End, Until
from bhemu.noc.network import Network
from bhemu.one_thread import OneThread
from bhemu.options import (
    L0,
    POISON,
    REFERENCE,
    STOCHASTIC,
    UB,
    coordinate,
    engine_name,
    silent,
)
from bhemu.parts import Loaded
from bhemu.program import loader
from bhemu.program.outputs import OutputResult, collect
from bhemu.program.schema import ENGINES, OutputSpec, Program
from bhemu.program.specs import LIVELOCK, QUANTUM
from bhemu.program.tensor_memory import Tensors
from bhemu.riscv import l0_cache
from bhemu.snapshot import Snapshot
from bhemu.tensix.state import RESET, State, reset
from bhemu.tensix.views import Tensix

_INTERNAL = frozenset(
    """state bus backend inert log ranges placed add_image locate place before_run drain_log
    launched loaded check_thread machine joined restored NOUN INTERNAL""".split()
)
"""What the packages own and no user needs; left out of dir(tile)."""


class Tile(OneThread, Controls, Tensors):
    """One Blackhole Tensix tile, powered up with all cores in reset.

    xy: NoC coordinate; quantum: instructions per core turn; ub: "error", "warn" or "silicon";
    reference: "ttsim", "llk" or "isa", whom to follow where ttsim, tt-llk's golden tests and the
    ISA text disagree; stochastic: how the matrix unit and the packer round by chance,
    which no source describes bit by bit: None or "off" (refused), the seed of a model, "up" or
    "down"; engine: what runs the cores, "unicorn" or "compiled", with the
    same results (None: what BHEMU_ENGINE says, else "unicorn"); l0: "model" gives the cores their
    L0 data caches, whose lines do not see what others write to L1, "off" none;
    livelock: rounds without a Tensix word after which a run looks whether any core can still leave
    its loop (0 = never);
    poison: None, "zero", "ff" or "random" (fill of L1, with `seed`);
    progress: called with (name, seconds) after something was compiled for the first time.
    Addresses are integers or names of registers and symbols, as in "main+4". A tile belongs to the
    thread that made it.
    """

    NOUN, INTERNAL = "tile", _INTERNAL

    def __init__(
        self,
        *,
        xy: tuple[int, int] = (1, 2),
        seed: int = 0,
        quantum: int = QUANTUM,
        ub: str = "error",
        poison: str | None = None,
        reference: str = "ttsim",
        stochastic: int | str | None = None,
        engine: str | None = None,
        l0: str = "off",
        livelock: int = LIVELOCK,
        progress: Callable[[str, float], None] = silent,
    ) -> None:
        super().__init__()
        self.xy, self.seed = coordinate(xy), arguments.integer("seed", seed)
        self.state = State()
        self.state.quantum[0] = arguments.integer("quantum", quantum, 1, LONGEST_TURN)
        self.state.ub_mode[0] = arguments.choice("ub", ub, UB)
        self.state.reference[0] = arguments.choice("reference", reference, REFERENCE)
        model, self.state.stochastic_seed[0] = arguments.stochastic(stochastic)
        self.state.stochastic[0] = STOCHASTIC[model]
        self.engine = engine_name(engine, ENGINES[0])
        self.state.l0[0] = arguments.choice("l0", l0, L0)
        arguments.choice("poison", poison, POISON)
        self.state.livelock[0] = arguments.integer("livelock", livelock, 0, arguments.MOST)
        if not callable(progress):
            raise InputError(f"progress = {progress!r} must be callable")
        self.backend = Backend(self.state, progress, self.engine)
        self.loaded = [Loaded() for _ in memmap.CORE_NAMES]
        self.tensix = Tensix(self.state)
        self.machine = Machine(self)
        self._poison = poison
        self._shared_l1 = False
        self._chip: tuple[Network, int] | None = None  # and the tile's number on it
        self.log: list[tuple[int, int, int, int, int]] = []
        self.ranges: list[tuple[int, int, str]] = []
        self.placed: list[tuple[int, bytes]] = []
        self._program: Program | None = None
        self._power_up(fresh=True)
        for observe in events.tile_created:
            observe(self)

    def _power_up(self, fresh: bool = False) -> None:
        """Registers and memory as after a reset; `fresh`: the record is new, all zero."""
        self.state.core_state[:] = RESET
        l0_cache.power_up(self.state, self.seed, self.xy)
        for window in WINDOWS:
            if window.power_up is not None:
                window.power_up(self.state, self.xy)
        if self._chip is not None:
            self._chip[0].power_up(self._chip[1], self.state)
        if not fresh or POISON[self._poison]:
            self.state.l1[:] = POISON[self._poison]
        if self._poison == "random":
            self._scramble_l1()

    def _scramble_l1(self) -> None:
        """Fill L1 as the seed says, differently on each tile of a chip."""
        number = [] if self._chip is None else [self._chip[1]]
        random = np.random.default_rng([self.seed, *number])
        self.state.l1[:] = random.integers(0, 256, memmap.L1_SIZE, np.uint8)

    def reset(self) -> None:
        """Power-up again: memory, registers, clock; programs are forgotten."""
        self._alone("reset")
        reset(self.state)
        self.backend.engine.reset()
        self._power_up()
        for own in self.loaded:
            own.forget()
        self.ranges.clear()
        self.placed.clear()
        self._program = None
        self.machine.forget()
        self.machine.points.delete(None)
        self.machine.watched.delete(None)
        self.machine.end = End()
        self.state.flush[:] = 1
        self._begin_history()

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
        return names.resolve(self, name)

    def read(self, at: int | str, n: int) -> bytes:
        """`n` bytes of L1, as the host."""
        address = self._check_l1(at, arguments.integer("n", n))
        return self.state.l1[address : address + n].tobytes()

    def write(self, at: int | str, data: bytes | bytearray | memoryview) -> None:
        """Bytes into L1, as the host."""
        try:
            plain = np.frombuffer(data, np.uint8)
        except (TypeError, ValueError, AttributeError, BufferError):
            kind = type(data).__name__
            raise InputError(f"write takes bytes, not {kind}", hint="put_tensor, write32") from None
        address = self._check_l1(at, len(plain))
        self.state.l1[address : address + len(plain)] = plain
        self.backend.written(address, len(plain))
        self._touched()

    def read32(self, at: int | str) -> int:
        """One word as the host over the NoC; InputError where the host may not."""
        address = self.address(at)
        if 0 <= address < memmap.L1_SIZE:
            return int.from_bytes(self.read(address, 4), "little")
        status, value = self.backend.read(self._check_device(address))
        self._check_access(status, "read", address)
        return value

    def write32(self, at: int | str, value: int) -> None:
        """Store one word as the host over the NoC; InputError where the host may not."""
        address, value = self.address(at), arguments.word("value", value)
        if 0 <= address < memmap.L1_SIZE:
            self.write(address, value.to_bytes(4, "little"))
            return
        self._touched()
        status = self.backend.write(self._check_device(address), value)
        self._check_access(status, "write", address)

    def _check_l1(self, at: int | str, n: int) -> int:
        self.check_thread()
        address = self.address(at)
        if address < 0 or address + n > memmap.L1_SIZE:
            raise InputError(
                f"{address:#x}..{address + n:#x} is outside L1 (0..{memmap.L1_SIZE:#x})"
            )
        return address

    def _check_device(self, address: int) -> int:
        self.check_thread()
        if not memmap.DEVICE_BASE <= address < memmap.FAR_UNTIL or address & 3:
            raise InputError(
                f"{address:#010x} is no address the host can reach on this tile"
                f" ({block_name(address)})"
            )
        return address

    def _check_access(self, status: int, verb: str, address: int, who: str = "the host") -> None:
        if status:
            from bhemu.tensix.status import CONDITIONS, RULES

            text = RULES[status].sentence(self.state.detail) if status < 0 else ""
            raise InputError(
                f"{who} cannot {verb} {address:#010x} ({block_name(address)}): "
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
        return str(report.where_core(self, core, pc))

    # Running

    def before_run(self) -> None:
        """Host writes take effect: drop translated code when L1 may have changed."""
        self.state.src_prepared[:] = 0
        if self._shared_l1:
            self.state.flush[:] = 1

    def run(
        self,
        until: Until = None,
        *,
        limit: int | None = None,
        timeout_s: float | None = None,
        resume: bool = False,
    ) -> Stop:
        """Run until `until`, until everything is idle or parked, or until a limit.

        until: a callable (tile) -> bool, asked once per round, or words of L1 that must all hold,
        as [(address, value), ...] or [{"word": address, "equals": value}, ...], exact at the
        store or Tensix word, or "idle"; limit in clock units. Else as the launched program says.
        Errors: BhemuError; again raised until reset() or run(resume=True).
        """
        self._drives("run")
        return self.machine.run(until, limit, timeout_s, resume)

    def drain_log(self) -> None:
        """Move executed words from the trace ring to `log`: (thread, word, pc, origin, clock)."""
        s = self.state
        for i in range(int(s.log_read[0]), int(s.log_write[0])):
            at = i % len(s.log)
            t, word, pc, origin = (int(x) for x in s.log[at])
            self.log.append((t, word, pc, origin, int(s.log_clock[at])))
        s.log_read[0] = s.log_write[0]

    # States and programs

    def snapshot(self) -> Snapshot:
        """The whole state as it is now, breakpoints excepted: restore() takes it, save() a file."""
        self.check_thread()
        more = {"seed": self.seed, "poison": self._poison}
        return snapshot.take(self, self.machine, more)

    def restore(self, saved: Snapshot) -> None:
        """Back to the state of a snapshot, of this or another tile; runs go on exactly as there."""
        self._drives("restore")
        if not isinstance(saved, Snapshot):
            raise InputError(f"{saved!r} is no snapshot", hint="Snapshot.load(path) reads a file")
        self.restored(saved)

    def restored(self, saved: Snapshot) -> None:
        """As restore(); a chip does it for its tiles."""
        snapshot.restore(self, self.machine, saved)
        self.seed, self._poison = saved.about["seed"], saved.about["poison"]
        self._begin_history()

    def launched(self, program: Program, end: End) -> None:
        """`program` is on the tile, and this is how its runs end."""
        self._program, self.machine.end = program, end

    def check(self) -> list[OutputResult]:
        """The outputs of the launched program: saved where it says so, and compared."""
        if self._program is None:
            raise InputError("no program was launched", hint="Program.load(path).launch()")
        return collect(self._program, self._output)

    def why(self, place: str | None = None, core: str = "brisc") -> "list[Any]":
        """What is wrong with the launched program, or what made `place` what it is at its end.

        The program runs once more from its launch, beside this tile; the findings are those of
        `bhemu why` (bhemu.why.findings.Finding, the likeliest first), none for a right program.
        place: an element of an output, an address, a field, a part of the state, as in "y[0,2]",
        "0x20000:4", "sem:1"; core: whose local memory it lies in.
        """
        self._alone("why")
        if self._program is None:
            raise InputError("no program was launched", hint="Program.load(path).launch()")
        question = importlib.import_module("bhemu.why.question")  # above the tile, and much code
        found: list[Any] = question.of_program(
            self._program, place, core, int(self.state.quantum[0])
        )
        return found

    def _output(self, spec: OutputSpec) -> tuple[int, bytes]:
        address = self.address(spec.at)
        return address, self.read(address, spec.size)

    # On a chip

    def joined(self, network: Network, number: int) -> None:
        """The tile is tile `number` of a chip, which runs it."""
        self._chip = network, number
        self.machine.watched.dram = network.dram_watches, number
        if self._poison == "random":
            self._scramble_l1()

    def _touched(self) -> None:
        """The host has changed something."""
        if self._chip is not None:
            self._chip[0].wake(self._chip[1], self.state)

    def _drives(self, what: str) -> None:
        if self._chip is not None:
            raise InputError(f"{what}: this tile is on a chip", hint="chip.run() runs its tiles")
        self._alone(what)

    # What a tile is to Python

    def __repr__(self) -> str:
        x, y = self.xy
        program = "" if self._program is None else f" {self._program.name},"
        cores = " ".join(f"{core.name}:{core.state}" for core in self.core.values())
        problem = "" if self.error is None else f"; stopped by {type(self.error).__name__}"
        return f"<Tile ({x},{y}){program} clock {self.clock}; {cores}{problem}>"
