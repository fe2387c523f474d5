"""How many cycles a word keeps its unit, and until when its result takes: with the sources.

Every figure says where it is from: `isa` (the text of the ISA), `measured` (a public measurement
of cards), `derived` (from one of these, as written) or `estimate`.
"""

from typing import Any, NamedTuple

import numpy as np

from bhemu.jit.subset import njit
from bhemu.noc.times import DERIVED, ESTIMATE, ISA, MEASURED
from bhemu.tensix import formats
from bhemu.tensix.insn import Instruction, decoder, instructions
from bhemu.tensix.units import MODULES, counters
from bhemu.tensix.units.counters import X
from bhemu.tensix.units.matrix import Elementwise
from bhemu.tensix.units.pack import modes as pack
from bhemu.tensix.units.pack.pacr import PACR
from bhemu.tensix.units.unpack import modes as unpack
from bhemu.tensix.units.unpack.modes import UNPACR_NOP, UnpackWord
from bhemu.tensix.units.unpack.unpacr import UNPACR

assert MODULES  # importing the units declares the instructions

PARTS = 16  # of a cycle, in which compiled code counts

NOT_MODELLED = (
    "instruction caches, mispredicted branches, L1 contention of units, the second issue of a fused"
    " .ttinsn"
)


class Cycles(NamedTuple):
    """busy: cycles until the unit takes its next word; latency: until STALLWAIT sees it done."""

    busy: float
    latency: float
    kind: str
    source: str


_BENCH = "tensixbench-blackhole-2026-08-09, phase A, slope over burst length"
_TABLE = "cost_table_blackhole"


def _isa(busy: float, latency: float, text: str) -> Cycles:
    return Cycles(busy, latency, ISA, text)


def _guess(busy: float, latency: float, text: str) -> Cycles:
    return Cycles(busy, latency, ESTIMATE, text)


# Latency counts where a unit holds the word (in_flight.py); of others it is what they keep a unit.
_ONE = f"{_BENCH}: 0.998 a word, of two and three threads 1.97 and 2.97"
_MATRIX, _VECTOR = "MatrixUnit: throughput and latency", "VectorUnit: IPC, latency"
_SCALAR = "ScalarUnit"
_FACES = (
    f"{_TABLE}: a tile of tt-llk's sub_tiles takes 37.1 with its begin and end, from 32 bits 37.75"
    " or (to 16 bits) 40.1; to Dst 16 datums a cycle (copy_tile 120.8; from 16 bits an estimate)"
)
_ROWS_OF_4 = (
    f"{_TABLE}: a tile of tt-llk's pack_tile takes 29.06 to 71.04, by formats, with its begin and"
    " end and 9 words beside 16 PACR (docs/timing.md); latency: a guess"
)
_CLEARS = (
    "as the least of UNPACR; one that clears a bank takes 1.125 cycles from the other unpacker"
    f" ({_TABLE}: a face of copy_tile takes 1.1 to 1.2 more than of sub_tiles; no text says why)"
)
_AFTER = f"{_SCALAR}: at least 3; the result is there after {{}} DMANOPs in most cases (its page)"
_TWO_GROUPS = f"{_SCALAR}: 3, or 4 where two groups of GPRs are read"
_ROWS: tuple[tuple[str, Cycles], ...] = (
    ("NOP", Cycles(1, 1, MEASURED, f"{_BENCH}: 0.998 a word, of three threads too")),
    ("DMANOP SETDMAREG", Cycles(1, 1, MEASURED, _ONE)),
    ("SETRWC INCRWC", Cycles(1, 1, MEASURED, _ONE)),
    ("SFPNOP SFPABS SFPMOV", Cycles(1, 1, MEASURED, f"{_ONE}; latency: {_VECTOR}")),
    ("SFPMAD SFPADD SFPMUL", Cycles(1, 2, MEASURED, f"{_ONE}; latency: {_VECTOR}")),
    ("RDCFG", Cycles(1, 1, MEASURED, _ONE)),
    (
        "ADDDMAREG CMPDMAREG MULDMAREG SHIFTDMAREG",
        Cycles(3, 3, MEASURED, f"{_BENCH}: 2.973 a word; of three threads 8.97"),
    ),
    ("SUBDMAREG BITWOPDMAREG", _isa(3, 3, _TWO_GROUPS)),
    ("REG2FLOP FLUSHDMA", _isa(2, 2, f"{_SCALAR}: at least 2")),
    ("STOREIND STOREREG ATSWAP", _isa(3, 3, f"{_SCALAR}: at least 3")),
    ("LOADIND LOADREG", Cycles(3, 10, DERIVED, _AFTER.format("seven"))),
    ("ATINCGET", Cycles(3, 27, DERIVED, _AFTER.format("24"))),
    ("ATCAS ATINCGETPTR", _isa(15, 15, f"{_SCALAR}: at least 15")),
    ("SETC16", _isa(1, 1, "ConfigurationUnit: one a cycle of each thread")),
    ("RMWCIB0 RMWCIB1 RMWCIB2 RMWCIB3", _isa(1, 1, "ConfigurationUnit: one a cycle")),
    ("WRCFG", _isa(1, 2, "ConfigurationUnit: one a cycle, latency")),
    ("CFGSHIFTMASK", _isa(2, 2, "ConfigurationUnit: half of one a cycle, latency")),
    ("STREAMWRCFG", _guess(1, 1, "as RMWCIB")),
    ("ATGETM ATRELM SEMINIT SEMPOST SEMGET STALLWAIT SEMWAIT", _isa(1, 1, "SyncUnit: latency")),
    ("STREAMWAIT", _guess(1, 1, "as STALLWAIT")),
    (
        "SETADC SETADCXY SETADCZW SETADCXX INCADCXY INCADCZW ADDRCRXY ADDRCRZW SETDVALID",
        _isa(1, 1, "MiscellaneousUnit: one a cycle of each thread"),
    ),
    ("MVMUL DOTPV GAPOOL GMPOOL ELWADD ELWSUB ELWMUL", _isa(1, 5, _MATRIX)),
    ("CLEARDVALID CLREXPHIST GATESRCRST SHIFTXA ZEROACC ZEROSRC TRNSPSRCB", _isa(1, 1, _MATRIX)),
    ("SHIFTXB", _isa(2, 2, _MATRIX)),
    ("MOVD2A", _isa(1, 2, _MATRIX)),
    ("MOVA2D MOVDBGA2D MOVB2D MOVB2A", _isa(1, 4, _MATRIX)),
    ("MOVD2B", _guess(1, 2, "as MOVD2A")),
    (
        "CONV3S1 CONV3S2 APOOL3S1 APOOL3S2 MFCONV3S1 MPOOL3S1 MPOOL3S2",
        _guess(1, 5, "as ELWADD: legacy words, of which nothing is told"),
    ),
    ("SFPADDI SFPMULI SFPLUT SFPLUTFP32", _isa(1, 2, _VECTOR)),
    ("SFPSWAP SFPSHFT2", _guess(1, 2, f"{_VECTOR}: at most one a cycle, in some modes fewer")),
    (
        "SFPSETCC SFPENCC SFPPUSHC SFPPOPC SFPCOMPC SFPCONFIG SFPDIVP2 SFPEXEXP SFPEXMAN SFPSETEXP"
        " SFPSETMAN SFPSETSGN SFPCAST SFP_STOCH_RND SFPIADD SFPSHFT SFPAND SFPOR SFPNOT SFPXOR"
        " SFPLZ SFPLOAD SFPSTORE SFPLOADI SFPTRANSP SFPLOADMACRO",
        _isa(1, 1, _VECTOR),
    ),
    ("SFPMUL24 SFPARECIP", _guess(1, 2, "as SFPMAD")),
    ("SFPLE SFPGT", _guess(1, 1, "as SFPSETCC")),
    ("UNPACR", Cycles(8.75, 8.75, DERIVED, _FACES)),
    ("UNPACR_NOP", _guess(2, 2, _CLEARS)),
    ("PACR", _guess(20 / PARTS, 8, _ROWS_OF_4)),
    ("XMOV", _guess(16, 16, "no measurement")),
)
FIGURES = {name: one for names, one in _ROWS for name in names.split()}
_NEW = _guess(1, 1, "no figure: one a cycle")  # of an instruction that was added since


