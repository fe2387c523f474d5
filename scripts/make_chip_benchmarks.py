"""Writes docs/benchmarks-chip.md: what a chip costs by its active tiles, in memory and in time.

With $BHEMU_TTSIM, a libttsim.so: also beside it, what both do in the same run.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "e2e")]

import chip_program  # noqa: E402
import noc_program as p  # noqa: E402
import numpy as np  # noqa: E402

from bhemu.launch import Program, waiter  # noqa: E402
from bhemu.machine.machine import Chip  # noqa: E402
from bhemu.metal import (  # noqa: E402
    Grid,
    kernels,
    read_firmware,
)
from bhemu.noc.grid import TILES, XY, tile_at  # noqa: E402
from bhemu.oracle import libttsim, programs  # noqa: E402
from bhemu.riscv.assembly import A0, A1, A2, T1, addi, bne, li, lw, sw  # noqa: E402

TARGET = ROOT / "docs" / "benchmarks-chip.md"
ACTIVE = (1, 4, 16, 64, 140)
_WORK = 2_000_000  # passes of five instructions
_L1, _FAR, _DONE = 0x20000, 0x80000, 0x500
_REPEATS = 3


def _tiles(n: int) -> list[XY]:
    return [tile_at(t * TILES // n) for t in range(n)]


def _loop(body: list[int], times: int) -> list[int]:
    """Repeat a body; the count stands in t1."""
    words = [*li(T1, times)]
    return [*words, *body, addi(T1, T1, -1), bne(T1, 0, -4 * (len(body) + 1))]


def _compute(times: int) -> list[int]:
    """A loop on L1 of five instructions per pass."""
    return [*li(A1, _L1), *_loop([lw(A0, A1), addi(A0, A0, 1), sw(A0, A1)], times)]


def _poll() -> list[int]:
    return [*li(A1, 0x400), *li(A2, 1), lw(A0, A1), bne(A0, A2, -4)]


def _again() -> list[int]:
    """Send what the initiator holds once more, and wait until it takes the next."""
    return [*li(A0, 1), sw(A0, A1, p.CMD), lw(A0, A1, p.CMD), bne(A0, 0, -4)]


def _seconds(make: Callable[[], Chip], run: Callable[[Chip], None]) -> float:
    """Processor time of a run, the best of some: other load hardly changes it."""
    best = float("inf")
    for _ in range(_REPEATS):
        chip = make()
        begin = time.process_time()
        run(chip)
        best = min(best, time.process_time() - begin)
    return best


def _all(chip: Chip) -> None:
    assert chip.run().reason == "idle"


def _working(n: int, others: str) -> float:
    """M instructions/s of one tile that works, among n in all."""

    def make() -> Chip:
        chip = Chip()
        for xy in _tiles(n)[1:]:
            chip.write(*xy, 0, b"\0" * 4)
            if others == "polling":
                p.put(chip, xy, _poll())
        done = [*li(A1, _DONE), *li(A0, 1), sw(A0, A1)]
        p.put(chip, _tiles(n)[0], [*_compute(_WORK), *done])
        return chip

    def run(chip: Chip) -> None:
        assert chip.run([(_tiles(n)[0], _DONE, 1)]).reason == "until"

    return 5 * _WORK / _seconds(make, run) / 1e6


def _both_cores(n: int) -> float:
    """M instructions/s of n tiles, all of which work."""
    times = _WORK // n

    def make() -> Chip:
        chip = Chip()
        for xy in _tiles(n):
            p.put(chip, xy, _compute(times))
        return chip

    return 5 * times * n / _seconds(make, _all) / 1e6


def _transfers(n: int, words: Callable[[XY], list[int]], times: int, size: int) -> float:
    """MB/s that n tiles move, each sending its request `times` times."""

    def make() -> Chip:
        chip = Chip()
        for xy in chip.tile:
            chip.write(*xy, 0, bytes(4))  # it exists
        for xy in _tiles(n):
            p.put(chip, xy, [*words(xy), *_loop(_again(), times - 1)])
        return chip

    return n * times * size / _seconds(make, _all) / 1e6


def _read_dram(xy: XY) -> list[int]:
    bank = p.hi((17, 12 + 3 * (xy[1] % 4)))
    return p.send(p.READ, (0x10000, bank), (_FAR, p.hi(xy)), 2048)


def _write_next(xy: XY) -> list[int]:
    column = xy[0] % 16 + 1 if xy[0] not in (7, 16) else 1
    return p.send(p.WRITE, (_L1, p.hi(xy)), (_FAR, p.hi((column, xy[1]))), 2048)


def _everywhere(xy: XY) -> list[int]:
    box = p.box((1, 2), (16, 11))
    return p.send(p.WRITE | p.MULTICAST, (_L1, p.hi(xy)), (_FAR, box), 2048)


def _resident() -> int:
    """Bytes of memory that this process holds."""
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) << 10


def memory(n: int) -> dict[str, float]:
    """MB of a chip on which n tiles work and write 64 KiB each to L1 and to DRAM."""
    chip = Chip()
    chip.tile[1, 2]
    _all(chip)
    before = _resident()
    for xy in _tiles(n):
        chip.write(*xy, 0x40000, b"\1" * 0x10000)
        chip.write(17, 12, 0x10000 * (xy[0] + 16 * xy[1]), b"\1" * 0x10000)
        p.put(chip, xy, [*_compute(1000), *_write_next(xy)])
    _all(chip)
    return {"grown": (_resident() - before) / 1e6, "whole": _resident() / 1e6}


def _memory_rows() -> list[str]:
    rows = []
    for n in ACTIVE:
        command = [sys.executable, __file__, "--memory", str(n)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found = json.loads(done.stdout)
        rows.append(f"| {n} | {found['grown']:.0f} | {found['whole']:.0f} |")
    return rows


def _rate_rows() -> list[str]:
    rows = {
        "one tile works, no other exists": (_working(1, "idle"), "M instructions/s"),
        "one works, 139 are idle": (_working(140, "idle"), "M instructions/s"),
        "one works, 139 poll a word of L1": (_working(140, "polling"), "M instructions/s"),
        "64 tiles work": (_both_cores(64), "M instructions/s"),
        "64 tiles read 2 KiB from DRAM, again and again": (
            *(_transfers(64, _read_dram, 200, 2048), "MB/s"),
        ),
        "64 tiles write 2 KiB to their neighbours": (
            *(_transfers(64, _write_next, 200, 2048), "MB/s"),
        ),
        "one tile multicasts 2 KiB to 139": (
            *(_transfers(1, _everywhere, 500, 2048 * 139), "MB/s received"),
        ),
    }
    return [f"| {name} | {rate:.0f} | {unit} |" for name, (rate, unit) in rows.items()]


# Beside ttsim


def _booted(tiles: list[Any], chip: Chip | libttsim.Simulator) -> float:
    """Seconds of processor time until our firmware has booted on `tiles`."""
    program = Program.load(ROOT / "elfs" / "add1_chip")
    firmware = read_firmware(program.firmware)
    wait = waiter(chip) if isinstance(chip, Chip) else programs.waiter(chip)
    begin = time.process_time()
    kernels.boot(tiles, firmware, Grid.of(program.chip), wait)
    return time.process_time() - begin


def _boot(library: libttsim.Library) -> tuple[float, float]:
    """Boot of 140 tiles on both."""

    def job(simulator: libttsim.Simulator) -> bytes:
        simulated = [programs.SimulatedTile(simulator, xy) for xy in _tiles(TILES)]
        simulator.seconds = _booted(simulated, simulator)
        return b"\0" * 4

    chip = Chip()
    ours = _booted([chip.tile[xy] for xy in _tiles(TILES)], chip)
    return ours, library.do(job, 4).seconds


def _program(path: Path) -> Callable[[libttsim.Library], tuple[float, float]]:
    """A program on both, which must give the same bytes."""

    def compared(library: libttsim.Library) -> tuple[float, float]:
        verdict = programs.compare_chip(library, Program.load(path))
        assert verdict.verdict == "equal", verdict
        return verdict.pair.bhemu.seconds, verdict.pair.ttsim.seconds

    return compared


def _random(rows: int, columns: int) -> Any:
    bits = np.random.default_rng(rows).standard_normal((rows, columns)).astype(np.float32)
    return (bits.view(np.uint32) & 0xFFFF0000).view(np.float32)


def _beside_rows(library: libttsim.Library, folder: Path) -> list[str]:
    x, nothing = _random(1024, 2048), np.zeros((512, 512), np.float32)
    every, square = "1-16,2-11", "1-10,2-9"
    a, b = _random(512, 512), _random(512, 512)
    rows: dict[str, Callable[[libttsim.Library], tuple[float, float]]] = {
        "boot of 140 tiles": _boot,
        "add1, 2048 pages of bf16 on 140 tiles": _program(
            chip_program.add1(folder / "140", every, x, x + 1)
        ),
        "add1, 2048 pages of bf16 on 64 tiles": _program(
            chip_program.add1(folder / "64", square, x, x + 1)
        ),
        "multicast matmul 512 x 512 x 512 of bf16 on 64 tiles": _program(
            chip_program.matmul(folder / "m", square, (2, 16, 2), a, b, nothing, 4)
        ),
    }
    lines = []
    for name, both in rows.items():
        ours, theirs = map(min, zip(*(both(library) for _ in range(_REPEATS)), strict=True))
        lines.append(f"| {name} | {ours:.3f} | {theirs:.3f} | {theirs / ours:.1f} |")
    return lines


def beside_ttsim() -> list[str]:
    """The table of what both do, in seconds; nothing without a libttsim.so."""
    if libttsim.ENVIRONMENT not in os.environ:
        return []
    with tempfile.TemporaryDirectory() as folder:
        rows = _beside_rows(libttsim.find(None), Path(folder))
    return [
        "",
        "Beside ttsim, in the same run, both on one thread: seconds of processor time from the"
        " release or the go message to the last tile's answer; every byte of L1 and of the outputs"
        " is the same.",
        "",
        "| what runs | bhemu | ttsim | times as fast |",
        "|---|---|---|---|",
        *rows,
    ]


def main() -> None:
    """Measure, and write the page."""
    if sys.argv[1:2] == ["--memory"]:
        print(json.dumps(memory(int(sys.argv[2]))))
        return
    text = "\n".join(
        (
            "<!-- Written by scripts/make_chip_benchmarks.py; do not edit. -->",
            "# Benchmarks of a chip",
            "",
            f"{time.strftime('%Y-%m-%d')}; engine compiled, one thread; rates by processor time.",
            "",
            "Memory by the number of tiles that work; each writes 64 KiB of L1 and of DRAM: MB"
            " beyond what an idle tile needs, and of the whole process with Python and NumPy.",
            "",
            "| active tiles | more MB | whole MB |",
            "|---|---|---|",
            *_memory_rows(),
            "",
            "| what runs | rate | unit |",
            "|---|---|---|",
            *_rate_rows(),
            *beside_ttsim(),
            "",
        )
    )
    TARGET.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
