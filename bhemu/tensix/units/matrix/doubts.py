"""Which results of an instruction of the matrix unit are in doubt (tensix/doubt.py).

These functions fill `s.doubt_row`, one mask for each row of the result; they run only where an
operand or a row of Dst gives reason to.  A product with a certain zero is certain.  Source:
MVMUL and ELWMUL, Wormhole ISA; ttsim's Tensix model, which refuses these operands.
"""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import dest, doubt
from bhemu.tensix.banks import SRCA, SRCB
from bhemu.tensix.dest import COLUMNS
from bhemu.tensix.doubt import CAUSES, DENORMAL, EXPONENT
from bhemu.tensix.units.matrix import transfer

WIDE = 0x70000000  # exponent bits that a format with 5-bit exponents does not have
_EXPONENT = 0x7F800000
_FRACTION = 0x007FFFFF
_FAR = 12  # a product shifted further than this to the exponent of its sum adds nothing


@njit
def _causes(cell: Any, wide: Any) -> Any:
    """Causes of a Src cell (int64); `wide`: exponent bits that its format does not have."""
    return cell & CAUSES | (EXPONENT if cell & wide else 0)


@njit
def from_dst(s: Any, first: Any, rows: Any, wide: Any) -> Any:
    """Doubts of the Dst rows that the result is added to; 1 when there are any."""
    found = np.int64(0)
    for r in range(rows):
        row = first + r
        at = dest.adj32(row & (dest.ROWS - 1)) if wide else dest.row16(s, row)
        s.doubt_row[r] = doubt.of_datums(s, at, wide)
        found |= s.doubt_row[r]
    return np.int64(1 if found else 0)


@njit
def clear(s: Any, rows: Any) -> Any:
    """No doubts, where nothing is added to."""
    for r in range(rows):
        s.doubt_row[r] = 0
    return np.int64(0)


@njit
def _product_causes(s: Any, k: Any, r: Any, j: Any, wide: Any) -> Any:
    # `k`: banks and rows of a product, as in `from_products`.
    found = np.int64(0)
    for i in range(COLUMNS):
        a = np.int64(s.src[SRCA, k[0], ((k[1] & 48) + i) & 63, j])
        b = np.int64(s.src[SRCB, k[2], (k[3] + r) & 63, i])
        of_a, of_b = _causes(a, wide), _causes(b, wide)
        if (of_a | of_b) and (of_a or a & _EXPONENT) and (of_b or b & _EXPONENT):
            found |= of_a | of_b
    return found


@njit
def from_products(s: Any, k: Any, rows: Any, wide: Any) -> Any:
    """Add the doubts of sums of products; `k`: (bank, row) of SrcA and of SrcB.

    `wide`: bits of a cell that put it in doubt.  1 when there are any.
    """
    found = np.int64(0)
    for r in range(rows):
        for j in range(COLUMNS):
            s.doubt_row[r] |= doubt.columns(_product_causes(s, k, r, j, wide), j)
        found |= s.doubt_row[r]
    return np.int64(1 if found else 0)


@njit
def _counts(s: Any, r: Any, i: Any, j: Any, exponent: Any, bias: Any) -> Any:
    # Whether a product of a SrcA exponent and the smallest of SrcB would change the sum it is in.
    if bias == 0:  # integers have no exponents
        return True
    at = (r & 7) * COLUMNS + j
    largest = np.int64(s.term_exponent[i >> 3, at]) + bias
    own = exponent + 1 + bias
    largest = max(largest, own)
    return largest > 0 and largest - own <= _FAR


@njit
def from_denormals(s: Any, k: Any, rows: Any, mask: Any, bias: Any) -> Any:
    """Add the doubts of products whose SrcB datum is a denormal that may count.

    `k`: (bank, row) of SrcA and of SrcB; `mask`: bits of a SrcB cell that its format has; `bias`:
    of the exponents, or 0 for integers.  The sums must be there.  1 when there are any.
    """
    found = np.int64(0)
    for r in range(rows):
        for i in range(COLUMNS):
            b = np.int64(s.src[SRCB, k[2], (k[3] + r) & 63, i]) & mask
            if b & _EXPONENT or b & _FRACTION == 0:
                continue
            for j in range(COLUMNS):
                a = np.int64(s.src[SRCA, k[0], ((k[1] & 48) + i) & 63, j]) & _EXPONENT
                if a and _counts(s, r, np.int64(i), j, a >> 23, bias):
                    s.doubt_row[r] |= doubt.columns(DENORMAL, j)
        found |= s.doubt_row[r]
    return np.int64(1 if found else 0)


