"""ttsim's library as a tile, and L1 of both compared."""

import contextlib
import ctypes
import mmap
import os
import re
import select
import signal
import struct
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
import numpy.typing as npt

from bhemu.devices.bus.address_map import REGISTERS
from bhemu.errors import BhemuError, InputError, Internal, NoProgress
from bhemu.machine.stop import Stop
from bhemu.machine.tile import Tile
from bhemu.memmap import CORE_NAMES, L1_SIZE, SOFT_RESET_ALL, SOFT_RESET_BITS
from bhemu.tensix.state import BLOCKED, HELD, RUNNING

# One program as both models run it: an L1 image, where the cores start, when it is finished.

SECONDS = 60.0  # a run may take
TRISC_STARTS = {"trisc0": 0x10000, "trisc1": 0x20000, "trisc2": 0x30000}
DONE = ((0x100, 0xD0E0), (0x104, 0xD0E1), (0x108, 0xD0E2))


@dataclass(frozen=True)
class Case:
    """An L1 image (bytes, zero-extended to all of L1), the cores to release, the end condition.

    `starts` maps a core's name to its start address (brisc always starts at 0), `held` does so for
    cores that the program itself releases. `until` holds (L1 address, value) pairs that all must
    hold; without any the run ends when L1 equals `goal`, or at its limit. `regions` names parts of
    L1 as (name, address, size) for reports.
    """

    image: bytes
    starts: Mapping[str, int] = field(default_factory=lambda: dict(TRISC_STARTS))
    until: Sequence[tuple[int, int]] = DONE
    regions: Sequence[tuple[str, int, int]] = ()
    name: str = ""
    held: Mapping[str, int] = field(default_factory=dict)
    goal: bytes = b""

    def __post_init__(self) -> None:
        assert len(self.image) <= L1_SIZE, f"{len(self.image):#x} bytes do not fit L1"
        assert self.starts.keys() <= set(CORE_NAMES), self.starts
        assert self.until or self.goal, "a case needs an end condition"

    def place(self, address: int) -> str:
        """An L1 address as "region + offset", or as it is."""
        for name, start, size in self.regions:
            if start <= address < start + size:
                return f"{name} + {address - start:#x} (L1 {address:#x})"
        return f"L1 {address:#x}"


