"""Cells whose value no source fixes: they are computed with, and refused where they would show.

Src banks keep what earlier work left in the rows that nobody writes again, and instructions of the
matrix unit take whole blocks, such rows among them.  Where such an operand has no known meaning, as
what UNPACR_NOP clears to one has none,
the results that it takes part in are in doubt, the others are not.  A doubtful result may lie in
Dst and go through Src; it ends in a refusal when something packs it, loads it into a vector
register or a core, and it ends without one when it is overwritten.

A Src cell holds its causes in its low bits, which no format has.  A row of Dst that has doubtful
cells has the bit DOUBT in its flag, and its columns in `s.dst_doubt`, 16 bits for each cause; a
32-bit datum counts with both of its rows.  Whoever writes a whole row ends doubt by its flag;
whoever writes single cells uses `hold` and `settle`.  Nobody looks while `s.doubt[0]` is 0, nor for
doubtful Src cells while `s.doubt[1]` is.
"""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import dest
from bhemu.tensix.quirks import refuse
from bhemu.tensix.status import UNSUPPORTED, error

DOUBT = 8  # bit of a row's flag
EXPONENT, DENORMAL = 1, 2  # causes, bits
CAUSES = EXPONENT | DENORMAL
_COLUMNS = 0xFFFF

_EXPONENT = error(
    "FPU-EXPONENT",
    UNSUPPORTED,
    "Dst row {row}, column {column} is read; the word pushed at {pc:#x} computed it from a datum of"
    " a format with 5-bit exponents that has bits beyond them, or of a bank that UNPACR_NOP has"
    " cleared to one",
    "the Src bank held data of another format there, perhaps left by an earlier program; or see"
    " UNPACR-NOP-VALUE",
)
_DENORMAL = error(
    "FPU-DENORMALS",
    UNSUPPORTED,
    "Dst row {row}, column {column} is read; the word pushed at {pc:#x} computed a product for it "
    "from a denormal in SrcB, with ALU_ACC_CTRL_Zero_Flag_disabled_src set",
    "clear the bit: the ISA text says that products flush denormals, element-wise products of the "
    "golden model do not flush them then",
)


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