def of(cls: type[Instruction]) -> Cycles | None:
    """The cycles of a class of instructions, None of one that never executes."""
    return None if cls.execute is None else FIGURES.get(cls.name, _NEW)


def _parts(which: str) -> Any:
    parts = np.zeros(256, np.int64)  # 0: of opcodes that no unit executes
    for opcode, cls in instructions().items():
        one = of(cls)
        parts[opcode] = round(PARTS * getattr(one, which)) if one else 0
    return parts


_BUSY, _LATENCY = _parts("busy"), _parts("latency")
SCALAR, CONFIG, NOT_SHARED = 0, 1, -1


def _shared_by(cls: type[Instruction] | None) -> int:
    if cls is None or cls.name == "SETC16":  # each thread has its own
        return NOT_SHARED
    return {"scalar": SCALAR, "cfg": CONFIG}.get(cls.unit, NOT_SHARED)


def is_scalar(cls: type[Instruction] | None) -> bool:
    """Whether the thread of a word issues nothing before it is complete."""
    return _shared_by(cls) == SCALAR


def is_late_load(word: int) -> bool:
    """Whether what a word loads may be late: of the scalar unit, from memory."""
    return bool(_GIVES_LATER[word >> 24])


_SHARED = np.array([_shared_by(instructions().get(i)) for i in range(256)], np.int64)
_UNPACR, _PACR, _UNPACR_NOP = UNPACR.opcode, PACR.opcode, UNPACR_NOP.opcode
_unpack_fields = decoder(UnpackWord)

# Of an unpacker: datums a cycle to Src, sixteenths of a datum to Dst, of a word besides, and more
# of those from 32 bits to Src, where they stay 19 bits or become 16.
_DATUMS, _TO_DST, _WORD, _FROM_32, _TO_16 = 32, 1, PARTS * 3 // 4, 3, 12
_NOP_POP, _NOP_CLEARS = UNPACR_NOP.unpack_pop.max, 1  # an UNPACR_NOP that clears a bank
_CLEARED = 18  # sixteenths that the next word of the other unpacker takes more