@dataclass(frozen=True)
class Outcome:
    """What became of a case on one model.

    kind: "done" (then `l1` is all of L1, uint8), "error" (category and text), "unfinished" (the
    clock limit came first, as with a deadlock), "timeout" or "crash". `seconds` is the time from
    the release of the cores to the end.
    """

    kind: str
    l1: npt.NDArray[np.uint8] | None = None
    category: str = ""
    text: str = ""
    seconds: float = 0.0

    @property
    def done(self) -> bool:
        """The end condition was reached."""
        return self.kind == "done"

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready values, without the image."""
        return {
            "kind": self.kind,
            "category": self.category,
            "text": self.text,
            "seconds": round(self.seconds, 6),
        }

    def __str__(self) -> str:
        if self.kind == "error":
            return f"{self.category}: {self.text}"
        return self.kind if not self.text else f"{self.kind} ({self.text})"


ENVIRONMENT = "BHEMU_TTSIM"
POLL = 500  # clocks between two looks at the end condition
CLOCKS = 1_000_000  # without an end and without an error: a deadlock looks like this

_BAR0, _WINDOW = 0x1_0000_0000, 0x200000  # libttsim_api: windows of 2 MiB
_WINDOW_CONFIG = _BAR0 + 0x1FC00000
_BLACKHOLE = 0xB1401E52  # vendor and device id in PCI configuration word 0
_WINDOWS = 200
XY = tuple[int, int]
_TILE: XY = (1, 2)
RESET_PCS = ("TRISC0_RESET_PC", "TRISC1_RESET_PC", "TRISC2_RESET_PC", "NCRISC_RESET_PC")
_EXIT_DONE, _EXIT_UNFINISHED, _EXIT_FOREIGN = 0, 3, 4
_GOAL_TURNS = 50  # polls between two comparisons of all of L1
_RESULT = struct.Struct("<d")
_LINE = re.compile(r"ERROR: (\w+): (.*)")
_FUNCTIONS = ("init", "clock", "pci_config_rd32", "pci_mem_rd_bytes", "pci_mem_wr_bytes")


class Simulator:
    """The library inside a process of its own: init once, no reset, no second case."""

    seconds = 0.0  # that a job spent on running

    def __init__(self, path: Path) -> None:
        library = ctypes.CDLL(str(path.resolve()))  # a bare name would be looked up elsewhere
        init, self.clock, read_word, self._read, self._write = (
            getattr(library, f"libttsim_{name}") for name in _FUNCTIONS
        )
        self.clock.argtypes = [ctypes.c_uint32]
        for transfer in (self._read, self._write):
            transfer.argtypes = [ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint32]
        read_word.restype = ctypes.c_uint32
        init()
        self.device = int(read_word(0, 0))
        self._windows: dict[tuple[int, XY], int] = {}

    def _host_address(self, address: int, xy: XY) -> int:
        where = address // _WINDOW, xy
        if where not in self._windows:
            if len(self._windows) == _WINDOWS:
                self._windows.clear()
            index = self._windows[where] = len(self._windows)
            for i, word in enumerate((where[0] & 0xFFFFFFFF, xy[0] << 11 | xy[1] << 17, 0)):
                data = struct.pack("<I", word)
                self._write(_WINDOW_CONFIG + 12 * index + 4 * i, data, 4)
        return _BAR0 + self._windows[where] * _WINDOW + address % _WINDOW

    def write(self, address: int, data: bytes, xy: XY = _TILE) -> None:
        """Bytes into L1 or DRAM at a coordinate, or one word into a register of a tile."""
        for at, low, high in _by_window(address, len(data)):
            self._write(self._host_address(at, xy), data[low:high], high - low)

    def read(self, address: int, size: int, xy: XY = _TILE) -> bytes:
        """Bytes of L1 or DRAM at a coordinate."""
        found = []
        for at, low, high in _by_window(address, size):
            buffer = ctypes.create_string_buffer(high - low)
            self._read(self._host_address(at, xy), buffer, high - low)
            found.append(buffer.raw)
        return b"".join(found)

    def store(self, register: str, value: int) -> None:
        """One word into a tile control register, by name."""
        self.write(REGISTERS[register], struct.pack("<I", value))


Job = Callable[[Simulator], bytes | None]
"""What is done with the library in its process: what came out of it, None when it did not end."""


def _by_window(address: int, size: int) -> Iterator[tuple[int, int, int]]:
    """(address, first, after the last) of the pieces of an access that lie in one window each."""
    low = 0
    while low < size:
        high = min(size, low + _WINDOW - (address + low) % _WINDOW)
        yield address + low, low, high
        low = high


class Library:
    """A checked libttsim.so; InputError with one line when the file is missing or another thing.

    Every case runs in a forked process: the library ends its process at the first violation and
    can be initialised once only.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if not sys.platform.startswith("linux"):
            raise InputError("libttsim.so runs on Linux only")
        if not self.path.is_file():
            raise InputError(
                f"{self.path}: no such library",
                hint=f"--ttsim or {ENVIRONMENT} names the libttsim.so of a ttsim release",
            )
        outcome = _fork(self.path, lambda _: b"", 0, SECONDS)
        if not outcome.done:
            raise InputError(
                f"{self.path} is not a libttsim.so of Blackhole: {outcome.text or outcome.kind}",
                hint="build or download release_bh of ttsim",
            )

    def run(self, case: Case, *, clocks: int = CLOCKS, seconds: float = SECONDS) -> Outcome:
        """The case's outcome; `clocks` of the library and wall-clock `seconds` are hard limits."""
        return _fork(self.path, lambda library: _run(library, case, clocks), L1_SIZE, seconds)

    def do(self, job: Job, size: int, *, seconds: float = SECONDS) -> Outcome:
        """The outcome of any job that gives `size` bytes; `seconds` of the clock on the wall."""
        return _fork(self.path, job, size, seconds)


def find(path: str | os.PathLike[str] | None) -> Library:
    """The library at `path`, else at $BHEMU_TTSIM; InputError when neither is given."""
    chosen = path or os.environ.get(ENVIRONMENT)
    if not chosen:
        raise InputError(
            "no libttsim.so named", hint=f"--ttsim PATH or the environment variable {ENVIRONMENT}"
        )
    return Library(chosen)


def _fork(path: Path, job: Job, size: int, seconds: float) -> Outcome:
    """Do `job` in a child process."""
    shared = mmap.mmap(-1, size + _RESULT.size)
    sys.stdout.flush()
    with TemporaryFile() as log:
        with warnings.catch_warnings():
            # The child uses nothing that another thread could hold: it runs the library and ends.
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            # Never returns; the library prints to file descriptor 1
            ended = _EXIT_FOREIGN
            try:
                os.dup2(log.fileno(), 1)
                signal.signal(signal.SIGINT, signal.SIG_DFL)
                simulator = Simulator(path)
                if simulator.device != _BLACKHOLE:
                    os.write(1, f"its device is {simulator.device:#010x}".encode())
                elif (data := job(simulator)) is None:
                    ended = _EXIT_UNFINISHED
                else:
                    shared[: len(data)] = data
                    shared[len(data) :] = _RESULT.pack(simulator.seconds)
                    ended = _EXIT_DONE
            except Exception as problem:  # told in the parent, which sees nothing else of this
                os.write(1, str(problem).encode())
            finally:
                os._exit(ended)
        code = _wait(child, seconds)
        log.seek(0)
        text = log.read(1 << 16).decode(errors="replace").strip()
    outcome = _outcome(code, text, shared, size)
    shared.close()
    return outcome


