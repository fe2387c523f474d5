"""Samples of the rows: alone, or alternating with the golden model on the same L1 image.

One after the other in this process, with --formats too: rates that are taken side by side would
share the processor's caches and clock, so that no figure could be compared with another run's.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from bhemu.bench.rows import Benchmark, benchmarks
from bhemu.errors import InputError, Internal
from bhemu.machine.tile import Tile
from bhemu.oracle import generators
from bhemu.oracle.case import Case
from bhemu.oracle.libttsim import Library
from bhemu.program.schema import ENGINES

_SAMPLES = 5
_SAMPLE_SECONDS = 0.3  # a shorter run is repeated until its sample is as long
_CLOCKS = 1_000_000_000


@dataclass(frozen=True)
class Row:
    """Medians of `samples` rates of one engine; `ttsim`, `ratio` are None without a comparison.

    `ratio` is the median of the ratios of the samples, bhemu's rate over ttsim's.
    """

    name: str
    unit: str
    rate: float
    low: float
    high: float
    samples: int
    engine: str
    ttsim: float | None = None
    ratio: float | None = None

    def as_dict(self) -> dict[str, object]:
        """JSON form; `bhemu` is the median rate."""
        figures = {"name": self.name, "engine": self.engine, "unit": self.unit, "bhemu": self.rate}
        return {**figures, "ttsim": self.ttsim, "ratio": self.ratio, "samples": self.samples}


def select(elfs: Path, names: tuple[str, ...], formats: bool = False) -> list[Benchmark]:
    """The standard rows, those of the formats, or the named ones; InputError for another name."""
    standard = benchmarks(elfs)
    if formats and not names:
        return sweep()
    rows = {b.name: b for b in standard}
    if any(n not in rows for n in names) and generators.present():
        rows |= {b.name: b for b in sweep()}
    if unknown := [n for n in names if n not in rows]:
        known = ", ".join(b.name for b in standard)
        hint = f"known: {known}; and rows such as unpack:bf16-bf16:SrcA, which --formats measures"
        raise InputError(f"no benchmark {', '.join(unknown)}", hint=hint)
    return [b for b in rows.values() if b.name in names or not names]


def sweep() -> list[Benchmark]:
    """The rows of the formats; InputError when bhemu runs without its source checkout."""
    rows: list[Benchmark] = generators.load("format_benchmarks").sweep()
    return rows


def load(case: Case, **options: Any) -> Tile:
    """A tile with the case's image, its cores released."""
    tile = Tile(**options)
    tile.write(0, case.image)
    for name, pc in case.starts.items():
        tile.core[name].set_reset_pc(pc)
        tile.core[name].release()
    return tile


def run_once(case: Case, name: str, engine: str | None = None) -> tuple[float, Tile]:
    """(seconds from the release of the cores to the done words, the tile)."""
    tile = load(case, engine=engine)
    return seconds_of(tile, case, name), tile


def seconds_of(tile: Tile, case: Case, name: str) -> float:
    """How long a loaded tile runs to the done words."""
    begin = time.perf_counter()
    stop = tile.run(list(case.until), timeout_s=60)
    seconds = time.perf_counter() - begin
    if stop.reason != "until":
        raise Internal(f"benchmark {name} ended by {stop.reason}")
    return seconds


def _sample(case: Case, name: str, engine: str) -> tuple[float, Tile]:
    """Mean seconds of a run, over as many runs as a sample takes."""
    total, runs = 0.0, 0
    while total < _SAMPLE_SECONDS:
        seconds, tile = run_once(case, name, engine)
        total, runs = total + seconds, runs + 1
    return total / runs, tile


def _golden(library: Library, case: Case, name: str, l1: Any) -> float:
    """Seconds of one run on the golden model; its bytes must be those of `l1`."""
    outcome = library.run(case, clocks=_CLOCKS)
    if outcome.l1 is None:
        raise Internal(f"benchmark {name} on ttsim: {outcome}")
    if not np.array_equal(outcome.l1, l1):
        raise Internal(f"benchmark {name}: L1 differs from ttsim's")
    return outcome.seconds


def measure(
    benchmark: Benchmark, library: Library | None, engines: Sequence[str], samples: int = _SAMPLES
) -> tuple[Row, ...]:
    """One row per engine: a warm-up run (compilation, translation), then samples in turns."""
    case, name = benchmark.case(), benchmark.name
    for engine in engines:
        run_once(case, name, engine)
    rates: dict[str, list[float]] = {engine: [] for engine in engines}
    golden: list[float] = []
    for _ in range(samples):
        for engine in engines:
            seconds, tile = _sample(case, name, engine)
            rates[engine].append(benchmark.count / seconds * benchmark.scale)
        if library is not None and benchmark.compared:
            seconds = _golden(library, case, name, tile.l1)
            golden.append(benchmark.count / seconds * benchmark.scale)
    return tuple(_row(benchmark, engine, rates[engine], golden) for engine in engines)


def _row(benchmark: Benchmark, engine: str, rates: list[float], golden: list[float]) -> Row:
    ratios = [ours / theirs for ours, theirs in zip(rates, golden, strict=False)]
    figures = (median(rates), min(rates), max(rates), len(rates))
    return Row(
        *(benchmark.name, benchmark.unit, *figures, engine),
        ttsim=median(golden) if golden else None,
        ratio=median(ratios) if ratios else None,
    )


def run(
    elfs: Path,
    names: tuple[str, ...] = (),
    library: Library | None = None,
    formats: bool = False,
    engines: Sequence[str] = ENGINES[:1],
) -> Iterator[tuple[Row, ...]]:
    """The rows of each benchmark, one per engine; benchmarks as `select` gives them."""
    chosen = select(elfs, names, formats)  # an unknown name is said before anything runs
    return (measure(benchmark, library, engines) for benchmark in chosen)
