"""The rows of `bhemu bench`, how each is measured, and where its time goes.

One after the other in this process, with --formats too: rates that are taken side by side would
share the processor's caches and clock, so that no figure could be compared with another run's.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from bhemu import memmap
from bhemu.errors import InputError, Internal
from bhemu.jit import build
from bhemu.jit.subset import JIT
from bhemu.machine.tile import Tile
from bhemu.oracle import programs
from bhemu.oracle.libttsim import DONE, TRISC_STARTS, Case, Library
from bhemu.program.schema import ENGINES
from bhemu.riscv.assembly import (
    A0,
    A1,
    A2,
    PARK,
    PUSH,
    T1,
    ZERO,
    addi,
    bne,
    branch,
    code,
    li,
    lw,
    sw,
    ttinsn,
)
from bhemu.tensix import compiled
from bhemu.tensix.insn import assemble, instructions
from bhemu.tensix.mmio import REMOTE_DEST_BUF_SIZE

# The programs that are measured, each an L1 image with a fixed count of work.
#
# Every row ends with a done word, so that the same image runs on the golden model. Repetitions are
# chosen so that the golden model needs some tenths of a second for each.

_START = TRISC_STARTS["trisc0"]
_DONE = DONE[0]
_THREAD_SYNC = memmap.PC_BUF_BASE + 4  # a load waits until the thread's words are executed
_OPERAND_AT, _OPERANDS = 0x40000, 0x80000  # bytes of random bf16
_MVMUL, _ELWADD, _SFPMAD, _CHAIN, _UNPACK, _PACK = range(6)  # firmware/bench/args.h
_ROUNDS = 8
_RECEIVED = 4 * REMOTE_DEST_BUF_SIZE
_BLTU = 6


@dataclass(frozen=True)
class Benchmark:
    """`count` units of work per run of `case()`; rates are given in `unit` = 1 / `scale`.

    `compared`: the golden model can run it too.
    """

    name: str
    unit: str
    scale: float
    count: int
    case: Callable[[], Case]
    what: str
    compared: bool = True


def _loop(setup: list[int], body: list[int], times: int) -> Case:
    """TRISC0 repeats a body, waits for its Tensix words and sets the done word."""
    back = -4 * (len(body) + 1)
    wait = [*li(A1, _THREAD_SYNC), sw(ZERO, A1), lw(T1, A1), addi(T1, T1, 0)]
    done = [*li(A1, _DONE[0]), *li(A2, _DONE[1]), sw(A2, A1)]
    program = code(
        li(A0, times), setup, body, addi(A0, A0, -1), bne(A0, ZERO, back), wait, done, PARK
    )
    return Case(bytes(_START) + program, {"trisc0": _START}, (_DONE,))


def _riscv(times: int) -> Case:
    return _loop(li(A1, 0x8000), [lw(T1, A1), addi(T1, T1, 1), sw(T1, A1)], times)


def _push_store(times: int) -> Case:
    word = assemble("SETC16", setc16_reg=67)
    return _loop([*li(A1, PUSH), *li(A2, word)], [sw(A2, A1)] * 64, times)


def _push_ttinsn(times: int) -> Case:
    return _loop([], [ttinsn(assemble("SETC16", setc16_reg=67))] * 64, times)


def _cold(words: int) -> Case:
    """Straight-line code: every instruction is executed once."""
    done = [*li(A1, _DONE[0]), *li(A2, _DONE[1]), sw(A2, A1)]
    program = code([addi(A0, A0, 1)] * words, done, PARK)
    return Case(bytes(_START) + program, {"trisc0": _START}, (_DONE,))


def _polling(time: int) -> Case:
    """brisc waits for the wall clock, the others poll L1 and registers; then the done word."""
    clock, until = memmap.DEBUG_BASE + memmap.RISCV_DEBUG_REG_WALL_CLOCK_0, li(A2, time)
    wait = [*li(A1, clock), *until, lw(T1, A1), branch(_BLTU, T1, A2, -4)]
    texts = {"brisc": code(wait, li(A1, _DONE[0]), li(A2, _DONE[1]), sw(A2, A1), PARK)}
    polled = (
        0x8000,
        memmap.OVERLAY_BASE + _RECEIVED,
        memmap.LOCAL_BASE,
        memmap.OVERLAY_BASE + 0x1000 + _RECEIVED,
    )
    for core, address in zip(memmap.CORE_NAMES[1:], polled, strict=True):
        texts[core] = code(li(A1, address), lw(T1, A1), bne(A1, ZERO, -4))
    starts = {core: 0x1000 * i for i, core in enumerate(memmap.CORE_NAMES)}
    image = b"".join(text.ljust(0x1000, b"\0") for text in texts.values())
    return Case(image, starts, (_DONE,))


def _kernel(folder: Path, *arguments: int) -> Case:
    """A kernel of elfs/ with its runtime arguments; operands are normally distributed bf16."""
    tile = Tile()
    for name in ("brisc", "trisc0", "trisc1", "trisc2"):
        image = tile.core[name].load_elf(folder / f"{name}.elf")
    at = image.symbols.address("runtime_args")
    for i, value in enumerate(arguments):
        tile.write32(at + 4 * i, value)
    values = np.random.default_rng(0).standard_normal(_OPERANDS // 2, np.float32)
    tile.write(_OPERAND_AT, (values.view(np.uint32) >> 16).astype(np.uint16).tobytes())
    return Case(tile.l1.tobytes(), {"brisc": 0}, (_DONE,))


def _unit(elfs: Path, case: int, repeat: int) -> Callable[[], Case]:
    """One unit of the coprocessor by elfs/bench: `repeat` times in each of the rounds."""
    buffers = (_OPERAND_AT, 0x60000, 0x80000)
    return partial(_kernel, elfs / "bench", case, _ROUNDS, repeat, *buffers)


_OF_CORES = (
    Benchmark(
        *("riscv", "MIPS", 1e-6, 5 * 400_000, partial(_riscv, 400_000)),
        "one core, loop of lw, addi, sw, addi, bne on L1",
    ),
    Benchmark(
        *("push_store", "M/s", 1e-6, 64 * 60_000, partial(_push_store, 60_000)),
        "SETC16 words pushed by stores to 0xFFE40000, executed",
        compared=False,  # the golden model's queue overflows
    ),
    Benchmark(
        *("push_ttinsn", "M/s", 1e-6, 64 * 150_000, partial(_push_ttinsn, 150_000)),
        "SETC16 words as `.ttinsn`, executed",
        compared=False,  # nor does it have that register
    ),
    Benchmark(
        *("cold", "MIPS", 1e-6, 250_000, partial(_cold, 250_000)),
        "one core, straight-line code of 1 MB",
    ),
    Benchmark(
        *("polling", "M/s", 1e-6, 20_000_000, partial(_polling, 20_000_000)),
        "clock units while one core polls the clock, four poll L1, local memory and streams",
        compared=False,  # its clock counts something else
    ),
)


def benchmarks(elfs: Path) -> tuple[Benchmark, ...]:
    """All rows, one table; `elfs` is the folder that holds add1/, bench/ and matmul/."""
    tiles, (m, k, n) = 256, (8, 16, 8)
    add1 = partial(_kernel, elfs / "add1", tiles, 0x3F800000, _OPERAND_AT, 0xC0000)
    matmul = partial(_kernel, elfs / "matmul", m, k, n)
    buffers = (_OPERAND_AT, 0x80000, 0xC0000)
    return (
        *_OF_CORES,
        Benchmark(
            *("mvmul", "k/s", 1e-3, _ROUNDS * 16 * 800, _unit(elfs, _MVMUL, 800)),
            "MVMUL of one phase, bf16, played from the replay buffer",
        ),
        Benchmark(
            *("elwadd", "k/s", 1e-3, _ROUNDS * 8 * 3000, _unit(elfs, _ELWADD, 3000)),
            "ELWADD of 8 rows, bf16, played from the replay buffer",
        ),
        Benchmark(
            *("sfpmad", "M/s", 1e-6, _ROUNDS * 32 * 4000, _unit(elfs, _SFPMAD, 4000)),
            "SFPMAD of 32 lanes in four independent sums",
        ),
        Benchmark(
            *("sfpu_chain", "k tiles/s", 1e-3, _ROUNDS * 128, _unit(elfs, _CHAIN, 128)),
            "a tile through 30 vector instructions, 32 datums at a time: load, polynomial, exponent"
            " and mantissa, branch, store",
        ),
        Benchmark(
            *("unpack", "k tiles/s", 1e-3, _ROUNDS * 2 * 3000, _unit(elfs, _UNPACK, 3000)),
            "UNPACR of whole 32x32 bf16 tiles to SrcA and SrcB, with the handshakes of a kernel",
        ),
        Benchmark(
            *("pack", "k tiles/s", 1e-3, _ROUNDS * 4000, _unit(elfs, _PACK, 4000)),
            "16 PACR for a 32x32 bf16 tile",
        ),
        Benchmark(
            *("add1", "k tiles/s", 1e-3, tiles, add1),
            "elfs/add1 over 256 tiles: unpack, add on the vector unit, pack",
        ),
        Benchmark(
            *("matmul_hifi4", "k products/s", 1e-3, m * k * n, partial(matmul, 4, *buffers)),
            "elfs/matmul, 8 x 16 x 8 tiles: products of two 32x32 bf16 tiles, four phases",
        ),
        Benchmark(
            *("matmul_lofi", "k products/s", 1e-3, m * k * n, partial(matmul, 1, *buffers)),
            "the same, one phase",
        ),
    )


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
    if any(n not in rows for n in names) and programs.present():
        rows |= {b.name: b for b in sweep()}
    if unknown := [n for n in names if n not in rows]:
        known = ", ".join(b.name for b in standard)
        hint = f"known: {known}; and rows such as unpack:bf16-bf16:SrcA, which --formats measures"
        raise InputError(f"no benchmark {', '.join(unknown)}", hint=hint)
    return [b for b in rows.values() if b.name in names or not names]


def sweep() -> list[Benchmark]:
    """The rows of the formats; InputError when bhemu runs without its source checkout."""
    rows: list[Benchmark] = programs.load("format_benchmarks").sweep()
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
    if stop.reason == "interrupt":
        raise KeyboardInterrupt
    if stop.reason != "until":
        raise Internal(f"benchmark {name} ended by {stop.reason}")
    return seconds


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
            total, runs = 0.0, 0
            while total < _SAMPLE_SECONDS:
                seconds, tile = run_once(case, name, engine)
                total, runs = total + seconds, runs + 1
            rates[engine].append(benchmark.count * runs / total * benchmark.scale)
        if library is not None and benchmark.compared:
            # Seconds of one run on the golden model; its bytes must be those of `l1`
            l1 = tile.l1
            outcome = library.run(case, clocks=_CLOCKS)
            if outcome.l1 is None:
                raise Internal(f"benchmark {name} on ttsim: {outcome}")
            if not np.array_equal(outcome.l1, l1):
                raise Internal(f"benchmark {name}: L1 differs from ttsim's")
            seconds = outcome.seconds
            golden.append(benchmark.count / seconds * benchmark.scale)
    theirs = median(golden) if golden else None
    rows = []
    for engine, ours in rates.items():
        ratios = [a / b for a, b in zip(ours, golden, strict=False)]
        figures = (median(ours), min(ours), max(ours), len(ours))
        ratio = median(ratios) if ratios else None
        rows.append(Row(name, benchmark.unit, *figures, engine, theirs, ratio))
    return tuple(rows)


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


# Where the time of a benchmark goes: per instruction, RISC-V cores, devices and the rest.

_PARTS = {
    compiled.RUN_CORE: "RISC-V cores",
    compiled.RUN_TENSIX: "coprocessor, called by a full FIFO",
    compiled.RUN_THREAD: "coprocessor, before an access of its core",
    compiled.BUS_READ: "device loads",
    compiled.BUS_WRITE: "device stores",
    compiled.OUTSIDE: "rounds, front end, wait gate",
}


@dataclass(frozen=True)
class Share:
    """`seconds` of the run were spent in `part`, in `calls` calls."""

    part: str
    seconds: float
    calls: int


def shares(benchmark: Benchmark, engine: str) -> Iterator[Share]:
    """The parts of one run, longest first; InputError in the interpreted mode."""
    if not JIT:
        raise InputError("NUMBA_DISABLE_JIT is set: there is nothing to profile", hint="unset it")
    case = benchmark.case()
    _, warm = run_once(case, benchmark.name, engine)
    used = [
        op
        for op in instructions()
        if warm.state.op_count[:, op].any() and instructions()[op].execute
    ]
    tile = load(case, engine=engine)
    s = tile.state
    compiled.start(s, {op: build.load(compiled.entry(op)).address for op in used})
    seconds = seconds_of(tile, case, benchmark.name)
    total = int(s.profile_ticks.sum())
    for part in s.profile_ticks.argsort()[::-1]:
        if ticks := int(s.profile_ticks[part]):
            name = instructions()[int(part)].name if part < 256 else _PARTS[int(part)]
            yield Share(name, ticks / total * seconds, int(s.profile_calls[part]))