def _outcome(code: int | None, text: str, shared: mmap.mmap, size: int) -> Outcome:
    if code is None:
        return Outcome("timeout", text="the wall-clock limit came first")
    if code == _EXIT_DONE:
        memory = np.frombuffer(shared[:size], np.uint8) if size else None
        return Outcome("done", memory, seconds=_RESULT.unpack(shared[size:])[0])
    if code == _EXIT_UNFINISHED:
        return Outcome("unfinished", text="no end and no error")
    found = _LINE.search(text)
    if found:
        return Outcome("error", category=found[1], text=found[2].strip())
    last = text.splitlines()[-1] if text else f"ended with {code}"
    return Outcome("crash", text=last)


def _wait(child: int, seconds: float) -> int | None:
    """Exit code of `child` (negative: a signal), None after it had to be killed."""
    handle = os.pidfd_open(child)
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    try:
        late = not poll.poll(1000 * seconds)
    except BaseException:
        _end(child)
        raise
    finally:
        os.close(handle)
    if late:
        _end(child)
        return None
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _end(child: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def _run(simulator: Simulator, case: Case, clocks: int) -> bytes | None:
    simulator.write(0, case.image)
    triscs = 0
    for i, register in enumerate(RESET_PCS):
        core = CORE_NAMES[i + 1]
        pc = case.starts.get(core, case.held.get(core))
        if pc is None:
            continue
        simulator.store(register, pc)
        if i < 3:
            triscs |= 1 << i
        else:
            simulator.store("NCRISC_RESET_PC_OVERRIDE", 1)
    simulator.store("TRISC_RESET_PC_OVERRIDE", triscs)
    held = SOFT_RESET_ALL
    for core in case.starts:
        held &= ~(1 << SOFT_RESET_BITS[CORE_NAMES.index(core)])
    begin = time.perf_counter()
    simulator.store("SOFT_RESET_0", held)
    ended = False
    for turn in range(1, clocks // POLL + 1):
        simulator.clock(POLL)
        if case.until:
            ended = all(
                simulator.read(address, 4) == struct.pack("<I", value & 0xFFFFFFFF)
                for address, value in case.until
            )
        elif turn % _GOAL_TURNS == 0:
            ended = simulator.read(0, L1_SIZE) == case.goal
        if ended:
            break
    if case.until and not ended:
        return None
    simulator.seconds = time.perf_counter() - begin
    return simulator.read(0, L1_SIZE)


# Runs a case on both models and compares L1.
#
# A verdict is one of
#
# * "equal": both finished and L1 is the same byte for byte;
# * "both refuse": both stopped with an error;
# * "no second opinion": ttsim has not done (Unsupported, Unimplemented, ...) what bhemu models;
# * "different": L1 differs, or one of them refuses what the other runs, or never ends.

MOST_LEFT = 10_000_000  # clock units: far more than what FIFOs, MOPs and REPLAYs can hold

_KINDS = {"until": "done", "timeout": "timeout"}


def outcome(tile: Tile, run: Callable[[], Stop], kinds: Mapping[str, str]) -> Outcome:
    """What `run` comes to, `kinds` giving the kind of outcome for the reason of its stop.

    Errors of the program are outcomes, defects of bhemu are raised.
    """
    begin = time.perf_counter()
    try:
        stop = run()
    except BhemuError as problem:
        return failed(problem)
    seconds = time.perf_counter() - begin
    if stop.reason == "interrupt":
        raise KeyboardInterrupt
    kind = kinds.get(stop.reason, "unfinished")
    if kind != "done":
        return Outcome(kind, text=f"stopped: {stop.reason}")
    if stop.reason == "until":
        try:
            finish_words(tile)
        except BhemuError as problem:
            return failed(problem)
    return Outcome("done", np.frombuffer(tile.read(0, L1_SIZE), np.uint8), seconds=seconds)


def failed(problem: BhemuError) -> Outcome:
    """What an error of the program is as an outcome; a defect of bhemu is raised."""
    if isinstance(problem, Internal):
        raise problem
    if isinstance(problem, NoProgress):
        return Outcome("unfinished", category=problem.category, text=problem.message)
    text = f"[{problem.rule}] {problem.message}, at {problem.where}"
    return Outcome("error", category=problem.category, text=text)


def finish_words(tile: Tile) -> None:
    """Execute the words that are queued where `until` stopped; the cores stand still.

    The golden model executes a word when it is pushed, and so has done these.
    """
    s = tile.state
    held = s.fifo_write - s.fifo_read, s.gate_full, s.mop_on, s.play_left
    if not any(np.any(part) for part in held):
        return
    states = s.core_state.copy()
    s.core_state[np.isin(states, (RUNNING, BLOCKED))] = HELD
    try:
        tile.run("idle", limit=MOST_LEFT)
    except NoProgress:  # a word that waits for a core: it waits in the golden model too
        pass
    finally:
        s.core_state[:] = states


class Emulator:
    """One tile, reset before every case; options as those of Tile."""

    def __init__(self, **options: Any) -> None:
        self.tile = Tile(**options)

    def run(self, case: Case, *, seconds: float = SECONDS) -> Outcome:
        """The case's outcome; unfinished when all cores are idle first."""
        tile = self.tile
        tile.reset()
        tile.write(0, case.image)
        tile.state.dst_valid[:] = 1  # programs dump all of Dst, which in the golden model is zeros
        for name, pc in case.starts.items():
            if name != "brisc":
                tile.core[name].set_reset_pc(pc)
            tile.core[name].release()
        return outcome(tile, lambda: tile.run(list(case.until), timeout_s=seconds), _KINDS)


EQUAL, BOTH_REFUSE, ALONE, DIFFERENT = "equal", "both refuse", "no second opinion", "different"
NOT_DONE = (
    *("UnsupportedFunctionality", "UnimplementedFunctionality"),
    *("UntestedFunctionality", "MissingSpecification"),
)
_SHOWN = 8  # differing words that a report names


@dataclass(frozen=True)
class Pair:
    """The outcomes of one case on both models."""

    bhemu: Outcome
    ttsim: Outcome

    @property
    def verdict(self) -> str:
        """See the module's text."""
        if self.bhemu.done and self.ttsim.done:
            return EQUAL if self.words.size == 0 else DIFFERENT
        if self.bhemu.kind == self.ttsim.kind:
            return BOTH_REFUSE
        # Unfinished: bhemu models a wait whose condition this program never meets.
        models = self.bhemu.kind in ("done", "unfinished")
        return ALONE if models and self.ttsim.category in NOT_DONE else DIFFERENT

    @property
    def words(self) -> npt.NDArray[np.int64]:
        """L1 addresses of the words that differ; empty unless both finished."""
        if self.bhemu.l1 is None or self.ttsim.l1 is None:
            return np.zeros(0, np.int64)
        ours, theirs = self.bhemu.l1.view(np.uint32), self.ttsim.l1.view(np.uint32)
        return 4 * np.flatnonzero(ours != theirs)


class Judge:
    """Both models, ready to run cases."""

    def __init__(self, library: Library, reference: str = "ttsim", **options: Any) -> None:
        """options: more of those of Tile, for bhemu's runs."""
        self.library = library
        self.reference = reference
        self.emulator = Emulator(reference=reference, **options)

    def pair(self, case: Case) -> Pair:
        """Run the case on both."""
        return Pair(bhemu=self.emulator.run(case), ttsim=self.library.run(case))


@dataclass(frozen=True)
class Difference:
    """What a user reads about one case on both models."""

    name: str
    pair: Pair
    lines: tuple[str, ...]
    step: str = ""
    program: tuple[str, ...] = ()
    mnemonic: str = ""

    @property
    def verdict(self) -> str:
        """As of the pair."""
        return self.pair.verdict

    def as_dict(self) -> dict[str, object]:
        """JSON-ready values."""
        return {
            "name": self.name,
            "bhemu": self.pair.bhemu.as_dict(),
            "ttsim": self.pair.ttsim.as_dict(),
            "differing_words": int(self.pair.words.size),
            "first": list(self.lines),
            "instruction": self.step,
            "program": list(self.program),
            "verdict": self.verdict,
        }


def describe(pair: Pair, explain: Callable[[int], str]) -> tuple[str, ...]:
    """One line per differing word, at most eight; or how the runs ended."""
    images = [one.l1.view(np.uint32) for one in (pair.bhemu, pair.ttsim) if one.l1 is not None]
    if len(images) < 2:
        return (f"bhemu: {pair.bhemu}", f"ttsim: {pair.ttsim}")
    lines = []
    for address in pair.words[:_SHOWN]:
        ours, theirs = (int(words[address >> 2]) for words in images)
        halves = [h for h in (0, 2) if (ours ^ theirs) >> 8 * h & 0xFFFF]
        where = explain(int(address) + halves[0])
        lines.append(f"{where}: bhemu {ours:08x} ttsim {theirs:08x}")
    return tuple(lines)
