"""Values that no source fixes, in Dst, Src and lanes: refused where they would show."""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import dest
from bhemu.tensix.rules import DONE, UNSUPPORTED, error, refuse

# Cells whose value no source fixes: they are computed with, and refused where they would show.
#
# Src banks keep what earlier work left in the rows that are not written again, and instructions of
# the matrix unit take whole blocks, such rows among them.  Where such an operand has no known
# meaning, as what UNPACR_NOP clears to one has none, the results that it takes part in are in
# doubt, the others are not.  A doubtful result may lie in Dst and go through Src; it ends in a
# refusal when something packs it, loads it into a vector register or a core, and it ends without
# one when it is overwritten.
#
# A Src cell holds its causes in its low bits, which no format has.  A row of Dst that has doubtful
# cells has the bit DOUBT in its flag, and its columns in `s.dst_doubt`, 16 bits for each cause; a
# 32-bit datum counts with both of its rows.  Code that writes a whole row ends doubt by its flag;
# code that writes single cells uses `hold` and `settle`.  No check while `s.doubt[0]` is 0, nor
# for doubtful Src cells while `s.doubt[1]` is.

DOUBT = 8  # bit of a row's flag
EXPONENT, DENORMAL = 1, 2  # causes, bits
CAUSES = EXPONENT | DENORMAL

_EXPONENT = error("FPU-EXPONENT", UNSUPPORTED, "Dst row {row}, column {column} is read; the word pushed at {pc:#x} computed it from a datum of a format with 5-bit exponents that has bits beyond them, or of a bank that UNPACR_NOP has cleared to one", "the Src bank held data of another format there, perhaps left by an earlier program; or see UNPACR-NOP-VALUE")  # fmt: skip
_DENORMAL = error("FPU-DENORMALS", UNSUPPORTED, "Dst row {row}, column {column} is read; the word pushed at {pc:#x} computed a product for it from a denormal in SrcB, with ALU_ACC_CTRL_Zero_Flag_disabled_src set", "clear the bit: the ISA text says that products flush denormals, element-wise products of the golden model do not flush them then")  # fmt: skip


@njit(inline="always")
def columns(causes: Any, column: Any) -> Any:
    """What `causes` of a cell in `column` are in `s.dst_doubt` (int64)."""
    return ((causes & EXPONENT) << column) | ((causes >> 1 & 1) << (16 + column))


@njit(inline="always")
def causes(mask: Any, column: Any) -> Any:
    """Causes of the cell in `column` of a row with the doubt `mask`."""
    return (mask >> column & 1) | (mask >> (16 + column) & 1) << 1


@njit(inline="always")
def of_row(s: Any, at: Any) -> Any:
    """Doubt of storage row `at` (int64)."""
    return np.int64(s.dst_doubt[at]) if s.dst_valid[at] & DOUBT else np.int64(0)


@njit
def of_datums(s: Any, at: Any, wide: Any) -> Any:
    """Doubt of the datums of storage row `at`; `wide`: 32-bit datums, with the row below."""
    if s.dst_valid[at] & 1 == 0:
        return np.int64(0)
    return of_row(s, at) | (of_row(s, at + dest.LOW_HALF) if wide else 0)


@njit
def note(s: Any, t: Any, at: Any, mask: Any) -> None:
    """Storage row `at`, wholly written by the word of thread `t`, has the doubt `mask`."""
    if mask:
        s.doubt[0] = 1
        s.dst_doubt[at] = np.uint32(mask)
        s.dst_doubt_pc[at] = s.gate_pc[t]
        s.dst_valid[at] |= DOUBT | 1


@njit
def note_result(s: Any, t: Any, first: Any, rows: Any, wide: Any) -> None:
    """Rows `first`, ... have the doubts in `s.doubt_row`; a 32-bit datum has it in its high row."""
    for i in range(rows):
        row = first + i
        note(s, t, dest.adj32(row & 0x3FF) if wide else dest.row16(s, row), s.doubt_row[i])


