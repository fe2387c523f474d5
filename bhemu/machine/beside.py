"""What a run seems to need of compiled code, and the processes that compile it beside the run.

A run of a command that begins before its code is compiled interprets the same sources
(jit/interpreted.py), with these processes beside it. They compile what the run needs, the loop
first, keep each entry when it is finished, and end with their parent, however it ends: they watch
the pipe of their standard input. The run is over to compiled code when one of them has found that
all is kept (cli/run.py).
"""

import atexit
import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from typing import Any

from bhemu.jit import cache, interpreted
from bhemu.jit.build import Entry, image, is_kept, yield_to_others
from bhemu.machine.backend import TIMED, core
from bhemu.machine.options import engine_name
from bhemu.machine.precompile import (
    ElfCache,
    accesses,
    every_entry,
    longest_first,
    opcodes,
    processes_beside,
)
from bhemu.noc.network import ENTRIES as CHIP
from bhemu.program.options import ENGINES
from bhemu.program.specs import Program
from bhemu.tensix import compiled

_NICE = 8  # on a single processor the run keeps five sixths of it
_LOOK = 0.1  # seconds between two looks at the processes
_OF_THREADS = ("open_round", "run_tiles")


def needed(program: Program, elfs: ElfCache) -> list[Entry]:
    """The entries that a run of `program` seems to need: those of every run, then its ELFs'.

    InputError for an ELF that cannot be read.
    """
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
                [sys.executable, "-P", "-m", __name__, *parts],
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


def main(parts: Sequence[str]) -> None:
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
        for entry in tuple(left):
            with contextlib.suppress(cache.BusyError):
                image(entry)
                os.write(1, b".")
                left.remove(entry)
    sys.exit(not all(map(is_kept, wanted)))


if __name__ == "__main__":
    main(sys.argv[1:])
