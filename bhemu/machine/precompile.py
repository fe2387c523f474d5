"""What a run will need of compiled code, and the processes that compile it.

What a program will need next is compiled while this process compiles the rest. It begins with the
loop and comes to loads of the device bus last; the others begin with stores to the bus and go on
with the program's own instructions, then with the device windows that it seems to access. An entry
that another process compiles already is left to it (cache.alone); what needs it waits for it.
"""

import atexit
import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bhemu.devices.bus import address_map, entries
from bhemu.jit import cache, interpreted
from bhemu.jit.build import Entry, expect, image, is_kept, is_there, load, yield_to_others
from bhemu.jit.subset import JIT
from bhemu.machine.backend import BUS, CSR, OBSERVED, TIMED, core
from bhemu.noc.network import ENTRIES as CHIP
from bhemu.program.loader import Image, block, read_elf, relocated
from bhemu.program.options import ENGINES
from bhemu.program.specs import Program
from bhemu.riscv.engine import entries as engine_entries
from bhemu.tensix import compiled, insn
from bhemu.tensix.compiled import entry


def every_entry() -> Iterator[Entry]:
    """Every entry: loop, the engines, devices, instructions, profiling."""
    yield from compiled.LOOP.values()
    for engine in ENGINES:
        yield from engine_entries(engine).values()
    yield from BUS.values()
    yield from (CSR, TIMED, OBSERVED)
    yield from entries.performed()
    yield from CHIP.values()
    yield from (compiled.entry(opcode) for opcode, one in compiled.known().items() if one.executes)
    yield from map(compiled.second_entry, insn.NAMES)
    yield compiled.WORD
    yield from compiled.WRAPPERS.values()


_running: list[Any] = []
_MOST = 3  # processes beside this one
_LUI = 0x37
_LONGEST = ("matrix", "pack", "unpack", "vector")  # units whose entries take longest to compile


def longest_first(words: Iterable[int]) -> list[int]:
    """Opcodes in the order of how long their entries take to compile."""
    known, order = compiled.known(), {unit: i for i, unit in enumerate(_LONGEST)}
    return sorted(words, key=lambda op: (order.get(known[op].unit, len(order)), op))