@njit
def hold(s: Any, i: Any, at: Any, written: Any) -> None:
    """Before cells of row `at` are written: keep the doubt of the others in scratch `i`.

    `written`: the columns, as a mask.
    """
    # A row that ZEROACC cleared is taken back with all its cells.
    before = np.int64(s.dst_doubt[at]) if s.dst_valid[at] == 0 else of_row(s, at)
    s.doubt_row[i] = before & ~(written | written << 16)


@njit
def settle(s: Any, i: Any, at: Any) -> None:
    """After that: what `hold` kept is the doubt of the row."""
    flag = s.dst_valid[at] & ~DOUBT
    s.dst_doubt[at] = np.uint32(s.doubt_row[i])
    if s.doubt_row[i] and flag & 1:
        flag |= DOUBT
    s.dst_valid[at] = flag


@njit
def refused(s: Any, row: Any, at: Any, mask: Any) -> Any:
    """0, or the error of reading columns of Dst row `row` with the doubt `mask`.

    `at`: its storage row, in which the doubt of a 32-bit datum is (or in the one below).
    """
    for column in range(16):
        found = causes(mask, column)
        if found:
            at = at if causes(of_row(s, at), column) else at + dest.LOW_HALF
            pc = np.int64(s.dst_doubt_pc[at])
            if found & EXPONENT:
                return refuse(s, _EXPONENT, row=row, column=column, pc=pc)
            return refuse(s, _DENORMAL, row=row, column=column, pc=pc)
    return 0


# Lanes of the vector unit whose value no source fixes: marks, and what sets and moves them.
#
# A doubtful Dst datum may be loaded into an LReg; from there its doubt goes wherever a lane goes:
# to other registers, to condition codes, to Dst.  Each of the cells below has one mark per lane
# and cause: bit l of `s.lane_doubt` says EXPONENT of lane l, bit 32 + l DENORMAL.  An instruction
# of the vector unit declares beside `execute` what it does to marks (`doubts`); it is called
# before the instruction executes, and only while `s.doubt[2]` says that there is a mark anywhere.
#
# Lanes whose condition code is in doubt are *open*: whether a write reaches them is not known, so
# that they hold a doubtful value afterwards whatever is written.

# Cells besides LReg 0-15: LReg 16, the condition codes, their stack, the random state
LREG16, FLAGS, STACK, RANDOM = 16, 17, 18, 26
CELLS = 27
LANES = 32
_LOW = 0xFFFFFFFF
EVERY = -1  # all lanes, both causes

_HINT = (
    "the Src bank held data of another format or denormals, perhaps left by an earlier program;"
    " see FPU-EXPONENT and FPU-DENORMALS"
)
OPEN = error("VECTOR-DOUBT-LANES", UNSUPPORTED, "whether lane {lane} is enabled decides more than values of lanes here, and its condition code was computed from a Dst datum whose value no source fixes", _HINT)  # fmt: skip
REGISTER = error("VECTOR-DOUBT-REGISTER", UNSUPPORTED, "LReg[{reg}] of lane {lane} decides more than values of lanes here, and it was computed from a Dst datum whose value no source fixes", _HINT)  # fmt: skip


@njit(inline="always")
def both(lanes: Any) -> Any:
    """Marks of both causes in `lanes` (bit mask, int64)."""
    return lanes | lanes << 32


@njit(inline="always")
def either(marks: Any) -> Any:
    """Lanes (bit mask) that have a mark of any cause."""
    return (marks | marks >> 32) & _LOW


@njit(inline="always")
def spread(marks: Any) -> Any:
    """Marks of both causes where `marks` has any."""
    return both(either(marks))


@njit(inline="always")
def of(s: Any, cell: Any) -> Any:
    """Marks of a cell."""
    return s.lane_doubt[cell]


@njit(inline="always")
def of_lreg(reg: Any) -> Any:
    """Cell of LReg[reg]."""
    return np.int64(LREG16) if reg == LREG16 else reg & 15


