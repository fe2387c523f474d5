"""The tile: record, cores, coprocessor, devices, put together (the motherboard)."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from bhemu import events, memmap, report
from bhemu.backend import Backend
from bhemu.core import Core, Loaded
from bhemu.devices.bus.address_map import WINDOWS, block_name
from bhemu.errors import BhemuError, InputError
from bhemu.machine import LONGEST_TURN, MOST, Runner, Stop, Until
from bhemu.program import loader, tensor
from bhemu.tensix.state import RESET, State, reset
from bhemu.tensix.views import Tensix

_UB = {"error": 0, "warn": 1, "silicon": 2}
_REFERENCE = {"ttsim": 0, "llk": 1}


def _silent(name: str, seconds: float) -> None:
    """Default of `progress`: say nothing."""


class Tile:
    """One Blackhole Tensix tile, powered up with all cores in reset.

    xy: NoC coordinate; quantum: instructions per core turn; ub: "error", "warn" or "silicon";
    reference: "ttsim" or "llk"; livelock: rounds without a Tensix word after which a run looks
    whether any core can still leave its loop (0 = never); poison: None, "zero", "ff" or "random"
    (fill of L1, with `seed`);
    progress: called with (name, seconds) after something was compiled for the first time.
    """

    def __init__(
        self,
        *,
        xy: tuple[int, int] = (1, 2),
        seed: int = 0,
        quantum: int = 1000,
        ub: str = "error",
        poison: str | None = None,
        reference: str = "ttsim",
        engine: str = "unicorn",
        livelock: int = 2000,
        progress: Callable[[str, float], None] = _silent,
    ) -> None:
        self.xy, self.seed = xy, seed
        self.state = State()
        self.state.quantum[0] = _positive("quantum", quantum, LONGEST_TURN)
        self.state.ub_mode[0] = _choice("ub", ub, _UB)
        self.state.reference[0] = _choice("reference", reference, _REFERENCE)
        _choice("engine", engine, {"unicorn": 0})
        self.state.livelock[0] = _natural("livelock", livelock)
        self.backend = Backend(self.state, progress)
        self.loaded = [Loaded() for _ in memmap.CORE_NAMES]
        self.tensix = Tensix(self.state)
        self._runner = Runner(self)
        self._poison = poison
        self._shared_l1 = False
        self.log: list[tuple[int, int, int, int]] = []
        self.ranges: list[tuple[int, int, str]] = []
        self._power_up()
        for observe in events.tile_created:
            observe(self)

    def _power_up(self) -> None:
        self.state.core_state[:] = RESET
        for window in WINDOWS:
            if window.power_up is not None:
                window.power_up(self.state, self.xy)
        fill = {None: 0, "off": 0, "zero": 0, "ff": 0xFF, "random": 0}
        self.state.l1[:] = _choice("poison", self._poison, fill)
        if self._poison == "random":
            random = np.random.default_rng(self.seed)
            self.state.l1[:] = random.integers(0, 256, memmap.L1_SIZE, np.uint8)

    def reset(self) -> None:
        """Power-up again: memory, registers, clock; loaded symbols are forgotten."""
        reset(self.state)
        self._power_up()
        for own in self.loaded:
            own.forget()
        self.ranges.clear()
        self._runner.error = None
        self.state.flush[:] = 1

    @property
    def core(self) -> Mapping[str, Core]:
        """The five cores by name; made for each look, so that a tile is no reference cycle."""
        return {name: Core(self, index, name) for index, name in enumerate(memmap.CORE_NAMES)}

    # Memory

    @property
    def l1(self) -> npt.NDArray[np.uint8]:
        """L1, uint8 (1572864,), writable; writes take effect at the next run."""
        self._shared_l1 = True
        return self.state.l1

    @property
    def clock(self) -> int:
        """Instructions (RISC-V and Tensix) retired in all turns, at least 1 per round."""
        return int(self.state.clock[0])

    def read(self, address: int, n: int) -> bytes:
        """`n` bytes of L1, as the host."""
        self._check_l1(address, n)
        return self.state.l1[address : address + n].tobytes()

    def write(self, address: int, data: bytes) -> None:
        """Bytes into L1, as the host."""
        self._check_l1(address, len(data))
        self.state.l1[address : address + len(data)] = np.frombuffer(data, np.uint8)
        self.state.flush[:] = 1

    def read32(self, address: int) -> int:
        """One word as the host over the NoC; InputError where the host may not."""
        if 0 <= address < memmap.L1_SIZE:
            return int.from_bytes(self.read(address, 4), "little")
        status, value = self.backend.read(self._check_device(address))
        self._check_access(status, "read", address)
        return value

    def write32(self, address: int, value: int) -> None:
        """Store one word as the host over the NoC; InputError where the host may not."""
        if not 0 <= value < 1 << 32:
            raise InputError(f"value {value:#x} does not fit 32 bits")
        if 0 <= address < memmap.L1_SIZE:
            self.write(address, value.to_bytes(4, "little"))
            return
        status = self.backend.write(self._check_device(address), value)
        self._check_access(status, "write", address)

    def _check_l1(self, address: int, n: int) -> None:
        if address < 0 or n < 0 or address + n > memmap.L1_SIZE:
            raise InputError(
                f"{address:#x}..{address + n:#x} is outside L1 (0..{memmap.L1_SIZE:#x})"
            )

    def _check_device(self, address: int) -> int:
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

    def tensor(
        self, at: int, shape: tuple[int, ...], dtype: str, layout: str = "tile32"
    ) -> npt.NDArray[Any]:
        """A tensor of L1, decoded (float32, or int32 for integer formats)."""
        size = tensor.encoded_size(shape, dtype, layout)
        return tensor.decode(self.read(at, size), shape, dtype, layout)

    def put_tensor(
        self,
        at: int,
        array: npt.ArrayLike,
        dtype: str,
        layout: str = "tile32",
        convert: str = "exact",
    ) -> None:
        """Encode an array into L1."""
        self.write(at, tensor.encode(array, dtype, layout, convert))

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
        store; limit in clock units. Errors: BhemuError; again raised until reset() or
        run(resume=True).
        """
        return self._runner.run(until, limit, timeout_s, resume)

    def step(self, core: str, n: int = 1, *, hold: bool = False) -> Stop:
        """Normal schedule until `core` retired `n` instructions; hold freezes the others."""
        return self._runner.step(self._core(core), n, hold)

    def tstep(self, thread: int, n: int = 1) -> Stop:
        """Normal schedule until Tensix thread 0-2 executed `n` words."""
        if thread not in (0, 1, 2):
            raise InputError(f"there is no Tensix thread {thread} (0, 1, 2)")
        return self._runner.tstep(thread, n)

    @property
    def error(self) -> BhemuError | None:
        """The error that stopped the last run."""
        return self._runner.error

    def drain_log(self) -> None:
        """Move executed words from the trace ring to `log`: (thread, word, pc, origin)."""
        s = self.state
        for i in range(int(s.log_read[0]), int(s.log_write[0])):
            t, word, pc, origin = (int(x) for x in s.log[i % len(s.log)])
            self.log.append((t, word, pc, origin))
        s.log_read[0] = s.log_write[0]

    def _core(self, name: str) -> int:
        if name not in memmap.CORE_NAMES:
            raise InputError(f"there is no core {name!r}", hint=", ".join(memmap.CORE_NAMES))
        return memmap.CORE_NAMES.index(name)


def _choice(what: str, value: Any, known: Mapping[Any, int]) -> int:
    if value not in known:
        names = ", ".join(repr(name) for name in known)
        raise InputError(f"{what} = {value!r} is not known", hint=f"one of {names}")
    return known[value]


def _positive(what: str, value: int, most: int) -> int:
    if not isinstance(value, int) or not 0 < value <= most:
        raise InputError(f"{what} = {value!r} must be an integer of 1 to {most}")
    return value


def _natural(what: str, value: int) -> int:
    return value if value == 0 and isinstance(value, int) else _positive(what, value, MOST)
