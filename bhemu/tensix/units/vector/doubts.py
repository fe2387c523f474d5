"""Marks of unspecified values in lanes, as each vector instruction moves them."""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import dest, unspecified
from bhemu.tensix import lanes as vector_lanes
from bhemu.tensix.rules import DONE
from bhemu.tensix.units.vector.sfpu import VA, VD
from bhemu.tensix.unspecified import FLAGS, RANDOM, STACK

# What instructions of the vector unit do to the marks of doubtful lanes (tensix/unspecified.py).
#
# Each instruction calls these from its `doubts(s, t, f)`: DONE, or the error of something that a
# doubtful lane must not decide.  A result is doubtful where an operand is, lane by lane.

_NAMED = 15  # bits of LReg[7] that name a register
_NONE = np.int64(0)


@njit(inline="always")
def of(s: Any, reg: Any) -> Any:
    """Marks of LReg[reg]."""
    return unspecified.of(s, reg & 15)


@njit(inline="always")
def is_template(s: Any, dest: Any) -> Any:
    """True when the destination says that the word is stored instead of executed."""
    return vector_lanes.BONUS != vector_lanes.target(s, dest) >= vector_lanes.TEMPLATES


@njit
def template(s: Any) -> Any:
    """The word is stored, if all lanes are enabled."""
    return unspecified.open_refused(s)


@njit
def _written(s: Any, old: Any, new: Any) -> Any:
    """Marks after a write to the enabled lanes of something with the marks `old`."""
    on, flags = unspecified.enabled(s), unspecified.of_flags(s)
    unsure = unspecified.spread(flags)
    return (((old | new) & unsure) | flags) | (((old & ~on) | (new & on)) & ~unsure)


@njit
def to(s: Any, reg: Any, marks: Any) -> Any:
    """Something with `marks` is written to LReg[reg] in the enabled lanes; constants stay."""
    if reg < vector_lanes.WRITABLE or reg == vector_lanes.BONUS:
        where = unspecified.enabled(s) | unspecified.spread(unspecified.of_flags(s))
        old = unspecified.of(s, unspecified.of_lreg(reg))
        unspecified.write(s, reg, where, _written(s, old, marks))
    return np.int64(DONE)


@njit
def result(s: Any, dest: Any, marks: Any) -> Any:
    """A result with `marks` goes where the destination field `dest` says, unless it is stored."""
    return template(s) if is_template(s, dest) else to(s, vector_lanes.target(s, dest), marks)


@njit
def put_flags(s: Any, marks: Any) -> Any:
    """The condition codes have these marks from now on: none while instructions are scheduled."""
    unspecified.put(s, np.int64(FLAGS), marks)
    return unspecified.refused_by_flags(s, marks) if s.stage_latency[0] else np.int64(DONE)


@njit
def flags(s: Any, marks: Any) -> Any:
    """Flags with `marks` go to the condition codes of the enabled lanes."""
    return put_flags(s, _written(s, unspecified.of(s, FLAGS), marks))


@njit
def result_and_flags(s: Any, dest: Any, marks: Any, sets: Any, complements: Any) -> Any:
    """As `result`, and as `flags` when `sets` says so; LReg[16] leaves the flags alone.

    `complements`: the flags are the complement of those before.
    """
    if is_template(s, dest):
        return template(s)
    result(s, dest, marks)
    if sets and vector_lanes.target(s, dest) != vector_lanes.BONUS:
        return flags(s, unspecified.of(s, FLAGS) if complements else marks)
    return np.int64(DONE)


@njit
def _lanes_named(s: Any, reg: Any) -> Any:
    """Marks of both causes in the lanes whose LReg[7] names `reg`."""
    found = np.int64(0)
    for lane in range(unspecified.LANES):
        found |= np.int64(1 if s.lreg[7, lane] & np.uint32(_NAMED) == reg else 0) << lane
    return unspecified.both(found)


@njit
def named(s: Any) -> Any:
    """Marks of the registers that LReg[7] names lane by lane."""
    index, marks = of(s, 7), np.int64(0)
    for reg in range(_NAMED + 1):
        marks |= _lanes_named(s, reg) & unspecified.of(s, reg)
    return (marks & ~unspecified.spread(index)) | index


