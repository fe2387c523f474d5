"""Where the time of a benchmark goes: per instruction, RISC-V cores, devices and the rest."""

from collections.abc import Iterator
from dataclasses import dataclass

from bhemu.bench.measure import load, run_once, seconds_of
from bhemu.bench.rows import Benchmark
from bhemu.errors import InputError
from bhemu.jit import build
from bhemu.jit.subset import JIT
from bhemu.tensix import compiled
from bhemu.tensix.insn import REGISTRY

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
    used = [op for op in REGISTRY if warm.state.op_count[:, op].any() and REGISTRY[op].execute]
    tile = load(case, engine=engine)
    s = tile.state
    compiled.start(s, {op: build.load(compiled.entry(op)).address for op in used})
    seconds = seconds_of(tile, case, benchmark.name)
    total = int(s.profile_ticks.sum())
    for part in s.profile_ticks.argsort()[::-1]:
        if ticks := int(s.profile_ticks[part]):
            name = REGISTRY[int(part)].name if part < 256 else _PARTS[int(part)]
            yield Share(name, ticks / total * seconds, int(s.profile_calls[part]))