def _code(images: Iterable[Image]) -> Iterator[npt.NDArray[np.uint32]]:
    """The words of every executable segment."""
    for segment in (segment for one in images for segment in one.segments):
        if segment.executable:
            yield np.frombuffer(segment.data, np.uint32, len(segment.data) // 4)


def opcodes(images: Iterable[Image]) -> set[int]:
    """Executable opcodes whose words ELFs seem to hold: as `.ttinsn` or in the upper bits of lui.

    A guess, for what is worth compiling ahead and nothing else.
    """
    found: set[int] = set()
    for words in _code(images):
        rotated = words[words & 3 != 3]
        pushed = rotated >> 26 | (rotated & 3) << 6
        built = words[words & 0x7F == _LUI] >> 24
        found.update(pushed.tolist(), built.tolist())
    known = compiled.known()
    return {opcode for opcode in found if opcode in known and known[opcode].executes}


def accesses(images: Iterable[Image]) -> dict[str, Entry]:
    """By name, the entries of the device windows whose addresses ELFs seem to build by lui."""
    built = (words[words & 0x7F == _LUI] >> 12 for words in _code(images))
    pages = {page for found in built for page in found.tolist()}
    windows = {window for page in pages if (window := address_map.find(page << 12))}
    return {entry.name: entry for window in windows for entry in entries.of(window)}


def missing(needed: Iterable[int], images: Iterable[Image] = ()) -> list[str]:
    """What the cache lacks of the bus and these opcodes, what takes longest first.

    Without the bus it lacks the device windows too: then those that `images` seem to access follow.
    """
    if not JIT:
        return []
    lacking = longest_first(op for op in needed if not is_there(entry(op)))
    names = [compiled.known()[op].name for op in lacking]
    expect(map(entry, lacking))
    if is_there(BUS["bus_write"]):
        return names
    windows = accesses(images)
    expect((*BUS.values(), *windows.values()))
    return ["bus_write", *names, "bus_read", *sorted(windows)]


def processes_beside() -> int:
    """How many processes compile beside this one: one for each processor to spare."""
    return min(len(os.sched_getaffinity(0)) - 1, _MOST)


def start(parts: Sequence[str]) -> None:
    """Compile the named parts in as many processes as there are processors to spare.

    Does nothing for fewer than two parts. When this process has ended the others finish the part
    they are at, so that a guess that was wrong is not begun again in every run.
    """
    spare = min(processes_beside(), len(parts) - 1)
    if spare < 1:
        return
    import subprocess  # takes milliseconds, which runs with kept code do not need

    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    for i in range(spare):
        command = [sys.executable, "-P", "-m", __name__, *parts[i::spare]]
        none = subprocess.DEVNULL
        _running.append(
            subprocess.Popen(command, env=environment, stdin=none, stdout=none, stderr=none)
        )


def main(parts: Sequence[str]) -> None:
    """Compile these parts, but those that others compile already, while the parent lives."""
    yield_to_others()
    by_name = {one.name: opcode for opcode, one in compiled.known().items()}
    ways = BUS | {way.name: way for way in entries.performed()}
    parent = os.getppid()
    for part in parts:
        if os.getppid() != parent:
            return
        try:
            load(ways[part] if part in ways else entry(by_name[part]))
        except cache.BusyError:
            continue


class ElfCache:
    """ELFs, each read once, and kernels moved to each place once; kept, it serves many launches."""

    def __init__(self) -> None:
        self._images: dict[Path, Image] = {}
        self._moved: dict[tuple[Path, int], bytes] = {}

    def image(self, path: Path) -> Image:
        """The checked ELF at `path`."""
        if path not in self._images:
            self._images[path] = read_elf(path)
        return self._images[path]

    def read(self, paths: Iterable[Path]) -> None:
        """Read and check the ELFs at `paths`; compiling what new ones use may begin."""
        new = [self.image(path) for path in paths if path not in self._images]
        if new:
            start(missing(opcodes(new), new))

    def moved(self, image: Image, offset: int) -> bytes:
        """What goes to L1 of an ELF that lies `offset` bytes from where it was linked."""
        key = (image.path, offset)
        if key not in self._moved:
            self._moved[key] = block(relocated(image, offset))[1]
        return self._moved[key]


# What a run seems to need of compiled code, and the processes that compile it beside the run.
#
# A run of a command that begins before its code is compiled interprets the same sources
# (jit/interpreted.py), with these processes beside it. They compile what the run needs, the loop
# first, keep each entry when it is finished, and end with their parent, however it ends: they watch
# the pipe of their standard input. The run is over to compiled code when one of them has found that
# all is kept (cli/run.py).


_NICE = 8  # on a single processor the run keeps five sixths of it
_LOOK = 0.1  # seconds between two looks at the processes
_OF_THREADS = ("open_round", "run_tiles")
_ALL = "--all"  # of the processes that compile beside a run


def needed(program: Program, elfs: ElfCache) -> list[Entry]:
    """The entries that a run of `program` seems to need: those of every run, then its ELFs'.

    InputError for an ELF that cannot be read.
    """
    from bhemu.machine.tile import engine_name  # whose imports the processes do without

    given = program.options
    timed = given.get("timing", "off") != "off" or given.get("late", "off") != "off"
    engine = engine_name(given.get("engine"), ENGINES[0 if program.is_alone else 1], timed)
    found = list(core(engine))
    if timed:
        found[found.index(compiled.LOOP["rounds"])] = TIMED
    if not program.is_alone:
        threads = given.get("threads", 1) > 1
        unused = ("run_rounds",) if threads else _OF_THREADS
        found += [entry for name, entry in CHIP.items() if name not in unused]
    firmware = () if program.firmware is None else program.firmware.elfs.values()
    kernels = (one.elf for part in program.placed() for one in part.cores.values() if one.elf)
    images = [elfs.image(path) for path in dict.fromkeys((*kernels, *firmware))]
    words = longest_first(opcodes(images))
    return [*found, *map(compiled.entry, words), *accesses(images).values()]


def used(machine: Any) -> set[str]:
    """The entries that the interpreted run of a machine has come to, by Entry.path."""
    counts = sum(tile.state.op_count.sum(0) for tile in machine.tiles_made())
    executed = {op for op, one in compiled.known().items() if counts[op] and one.executes}
    return {compiled.entry(op).path for op in executed} | interpreted.used


class Compilers:
    """The processes that compile `parts` (Entry.path, the first one first) beside this one."""

    def __init__(self, parts: Sequence[str]) -> None:
        import subprocess  # takes milliseconds, which runs with kept code do not need

        self.parts = parts
        self._done = 0
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        self._running = [
            subprocess.Popen(
                [sys.executable, "-P", "-m", __name__, _ALL, *parts],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                process_group=0,  # a Ctrl-C is the run's; another session would undo `nice`
            )
            for _ in range(max(processes_beside(), 1))
        ]
        for process in self._running:
            assert process.stdout is not None
            os.set_blocking(process.stdout.fileno(), False)
        atexit.register(self.stop)

    @property
    def compiled_count(self) -> int:
        """How many parts they have compiled."""
        for process in self._running:
            assert process.stdout is not None
            with contextlib.suppress(BlockingIOError, ValueError):  # ValueError: it is stopped
                self._done += len(os.read(process.stdout.fileno(), 1 << 10))
        return self._done

    @property
    def ended(self) -> bool | None:
        """True when all parts are kept, False when they never will be, None while it goes on."""
        codes = [process.poll() for process in self._running]
        if 0 in codes:
            return True
        return None if None in codes else False

    def stop(self) -> None:
        """End them: what they have finished is kept."""
        for process in self._running:
            process.kill()
            process.communicate()
        atexit.unregister(self.stop)


class Watch:
    """Lets `parts` be compiled, then what else a run has come to, until that is all."""

    def __init__(self, parts: Iterable[str]) -> None:
        self._compilers = Compilers(list(parts))
        self._known = set(self._compilers.parts)
        self._next_look, self._before, self._ready = 0.0, 0, False
        self.failed = False

    def is_compiled(self, machine: Any) -> bool:
        """Whether all is that the run of `machine` has come to; it looks now and then."""
        if self._ready or time.monotonic() < self._next_look:
            return self._ready
        self._next_look = time.monotonic() + _LOOK
        ended = self._compilers.ended
        if ended is not None:
            done = self._compilers.compiled_count
            self._compilers.stop()
            self.failed = not ended
            more = used(machine) - self._known if ended else set()
            self._ready = ended and not more
            if more:
                self._known |= more
                self._before += done
                self._compilers = Compilers(sorted(more))
        return self._ready

    def progress_text(self) -> str:
        """The progress of the compilers, for the progress line."""
        done = self._before + self._compilers.compiled_count
        return f"interpreted, {done} of up to {len(self._known)} parts compiled beside it"


def _end_with_parent() -> None:
    os.read(0, 1)  # the parent writes nothing: it has ended
    os._exit(1)


def compile_all(parts: Sequence[str]) -> None:
    """Compile these parts, those that others compile already last; a byte is written for each.

    The exit code is 0 where all of them are kept.
    """
    os.nice(_NICE)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    by_path = {entry.path: entry for entry in every_entry()}
    wanted = [by_path[part] for part in parts]
    left = [entry for entry in wanted if not is_kept(entry)]
    for yields in (True, False):
        yield_to_others(yields)
        for one in tuple(left):
            with contextlib.suppress(cache.BusyError):
                image(one)
                os.write(1, b".")
                left.remove(one)
    sys.exit(not all(map(is_kept, wanted)))


if __name__ == "__main__":
    (compile_all if sys.argv[1:2] == [_ALL] else main)([one for one in sys.argv[1:] if one != _ALL])