@njit
def indirect(s: Any, mod: Any, dest: Any, marks: Any) -> Any:
    """As `result`; with mode bit VD the destination is what LReg[7] names lane by lane."""
    if not mod & VD or is_template(s, dest) or vector_lanes.target(s, dest) == vector_lanes.BONUS:
        return result(s, dest, marks)
    on, causes, index = unspecified.enabled(s), unspecified.of_flags(s), of(s, 7)
    unsure = unspecified.spread(causes)
    anywhere = unspecified.spread(index) & (on | unsure)
    if s.stage_latency[0] and anywhere:
        return unspecified.lane_doubt_refused(s, np.int64(7), anywhere)
    for reg in range(vector_lanes.WRITABLE):
        here = _lanes_named(s, reg) & ~anywhere
        may, does, old = anywhere | (here & unsure), here & on & ~unsure, unspecified.of(s, reg)
        new = (marks & does) | ((old | marks | index | causes) & may)
        unspecified.write(s, np.int64(reg), may | does, new)
    return np.int64(DONE)


@njit
def factors(s: Any, f: Any) -> Any:
    """SFPMAD and what is like it."""
    first = named(s) if f.instr_mod1 & VA else of(s, f.lreg_src_a)
    marks = first | of(s, f.lreg_src_b) | of(s, f.lreg_src_c)
    return indirect(s, f.instr_mod1, f.lreg_dest, marks)


@njit
def random(s: Any) -> Any:
    """Marks of the random state, which the enabled lanes step."""
    marks = unspecified.of(s, RANDOM)
    unspecified.put(s, np.int64(RANDOM), marks | unspecified.of_flags(s))
    return marks


@njit(inline="always")
def top(s: Any) -> Any:
    """Cell of the top of the condition-code stack, which is not empty."""
    return np.int64(STACK) + ((s.cc_depth[0] - 1) & 7)


@njit
def combined(truth: Any, a: Any, b: Any) -> Any:
    """Marks of what a truth table (bit 2 * a + b) makes of flags with the marks `a` and `b`."""
    by_a = (truth >> 2 ^ truth) & 3 != 0
    by_b = (truth >> 1 ^ truth) & 5 != 0
    return (a if by_a else _NONE) | (b if by_b else _NONE)


@njit
def _exchanged(s: Any, k: Any, swaps: Any, unsure: Any, causes: Any) -> None:
    """LReg[p] and LReg[q] change places in the lanes `swaps`, perhaps in `unsure`.

    `k`: p, q and the first register that is not written.
    """
    p, q, writable = k
    x, y = of(s, p), of(s, q)
    may = (x | y | causes) & unsure
    if q < writable:
        unspecified.write(s, q, swaps | unsure, (x & swaps & ~unsure) | may)
    if p < writable:
        unspecified.write(s, p, swaps | unsure, (y & swaps & ~unsure) | may)


@njit
def swap(s: Any, mod: Any, d: Any, c: Any) -> Any:
    """SFPSWAP of LReg[d] and LReg[c] in the lanes of the scratch flag; mode 0 does not compare."""
    compared = of(s, d) | of(s, c) if mod else _NONE
    on, flagged = unspecified.enabled(s), unspecified.of_flags(s)
    unsure = unspecified.spread(flagged)
    unsure |= unspecified.spread(compared) & on
    swaps, causes = (
        unspecified.both(unspecified.lanes_of(s.lane_tmp[vector_lanes.FLAG])),
        compared | flagged,
    )
    if s.lane_config[0] & np.uint32(vector_lanes.ENABLE_DEST_INDEX):
        _exchanged(s, (d, c, 4), swaps, unsure, causes)
        _exchanged(s, (4 + (d & 3), 4 + (c & 3), vector_lanes.WRITABLE), swaps, unsure, causes)
    else:
        _exchanged(s, (d, c, vector_lanes.WRITABLE), swaps, unsure, causes)
    return np.int64(DONE)


@njit
def _byte(marks: Any, i: Any) -> Any:
    """Marks of lanes 8 i to 8 i + 7, as marks of lanes 0 to 7."""
    return (marks >> (8 * i)) & unspecified.both(np.int64(0xFF))


@njit
def transpose(s: Any) -> Any:
    """SFPTRANSP: row i of LReg[j] changes places with row j of LReg[i], in groups of four."""
    old = (of(s, 0), of(s, 1), of(s, 2), of(s, 3), of(s, 4), of(s, 5), of(s, 6), of(s, 7))
    for group in range(2):
        for i in range(4):
            new = np.int64(0)
            for j in range(4):
                new |= _byte(old[4 * group + j], i) << (8 * j)
            to(s, np.int64(4 * group + i), new)
    return np.int64(DONE)