@njit
def lanes_of(row: Any) -> Any:
    """Scratch row or condition codes, (32,) uint32, as a bit mask of lanes that are not 0."""
    found = np.int64(0)
    for lane in range(LANES):
        found |= np.int64(1 if row[lane] else 0) << lane
    return found


@njit
def enabled(s: Any) -> Any:
    """Marks of both causes in the lanes that are enabled."""
    return both(lanes_of(s.cc)) if s.cc_en[0] else np.int64(EVERY)


@njit(inline="always")
def of_flags(s: Any) -> Any:
    """Marks of the condition codes, 0 while these are not in use."""
    return of(s, FLAGS) if s.cc_en[0] else np.int64(0)


@njit
def _lowest(lanes: Any) -> Any:
    for lane in range(LANES):
        if (lanes >> lane) & 1:
            return np.int64(lane)
    return np.int64(0)


@njit
def refused_by_flags(s: Any, marks: Any) -> Any:
    """DONE, or the error of what condition codes with `marks` would decide."""
    lanes = either(marks)
    return refuse(s, OPEN, lane=_lowest(lanes)) if lanes else np.int64(DONE)


@njit
def open_refused(s: Any) -> Any:
    """DONE, or the error of what open lanes would decide."""
    return refused_by_flags(s, of_flags(s))


@njit
def lane_doubt_refused(s: Any, reg: Any, marks: Any) -> Any:
    """DONE, or the error of what `marks` of LReg[reg] would decide."""
    lanes = either(marks)
    return refuse(s, REGISTER, reg=reg, lane=_lowest(lanes)) if lanes else np.int64(DONE)


@njit
def is_open(s: Any, lanes: Any) -> Any:
    """True when it is not known whether any of `lanes` (bit mask) is enabled."""
    unsure = either(of_flags(s))
    return lanes & unsure != 0 and lanes & either(enabled(s)) & ~unsure == 0


@njit
def look(s: Any) -> None:
    """Settle whether there is a mark anywhere."""
    found = np.int64(0)
    for cell in range(CELLS):
        found |= s.lane_doubt[cell]
    for k in range(min(s.stage_used[0], LANES)):
        found |= s.stage_doubt[k]
    s.doubt[2] = 1 if found else 0


@njit
def put(s: Any, cell: Any, marks: Any) -> None:
    """A cell has these marks from now on."""
    s.lane_doubt[cell] = marks
    look(s)


@njit
def write(s: Any, reg: Any, where: Any, marks: Any) -> None:
    """LReg[reg] (0-7, 11-14, 16) has `marks` in the lanes `where`, once its write is visible."""
    cell = of_lreg(reg)
    if s.stage_latency[0]:
        s.lane_doubt_new[cell] = marks & where
        s.doubt[2] |= 1 if marks & where else 0
    else:
        put(s, cell, (s.lane_doubt[cell] & ~where) | (marks & where))


@njit
def staged(s: Any, k: Any, reg: Any) -> None:
    """The staged write `k` to LReg[reg] takes the marks that its instruction gave it."""
    s.stage_doubt[k] = s.lane_doubt_new[of_lreg(reg)] if s.doubt[2] else 0


@njit
def staged_lanes(s: Any, k: Any) -> Any:
    """Lanes (bit mask) that the staged write `k` reaches, or may reach."""
    return lanes_of(s.stage_mask[k]) | either(s.stage_doubt[k])


@njit
def yield_to(s: Any, k: Any, winner: Any) -> None:
    """The staged write `k` leaves the lanes that `winner` writes to it."""
    s.stage_doubt[k] &= ~both(lanes_of(s.stage_mask[winner]))


@njit
def apply(s: Any, k: Any, reg: Any) -> None:
    """The staged write `k` to LReg[reg] becomes visible."""
    where = both(staged_lanes(s, k))
    cell = of_lreg(reg)
    s.lane_doubt[cell] = (s.lane_doubt[cell] & ~where) | s.stage_doubt[k]
