"""Random NoC programs on a libttsim.so and on bhemu: python tests/noc/ttsim_noc.py N [FIRST].

Prints each seed whose memory differs. $BHEMU_TTSIM names the library.
"""

import sys
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

import random_noc as r  # noqa: E402

from bhemu.machine.machine import Chip  # noqa: E402
from bhemu.memmap import L1_SIZE, SOFT_RESET_ALL  # noqa: E402
from bhemu.noc.grid import XY, Grid  # noqa: E402
from bhemu.oracle.libttsim import Library, Simulator, find  # noqa: E402

_SOFT_RESET, _NCRISC_PC, _NCRISC_ENABLE = 0xFFB121B0, 0xFFB12238, 0xFFB1223C
_RUNS = SOFT_RESET_ALL & ~0x800 & ~0x40000
_PORTS = {place.index: place.translated for place in reversed(Grid().places()) if place.kind == 2}
_WINDOW = r.CHUNK * 10

Memory = dict[Any, bytes]


def start(target: Any, made: r.Generator) -> None:
    """Load and release."""
    for xy, parts in made.images.items():
        for at, data in parts.items():
            target.write(*xy, at, data)
    for bank in made.banks:
        target.write(*_PORTS[bank], r.DRAM_SOURCE, made.data)
    for xy in made.images:
        for at, value in ((_NCRISC_PC, r.NCRISC_START), (_NCRISC_ENABLE, 1), (_SOFT_RESET, _RUNS)):
            target.write(*xy, at, value.to_bytes(4, "little"))


def places(made: r.Generator, tiles: list[XY]) -> dict[Any, tuple[XY, int, int]]:
    """What is compared, as coordinate, address and size.

    All of L1 where programs run, elsewhere what multicasts may write; what they wrote to DRAM.
    """
    many = (r.MANY, r.CHUNK * len(made.cores))
    found: dict[Any, tuple[XY, int, int]] = {
        xy: (xy, *((0, L1_SIZE) if xy in made.images else many)) for xy in tiles
    }
    return found | {bank: (_PORTS[bank], r.DRAM_TARGET, _WINDOW) for bank in made.banks}


def collect(target: Any, made: r.Generator, tiles: list[XY]) -> Memory:
    """The bytes of `places`, but for the word that answers of posted atomics may still reach."""
    memory: Memory = {}
    for place, (xy, at, n) in places(made, tiles).items():
        data = bytearray(target.read(*xy, at, n))
        if at == 0:
            data[r.SCRATCH : r.SCRATCH + 4] = bytes(4)
        memory[place] = bytes(data)
    return memory


def check_rest(chip: Chip, made: r.Generator) -> None:
    """Tiles where nothing runs hold zeros but for what multicasts may write."""
    for tile in chip.tiles():
        if tile.xy not in made.images:
            rest = (tile.l1[: r.MANY], tile.l1[r.MANY + r.CHUNK * len(made.cores) :])
            assert not any(part.any() for part in rest), tile.xy


def on_chip(made: r.Generator, *, whole: bool = True, **options: Any) -> tuple[Memory, list[XY]]:
    """The memory at the end on bhemu, and the tiles that anything has touched.

    whole: look at the memory that is not compared, too.
    """
    chip = Chip(**options)
    start(chip, made)
    done = [(xy, r.DONE, r.DONE_WORD) for xy in made.images]
    assert chip.run(done, limit=50_000_000).reason == "until"
    assert chip.run().reason == "idle"  # what is posted arrives
    tiles = [tile.xy for tile in chip.tiles()]
    if whole:
        check_rest(chip, made)
    return collect(chip, made, tiles), tiles


class _OnLibrary:
    """The library with a chip's ways to its memory."""

    def __init__(self, simulator: Simulator) -> None:
        self._simulator = simulator

    def write(self, x: int, y: int, at: int, data: bytes) -> None:
        self._simulator.write(at, data, (x, y))

    def read(self, x: int, y: int, at: int, n: int) -> bytes:
        return self._simulator.read(at, n, (x, y))


def on_ttsim(library: Library, made: r.Generator, tiles: list[XY]) -> Memory:
    """The same on the library, in a process of its own; {} where it stopped."""

    def job(simulator: Simulator) -> bytes | None:
        target = _OnLibrary(simulator)
        start(target, made)
        word = r.DONE_WORD.to_bytes(4, "little")
        for _ in range(100_000):
            simulator.clock(500)
            if all(target.read(*xy, r.DONE, 4) == word for xy in made.images):
                simulator.clock(500)
                return b"".join(collect(target, made, tiles).values())
        return None

    sizes = {place: where[2] for place, where in places(made, tiles).items()}
    outcome = library.do(job, sum(sizes.values()))
    if outcome.l1 is None:
        return {}
    found, at, whole = {}, 0, outcome.l1.tobytes()
    for place, size in sizes.items():
        found[place] = whole[at : at + size]
        at += size
    return found


def differences(library: Library, seed: int, **options: Any) -> list[str]:
    """Places that differ, at most four."""
    made = r.Generator(seed)
    ours, tiles = on_chip(made, **options)
    theirs = on_ttsim(library, made, tiles)
    if not theirs:
        return ["the library stopped"]
    found = []
    for place, data in ours.items():
        for at in range(0, len(data), 4) if data != theirs[place] else ():
            if data[at : at + 4] != theirs[place][at : at + 4]:
                got, want = data[at : at + 4].hex(), theirs[place][at : at + 4].hex()
                found.append(f"{place} {at:#x}: {got}, the library {want}")
                break
    return found[:4]


def main() -> int:
    """How many of the programs differ."""
    count, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    wrong, library = 0, find(None)
    for seed in range(first, first + count):
        found = differences(library, seed, whole=seed % 16 == 0)
        if found:
            wrong += 1
            print(seed, *found, sep="\n  ", flush=True)
    print(f"{count} programs, {wrong} differ")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