@njit
def rotated(marks: Any, around: Any) -> Any:
    """Marks one lane up within each 8; the first gets those of the last, or none."""
    first = unspecified.both(np.int64(0x01010101))
    kept = (marks << 1) & ~first
    return kept | ((marks >> 7) & first) if around else kept


@njit
def copied_down(s: Any, mod: Any, c: Any) -> Any:
    """SFPSHFT2 modes 0 to 2: LReg[0] to LReg[2] = LReg[1] to LReg[3]; LReg[3] = by mode."""
    last = np.int64(0)
    if mod == 1:
        last = (of(s, 0) >> 8) & unspecified.both(np.int64(0xFFFFFF))
    elif mod == 2:
        last = rotated(of(s, c), True)
    old = (of(s, 1), of(s, 2), of(s, 3))
    for register in range(3):
        to(s, np.int64(register), old[register])
    return to(s, np.int64(3), last)


@njit
def first_row_below(marks: Any) -> Any:
    """Marks of lanes 0 to 7, for the lanes below each of them."""
    row = _byte(marks, 0)
    return row | row << 8 | row << 16 | row << 24


# Doubt of Dst datums (tensix/unspecified.py) on its way to the lanes of the vector unit and back.
#
# Lane 8 j + k takes part in the row j of four, in column 2 k, or 2 k + 1 where `odd` is not 0.

_VALID = 7  # of a row's flag: what says whether it is valid and wholly written
_ROW = 0xFF  # lanes of a row


@njit
def _to_lanes(mask: Any, odd: Any) -> Any:
    """Doubt of the columns of a row, as marks of lanes 0 to 7."""
    marks, first = np.int64(0), 1 if odd else 0
    for k in range(8):
        cell = mask >> (2 * k + first)
        marks |= (cell & 1) << k | (cell >> 16 & 1) << (32 + k)
    return marks


@njit
def _to_columns(marks: Any, odd: Any) -> Any:
    """The other way round."""
    mask, first = np.int64(0), 1 if odd else 0
    for k in range(8):
        lane = marks >> k
        mask |= ((lane & 1) | (lane >> 32 & 1) << 16) << (2 * k + first)
    return mask


@njit
def of_lanes(s: Any, first: Any, odd: Any, wide: Any) -> Any:
    """Marks that the lanes take from four storage rows; `wide`: of 32-bit datums."""
    marks = np.int64(0)
    for j in range(4):
        mask = unspecified.of_datums(s, first + j, wide)
        marks |= _to_lanes(mask, odd) << (8 * j) if mask else np.int64(0)
    return marks


@njit
def _validity_open(s: Any, at: Any, below: Any, lanes: Any) -> Any:
    """True when a store decides by open `lanes` whether row `at` is valid, and written `below`."""
    settled = s.dst_valid[at] & _VALID == 1
    settled = settled and s.dst_valid[at + below] & _VALID <= 1
    return not settled and unspecified.is_open(s, lanes)


@njit
def hold_stored(s: Any, first: Any, odd: Any, wide: Any, marks: Any) -> Any:
    """Before a store to four rows and those below: their doubt after it, in scratch.

    `marks`: of what is stored.  Scratch 0-3: the four rows, 4-7: those below.  DONE, or an error.
    """
    on, flags = unspecified.enabled(s), unspecified.of_flags(s)
    unsure = unspecified.spread(flags)
    stored = (marks & (on | unsure)) | flags
    low = stored if wide else (flags if dest.halves(s) else np.int64(0))
    for j in range(4):
        at = first + j
        if _validity_open(s, at, dest.LOW_HALF * wide, np.int64(_ROW) << (8 * j)):
            return unspecified.open_refused(s)
        written = _to_columns((on & ~unsure) >> (8 * j), odd)
        unspecified.hold(s, j, at, written)
        unspecified.hold(s, 4 + j, at + dest.LOW_HALF, written if wide else 0)
        s.doubt_row[8 + j] = _to_columns(stored >> (8 * j), odd)
        s.doubt_row[12 + j] = _to_columns(low >> (8 * j), odd)
    return np.int64(DONE)


@njit
def settle_stored(s: Any, t: Any, first: Any) -> None:
    """After that: what `hold_stored` left is the doubt of the rows."""
    for i in range(8):
        at = first + (i & 3) + (i >> 2) * dest.LOW_HALF
        if s.doubt_row[8 + i]:
            s.doubt_row[i] |= s.doubt_row[8 + i]
            s.dst_doubt_pc[at] = s.gate_pc[t]
        unspecified.settle(s, i, at)
