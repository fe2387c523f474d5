"""What instructions of the vector unit do to the marks of doubtful lanes (tensix/lane_doubt.py).

Each instruction calls these from its `doubts(s, t, f)`: DONE, or the error of something that a
doubtful lane must not decide.  A result is doubtful where an operand is, lane by lane.
"""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import lane_doubt, lanes, staging
from bhemu.tensix.lane_doubt import FLAGS, RANDOM, STACK
from bhemu.tensix.status import DONE
from bhemu.tensix.units.vector.sfpu import VA, VD

_NAMED = 15  # bits of LReg[7] that name a register
_NONE = np.int64(0)


@njit(inline="always")
def of(s: Any, reg: Any) -> Any:
    """Marks of LReg[reg]."""
    return lane_doubt.of(s, reg & 15)


@njit(inline="always")
def is_template(s: Any, dest: Any) -> Any:
    """True when the destination says that the word is stored instead of executed."""
    return staging.BONUS != lanes.target(s, dest) >= lanes.TEMPLATES


@njit
def template(s: Any) -> Any:
    """The word is stored, if all lanes are enabled."""
    return lane_doubt.open_refused(s)


@njit
def _written(s: Any, old: Any, new: Any) -> Any:
    """Marks after a write to the enabled lanes of something with the marks `old`."""
    on, flags = lane_doubt.enabled(s), lane_doubt.of_flags(s)
    unsure = lane_doubt.spread(flags)
    return (((old | new) & unsure) | flags) | (((old & ~on) | (new & on)) & ~unsure)


@njit
def to(s: Any, reg: Any, marks: Any) -> Any:
    """Something with `marks` is written to LReg[reg] in the enabled lanes; constants stay."""
    if reg < lanes.WRITABLE or reg == staging.BONUS:
        where = lane_doubt.enabled(s) | lane_doubt.spread(lane_doubt.of_flags(s))
        old = lane_doubt.of(s, lane_doubt.of_lreg(reg))
        lane_doubt.write(s, reg, where, _written(s, old, marks))
    return np.int64(DONE)


@njit
def result(s: Any, dest: Any, marks: Any) -> Any:
    """A result with `marks` goes where the destination field `dest` says, unless it is stored."""
    return template(s) if is_template(s, dest) else to(s, lanes.target(s, dest), marks)


@njit
def put_flags(s: Any, marks: Any) -> Any:
    """The condition codes have these marks from now on: none while instructions are scheduled."""
    lane_doubt.put(s, np.int64(FLAGS), marks)
    return lane_doubt.refused_by_flags(s, marks) if s.stage_latency[0] else np.int64(DONE)


@njit
def flags(s: Any, marks: Any) -> Any:
    """Flags with `marks` go to the condition codes of the enabled lanes."""
    return put_flags(s, _written(s, lane_doubt.of(s, FLAGS), marks))


@njit
def result_and_flags(s: Any, dest: Any, marks: Any, sets: Any, complements: Any) -> Any:
    """As `result`, and as `flags` when `sets` says so; LReg[16] leaves the flags alone.

    `complements`: the flags are the complement of those before.
    """
    if is_template(s, dest):
        return template(s)
    result(s, dest, marks)
    if sets and lanes.target(s, dest) != staging.BONUS:
        return flags(s, lane_doubt.of(s, FLAGS) if complements else marks)
    return np.int64(DONE)


@njit
def _lanes_named(s: Any, reg: Any) -> Any:
    """Marks of both causes in the lanes whose LReg[7] names `reg`."""
    found = np.int64(0)
    for lane in range(lane_doubt.LANES):
        found |= np.int64(1 if s.lreg[7, lane] & np.uint32(_NAMED) == reg else 0) << lane
    return lane_doubt.both(found)


@njit
def named(s: Any) -> Any:
    """Marks of the registers that LReg[7] names lane by lane."""
    index, marks = of(s, 7), np.int64(0)
    for reg in range(_NAMED + 1):
        marks |= _lanes_named(s, reg) & lane_doubt.of(s, reg)
    return (marks & ~lane_doubt.spread(index)) | index


@njit
def indirect(s: Any, mod: Any, dest: Any, marks: Any) -> Any:
    """As `result`; with mode bit VD the destination is what LReg[7] names lane by lane."""
    if not mod & VD or is_template(s, dest) or lanes.target(s, dest) == staging.BONUS:
        return result(s, dest, marks)
    on, causes, index = lane_doubt.enabled(s), lane_doubt.of_flags(s), of(s, 7)
    unsure = lane_doubt.spread(causes)
    anywhere = lane_doubt.spread(index) & (on | unsure)
    if s.stage_latency[0] and anywhere:
        return lane_doubt.refused(s, np.int64(7), anywhere)
    for reg in range(lanes.WRITABLE):
        here = _lanes_named(s, reg) & ~anywhere
        may, does, old = anywhere | (here & unsure), here & on & ~unsure, lane_doubt.of(s, reg)
        new = (marks & does) | ((old | marks | index | causes) & may)
        lane_doubt.write(s, np.int64(reg), may | does, new)
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
    marks = lane_doubt.of(s, RANDOM)
    lane_doubt.put(s, np.int64(RANDOM), marks | lane_doubt.of_flags(s))
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
        lane_doubt.write(s, q, swaps | unsure, (x & swaps & ~unsure) | may)
    if p < writable:
        lane_doubt.write(s, p, swaps | unsure, (y & swaps & ~unsure) | may)


@njit
def swap(s: Any, mod: Any, d: Any, c: Any) -> Any:
    """SFPSWAP of LReg[d] and LReg[c] in the lanes of the scratch flag; mode 0 does not compare."""
    compared = of(s, d) | of(s, c) if mod else _NONE
    on, flagged = lane_doubt.enabled(s), lane_doubt.of_flags(s)
    unsure = lane_doubt.spread(flagged)
    unsure |= lane_doubt.spread(compared) & on
    swaps, causes = lane_doubt.both(lane_doubt.lanes_of(s.lane_tmp[lanes.FLAG])), compared | flagged
    if s.lane_config[0] & np.uint32(lanes.ENABLE_DEST_INDEX):
        _exchanged(s, (d, c, 4), swaps, unsure, causes)
        _exchanged(s, (4 + (d & 3), 4 + (c & 3), lanes.WRITABLE), swaps, unsure, causes)
    else:
        _exchanged(s, (d, c, lanes.WRITABLE), swaps, unsure, causes)
    return np.int64(DONE)


@njit
def _byte(marks: Any, i: Any) -> Any:
    """Marks of lanes 8 i to 8 i + 7, as marks of lanes 0 to 7."""
    return (marks >> (8 * i)) & lane_doubt.both(np.int64(0xFF))


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
    first = lane_doubt.both(np.int64(0x01010101))
    kept = (marks << 1) & ~first
    return kept | ((marks >> 7) & first) if around else kept


@njit
def copied_down(s: Any, mod: Any, c: Any) -> Any:
    """SFPSHFT2 modes 0 to 2: LReg[0] to LReg[2] = LReg[1] to LReg[3]; LReg[3] = by mode."""
    last = np.int64(0)
    if mod == 1:
        last = (of(s, 0) >> 8) & lane_doubt.both(np.int64(0xFFFFFF))
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