# Of the packer: sixteenths of a word, or cycles of a tile of 16 words, from Dst in 16 and 32 bits,
# from a float or a bfp as intermediate format, to 16 bits, to 32 bits, to bfp.
_PACKED = np.array((((20, 30, 20), (30, 62, 20)), ((20, 35, 20), (20, 35, 20))))

# Words of the matrix unit that write Dst at the end of its pipeline, and add to it: always, or
# where a bit says so. Another one can add to these rows _DST_READY cycles later (latency: 5):
# cost_table_blackhole, mul_tiles: HiFi4 takes 24 cycles a tile more than HiFi3, 6 a face, whose two
# words of a phase add to the rows of the phase before. Measured of ELWMUL, taken for all of them.
_ALWAYS, _BY_BIT = 1, 2
_ADDERS = dict.fromkeys(("MVMUL", "DOTPV", "GAPOOL", "GMPOOL", "ELWMUL"), _ALWAYS)
_ADDERS |= dict.fromkeys(("ELWADD", "ELWSUB"), _BY_BIT)
_NAMES = [instructions()[i].name if i in instructions() else "" for i in range(256)]
_ADDS = np.array([_ADDERS.get(name, 0) for name in _NAMES], np.int64)
_DST_READY, _DST_BLOCK = 6, 8
_DST_FIELD, _ADDS_BIT = Elementwise.dst.max, Elementwise.dest_accum_en.lo

AT_ONCE = -1  # `late_slow` of an agent of which each act takes one cycle: what if it were free?


@njit
def is_at_once(s: Any, agent: Any) -> Any:
    """Whether the run asks what the agent's own time costs."""
    return s.late_slow[agent] == AT_ONCE


@njit
def busy(s: Any, t: Any, opcode: Any, word: Any) -> Any:
    """Sixteenths of a cycle until the unit of a word takes the next one."""
    if opcode == _PACR:
        m = pack.mode_of(s, t)
        width = 2 if formats.is_bfp(m.out) else np.int64(formats.datum_bits(m.out) == 32)
        return _PACKED[m.wide, np.int64(formats.is_bfp(m.fmt)), width]
    if opcode != _UNPACR:
        return _BUSY[opcode]
    u = unpack.mode_of_word(s, t, _unpack_fields(word))
    first, last = s.adc[u.counters, u.unpacker, 0, X], s.adc[u.counters, u.unpacker, 1, X]
    datums = max(last - first + 1, 1)
    if u.to_dst:
        return _TO_DST * datums + _WORD
    more = 0
    if formats.datum_bits(u.fmt) == 32:
        more = _FROM_32 if u.out == formats.TF32 else _TO_16
    return max(PARTS * datums // _DATUMS + _WORD + more, 2 * PARTS)


@njit
def stall(s: Any, t: Any, opcode: Any, word: Any) -> Any:
    """Cycles that a word waits within the matrix unit for the Dst rows that it adds to."""
    if _ADDS[opcode] == 0:
        return np.int64(0)
    block = counters.dst_row(s, t, word & _DST_FIELD) // _DST_BLOCK
    wait: Any = np.int64(0)
    if _ADDS[opcode] == _ALWAYS or word >> _ADDS_BIT & 1:
        wait = max(s.dst_ready[block] - s.clock[0], 0)
    s.dst_ready[block] = s.clock[0] + wait + _DST_READY
    return wait


@njit
def hinder(s: Any, unit: Any, opcode: Any, word: Any) -> None:
    """An UNPACR_NOP of unpacker `unit` that clears a bank takes cycles from the other unpacker."""
    if opcode == _UNPACR_NOP and word & _NOP_POP == _NOP_CLEARS:
        s.unit_debt[1 - unit] = s.unit_debt[1 - unit] % PARTS + _CLEARED


@njit
def latency(opcode: Any) -> Any:
    """Cycles from issue until STALLWAIT sees the unit done."""
    return _LATENCY[opcode] // PARTS


_GIVES_LATER = np.array([is_scalar(instructions().get(i)) for i in range(256)]) & (_LATENCY > _BUSY)
ATOMIC_BACK = 15  # of the latency of an atomic, from L1 to the GPR: estimate, as ATCAS


@njit
def gives_later(opcode: Any) -> Any:
    """Whether the result of a word is there after `latency`, later than the word is complete."""
    return _GIVES_LATER[opcode]


@njit
def shared(opcode: Any) -> Any:
    """SCALAR or CONFIG of a word that keeps a unit from other threads, though it is complete."""
    return _SHARED[opcode]


@njit
def occupied_cycles(opcode: Any) -> Any:
    """Cycles after which a `shared` unit takes its next word."""
    return max(_BUSY[opcode] // PARTS, 1)


@njit
def held(opcode: Any) -> Any:
    """Cycles after which the thread issues its next word: all of a scalar word, else one."""
    return occupied_cycles(opcode) if _SHARED[opcode] == SCALAR else np.int64(1)
