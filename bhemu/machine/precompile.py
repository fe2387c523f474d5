"""Compiles in other processes what a program will need next, while this one compiles the rest.

This process begins with the loop and comes to loads of the device bus last; the others begin with
stores to the bus and go on with the program's own instructions, then with the device windows that
it seems to access.  An entry that another process compiles already is left to it (cache.alone);
what needs it waits for it.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bhemu.devices.bus import address_map, entries
from bhemu.jit import cache
from bhemu.jit.build import Entry, expect, is_there, load, yield_to_others
from bhemu.jit.subset import JIT
from bhemu.machine.backend import BUS, CSR, OBSERVED, TIMED
from bhemu.noc.network import ENTRIES as CHIP
from bhemu.program.loader import Image, block, read_elf, relocated
from bhemu.program.schema import ENGINES
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
    for segment in (segment for image in images for segment in image.segments):
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
    pages: set[int] = set()
    for words in _code(images):
        pages.update((words[words & 0x7F == _LUI] >> 12).tolist())
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


if __name__ == "__main__":
    main(sys.argv[1:])


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