@njit
def from_elements(s: Any, k: Any, multiply: Any, wide: Any) -> Any:
    """Add the doubts of element-wise results of the Blocks `k`; 1 when there are any."""
    found = np.int64(0)
    for r in range(8):
        for j in range(COLUMNS):
            a = np.int64(s.src[SRCA, k.bank_a, (k.row_a + r) & 63, j])
            column = j if k.column else 0
            b = np.int64(s.src[SRCB, k.bank_b, (k.row_b + r * k.step) & 63, column])
            of_a, of_b = _causes(a, wide), _causes(b, wide)
            zero_a = of_a == 0 and a & _EXPONENT == 0
            zero_b = of_b == 0 and b & _EXPONENT == 0 and k.smallest != 0
            if not (multiply and (zero_a or zero_b)):
                s.doubt_row[r] |= doubt.columns(of_a | of_b, j)
        found |= s.doubt_row[r]
    return np.int64(1 if found else 0)


@njit
def from_pool(s: Any, row_a: Any, row_b: Any) -> Any:
    """Add the doubts of maxima of 16 rows of SrcA; they go to the first row.  1 when there are."""
    a, b = s.matrix_bank[SRCA] & 1, s.matrix_bank[SRCB] & 1
    scale = np.int64(0)
    for i in range(COLUMNS):
        scale |= np.int64(s.src[SRCB, b, row_b & 63, i]) & CAUSES
    for j in range(COLUMNS):
        found = scale
        for i in range(COLUMNS):
            found |= np.int64(s.src[SRCA, a, (row_a + i) & 63, j]) & CAUSES
        s.doubt_row[0] |= doubt.columns(found, j)
    return np.int64(1 if s.doubt_row[0] else 0)


@njit
def _tag(s: Any, which: Any, bank: Any, row: Any, column: Any, causes: Any) -> None:
    if causes:
        s.doubt[1] = 1
        s.src[which, bank, row, column] |= np.uint32(causes)


@njit
def copied_to_src(s: Any, which: Any, kind: Any, first: Any, row: Any, rows: Any) -> None:
    """The doubt of Dst rows, read in a GET way, for the rows from `row` on that hold them now."""
    bank, at = s.matrix_bank[which] & 1, transfer.storage_row(s, kind, first)
    halves = kind == transfer.GET_LOW or kind == transfer.GET_TF32
    for r in range(rows):
        mask = doubt.of_datums(s, at + r, halves)
        for j in range(COLUMNS):
            _tag(s, which, bank, (row + r) & 63, j, doubt.causes(mask, j))


@njit
def within_src(s: Any, row_a: Any, row_b: Any, rows: Any) -> None:
    """The doubt of SrcB rows, for their copies in SrcA."""
    a, b = s.matrix_bank[SRCA] & 1, s.matrix_bank[SRCB] & 1
    for r in range(rows):
        for j in range(COLUMNS):
            found = np.int64(s.src[SRCB, b, (row_b + r) & 63, j]) & CAUSES
            _tag(s, SRCA, a, (row_a + r) & 63, j, found)


@njit
def from_src(s: Any, which: Any, row: Any, spread: Any, rows: Any) -> None:
    """Doubts of rows copied from Src; `spread`: from row to row, 0 or 15: mask of the column."""
    bank = s.matrix_bank[which] & 1
    for r in range(rows):
        s.doubt_row[r] = 0
        for j in range(COLUMNS):
            cell = np.int64(s.src[which, bank, (row + r * spread[0]) & 63, j & spread[1]])
            s.doubt_row[r] |= doubt.columns(cell & CAUSES, j)


@njit
def note_moved(s: Any, t: Any, kind: Any, first: Any, rows: Any) -> None:
    """`s.doubt_row` for the Dst rows that a move has stored in a PUT way."""
    narrow = kind == transfer.PUT_BF16 or kind == transfer.PUT_FP16
    low = dest.LOW_HALF if kind == transfer.PUT_LOW else 0
    for i in range(rows):
        row = first + i
        at = dest.row16(s, row) if narrow else dest.adj32(row & (dest.ROWS - 1)) + low
        doubt.note(s, t, at, s.doubt_row[i])
