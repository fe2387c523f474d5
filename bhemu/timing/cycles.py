"""How many cycles a word keeps its unit, and until when its result takes: with the sources.

Every figure says where it is from: `isa` (the text of the ISA), `measured` (a public measurement
of cards), `derived` (from one of these, as written) or `estimate`.
"""

from typing import Any, NamedTuple

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix.insn import REGISTRY, Instruction
from bhemu.tensix.units import MODULES

assert MODULES  # importing the units declares the instructions

PARTS = 16  # of a cycle, in which compiled code counts
ISA, MEASURED, DERIVED, ESTIMATE = "isa", "measured", "derived", "estimate"


class Cycles(NamedTuple):
    """busy: cycles until the unit takes its next word; latency: until STALLWAIT sees it done."""

    busy: float
    latency: float
    kind: str
    source: str


_BENCH = "tensixbench-blackhole-2026-08-09, phase A, slope over burst length"
_TABLE = "cost_table_blackhole"
_ONE = Cycles(1, 1, MEASURED, f"{_BENCH}: 0.998 a word, 1.97 and 2.97 for two and three threads")
_MATRIX = Cycles(1, 5, ISA, "MatrixUnit: one a cycle, done after 5")
_MOVE = Cycles(1, 5, ESTIMATE, "as other words of the matrix unit")
_VECTOR = Cycles(1, 2, MEASURED, f"{_BENCH}: 0.998 a word; latency 2 of the MAD class: ISA")
_ARITHMETIC = Cycles(3, 3, MEASURED, f"{_BENCH}: 2.973 a word; three threads 8.97")
_MEMORY = Cycles(3, 12, ISA, "ScalarUnit: at least 3; latency: a sustained rate of one in 12")
_ATOMIC = Cycles(15, 15, ISA, "ScalarUnit: at least 15")
_CONFIG = Cycles(1, 2, ISA, "WRCFG: one a cycle, complete after 2")
_MOVER = Cycles(16, 16, ESTIMATE, "no measurement")
_UNPACK = Cycles(
    9.25, 9.25, DERIVED, f"{_TABLE}: 37.1 a tile of 4 faces; 32 datums a cycle and 1.25 a word"
)
_PACK = Cycles(1.82, 8, DERIVED, f"{_TABLE}: 29.06 a tile of 16 words to 16 bits or bfp8")

_OF_UNIT = {
    "matrix": _MOVE,
    "vector": _VECTOR,
    "unpack": _UNPACK,
    "pack": _PACK,
    "mover": _MOVER,
    "scalar": _ARITHMETIC,
    "cfg": _ONE,
    "sync": _ONE,
    "adc": _ONE,
    "front": _ONE,
}
_OF_CLASS = {
    **dict.fromkeys(("MVMUL", "ELWADD", "ELWSUB", "ELWMUL"), _MATRIX),
    **dict.fromkeys(("SETRWC", "INCRWC"), _ONE),
    **dict.fromkeys(("SETDMAREG", "DMANOP"), _ONE),
    **dict.fromkeys(("LOADIND", "LOADREG", "STOREIND", "STOREREG", "ATINCGET", "ATSWAP"), _MEMORY),
    **dict.fromkeys(("ATCAS", "ATINCGETPTR"), _ATOMIC),
    **dict.fromkeys(("REG2FLOP", "FLUSHDMA"), Cycles(2, 2, ISA, "ScalarUnit: at least 2")),
    **dict.fromkeys(("WRCFG", "RMWCIB0", "RMWCIB1", "RMWCIB2", "RMWCIB3"), _CONFIG),
    "UNPACR_NOP": Cycles(2, 2, ESTIMATE, "as the least of UNPACR"),
}


def of(cls: type[Instruction]) -> Cycles:
    """The cycles of a class of instructions."""
    return _OF_CLASS.get(cls.name, _OF_UNIT[cls.unit])


def _parts(which: str) -> Any:
    found = {i: getattr(of(cls), which) for i, cls in REGISTRY.items()}
    return np.array([round(PARTS * found.get(i, 1)) for i in range(256)], np.int64)


_BUSY, _LATENCY = _parts("busy"), _parts("latency")
SCALAR, CONFIG, NOT_SHARED = 0, 1, -1
_SHARED = np.array(
    [
        {"scalar": SCALAR, "cfg": CONFIG}.get(REGISTRY[i].unit if i in REGISTRY else "", NOT_SHARED)
        for i in range(256)
    ],
    np.int64,
)
_UNPACR = 0x42
_DATUMS, _WORD = 32, PARTS * 5 // 4  # of an unpacker: a cycle; sixteenths of a word besides


@njit
def busy(s: Any, t: Any, opcode: Any, word: Any) -> Any:
    """Sixteenths of a cycle until the unit of a word takes the next one."""
    if opcode == _UNPACR:
        u = word >> 23 & 1
        datums = max(s.adc[t, u, 1, 0] - s.adc[t, u, 0, 0] + 1, 1)
        return max(PARTS * datums // _DATUMS + _WORD, 2 * PARTS)
    return _BUSY[opcode]


@njit
def latency(opcode: Any) -> Any:
    """Cycles from issue until STALLWAIT sees the unit done."""
    return _LATENCY[opcode] // PARTS


@njit
def shared(opcode: Any) -> Any:
    """SCALAR or CONFIG of a word that keeps a unit from other threads, though it is complete."""
    return _SHARED[opcode]


@njit
def held(opcode: Any) -> Any:
    """Cycles after which the thread issues its next word: all of a scalar word, else one."""
    return max(_BUSY[opcode] // PARTS, 1) if _SHARED[opcode] == SCALAR else np.int64(1)
