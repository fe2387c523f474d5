"""Benchmarks: what a tile does per second, each row with a fixed program and a fixed count."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

from bhemu.errors import InputError, Internal
from bhemu.riscv.asm import A0, A1, A2, PARK, PUSH, T1, ZERO, addi, bne, code, li, lw, sw, ttinsn
from bhemu.tensix.insn import assemble
from bhemu.tile import Tile

_START = 0x10000
_SAMPLES = 5
_OPERAND_AT, _OPERANDS = 0x40000, 0x80000  # bytes of random operands


@dataclass(frozen=True)
class Row:
    """One figure: median rate of `samples` runs, in `unit`."""

    name: str
    unit: str
    rate: float
    low: float
    high: float
    samples: int

    def as_dict(self) -> dict[str, object]:
        """JSON form; `bhemu` is the median rate."""
        return {"name": self.name, "unit": self.unit, "bhemu": self.rate, "samples": self.samples}


@dataclass(frozen=True)
class Benchmark:
    """`prepare` gives a loaded tile; `count` units of work are done when it is idle."""

    name: str
    unit: str
    scale: float
    count: int
    prepare: Callable[[], Tile]


def _core_program(program: bytes) -> Tile:
    tile = Tile()
    tile.write(_START, program)
    tile.core["trisc0"].set_reset_pc(_START)
    tile.core["trisc0"].release()
    return tile


def _loop(setup: list[int], body: list[int], times: int) -> bytes:
    back = -4 * (len(body) + 1)
    return code(li(A0, times), setup, body, addi(A0, A0, -1), bne(A0, ZERO, back), PARK)


def _riscv() -> Tile:
    """lw, addi, sw, addi, bne on L1."""
    return _core_program(
        _loop(li(A1, 0x8000), [lw(T1, A1), addi(T1, T1, 1), sw(T1, A1)], 3_000_000)
    )


def _push_store() -> Tile:
    word = assemble("SETC16", setc16_reg=67)
    setup = [*li(A1, PUSH), *li(A2, word)]
    return _core_program(_loop(setup, [sw(A2, A1)] * 64, 60_000))


def _push_ttinsn() -> Tile:
    word = ttinsn(assemble("SETC16", setc16_reg=67))
    return _core_program(_loop([], [word] * 64, 150_000))


def _kernel(folder: Path, arguments: tuple[int, ...]) -> Callable[[], Tile]:
    """A three-thread kernel of elfs/ with its runtime arguments; operands are random bf16."""

    def prepare() -> Tile:
        tile = Tile()
        for name in ("brisc", "trisc0", "trisc1", "trisc2"):
            core = tile.core[name]
            image = core.load_elf(folder / f"{name}.elf")
            if name != "brisc":
                core.set_reset_pc(image.entry)
        at = image.symbols.address("runtime_args")
        for i, value in enumerate(arguments):
            tile.write32(at + 4 * i, value)
        values = np.random.default_rng(0).standard_normal(_OPERANDS // 4, np.float32)
        tile.write(_OPERAND_AT, values.tobytes())
        tile.core["brisc"].release()
        return tile

    return prepare


def benchmarks(elfs: Path) -> tuple[Benchmark, ...]:
    """All rows; `elfs` is the folder that holds add1/ and matmul/."""
    tiles = 256
    add1 = (tiles, 0x3F800000, _OPERAND_AT, 0xC0000)
    m, k, n = 8, 16, 8
    buffers = (_OPERAND_AT, 0x80000, 0xC0000)
    matmul = [_kernel(elfs / "matmul", (m, k, n, phases, *buffers)) for phases in (4, 1)]
    return (
        Benchmark("riscv", "MIPS", 1e-6, 5 * 3_000_000, _riscv),
        Benchmark("push_store", "M words/s", 1e-6, 64 * 60_000, _push_store),
        Benchmark("push_ttinsn", "M words/s", 1e-6, 64 * 150_000, _push_ttinsn),
        Benchmark("add1", "k tiles/s", 1e-3, tiles, _kernel(elfs / "add1", add1)),
        Benchmark("matmul_hifi4", "k products/s", 1e-3, m * k * n, matmul[0]),
        Benchmark("matmul_lofi", "k products/s", 1e-3, m * k * n, matmul[1]),
    )


def _once(benchmark: Benchmark) -> float:
    tile = benchmark.prepare()
    begin = time.perf_counter()
    stop = tile.run(timeout_s=60)
    seconds = time.perf_counter() - begin
    if stop.reason != "idle":
        raise Internal(f"benchmark {benchmark.name} ended by {stop.reason}")
    return benchmark.count / seconds * benchmark.scale


def measure(benchmark: Benchmark, samples: int = _SAMPLES) -> Row:
    """One warm-up run (compilation, translation), then the median of `samples` runs."""
    _once(benchmark)
    rates = [_once(benchmark) for _ in range(samples)]
    return Row(benchmark.name, benchmark.unit, median(rates), min(rates), max(rates), len(rates))


def run(elfs: Path, names: tuple[str, ...] = ()) -> Iterator[Row]:
    """Rows one by one, all or those named."""
    rows = benchmarks(elfs)
    known = [b.name for b in rows]
    if unknown := [n for n in names if n not in known]:
        raise InputError(f"no benchmark {', '.join(unknown)}", hint=f"known: {', '.join(known)}")
    for benchmark in rows:
        if not names or benchmark.name in names:
            yield measure(benchmark)
