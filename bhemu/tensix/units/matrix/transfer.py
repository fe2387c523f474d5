"""Rows between Dst and Src as MOV instructions copy them, with marks of unspecified values."""

from typing import Any

import numpy as np

from bhemu.jit.intrinsics import flat
from bhemu.jit.subset import njit
from bhemu.tensix import banks, config, dest, unspecified
from bhemu.tensix import config_fields as cf
from bhemu.tensix.banks import SRCA, SRCB
from bhemu.tensix.dest import COLUMNS, LOW_HALF
from bhemu.tensix.unspecified import CAUSES, DENORMAL, EXPONENT

# Rows on their way between Src banks and Dst: up to 8 rows pass through scratch as Src cells.
#
# The caller has checked that 8 rows start at a multiple of 8 and 4 at a multiple of 4.  Aligned
# rows are contiguous in every store (in 32-bit Dst: high halves and low halves each), so the loops
# run over rows * 16 datums at once: loops over the 16 columns of one row are unrolled too early to
# be vectorised, and so are those whose start is not visibly positive.

# How Src cells are stored into Dst.
PUT_BF16, PUT_FP16, PUT_32, PUT_LOW, PUT_32_LOW = range(5)
# How Dst is read as Src cells.
GET_BF16, GET_FP16, GET_HIGH, GET_LOW, GET_TF32 = range(5)

_EXPONENT = np.uint32(0x7F800000)
_ZERO = np.uint32(0)


@njit
def smallest_exponent(s: Any, t: Any) -> Any:
    """Smallest exponent, in place in a cell, that a move does not flush to zero (uint32)."""
    keep = config.get(s, config.bank(s, t), cf.ALU_ACC_CTRL_Zero_Flag_disabled_src)
    return np.uint32(0) if keep else np.uint32(0x00800000)


@njit(forceinline=True)
def _flushed(v: Any, mask: Any, smallest: Any) -> Any:
    return np.uint32(v & mask) if (v & _EXPONENT) >= smallest else _ZERO


@njit
def fetch(s: Any, which: Any, row: Any, rows: Any, mask: Any, smallest: Any) -> None:
    """`rows` rows of the matrix bank of SRCA or SRCB to scratch, flushed, then masked."""
    bank = flat(s.src[which, s.matrix_bank[which] & 1])
    scratch = flat(s.lane_tmp)
    start = (row & 63) * COLUMNS
    for i in range(rows * COLUMNS):
        scratch[i] = _flushed(bank[start + i], mask, smallest)


@njit
def fetch_broadcast(
    s: Any, row: Any, rows: Any, step: Any, columns: Any, mask: Any, smallest: Any
) -> None:
    """SrcB rows `row`, `row` + `step`, ... to scratch; `columns` 0: only column 0, 15: all."""
    bank = s.matrix_bank[1] & 1
    scratch = flat(s.lane_tmp)
    for i in range(rows):
        r = (row + i * step) & 63
        for col in range(COLUMNS):
            v = s.src[1, bank, r, col & columns]
            scratch[i * COLUMNS + col] = _flushed(v, mask, smallest)


@njit
def store(s: Any, which: Any, row: Any, rows: Any) -> None:
    """Scratch to `rows` rows of the matrix bank."""
    banks.changed(s, which, s.matrix_bank[which])
    bank = flat(s.src[which, s.matrix_bank[which] & 1])
    scratch = flat(s.lane_tmp)
    start = (row & 63) * COLUMNS
    for i in range(rows * COLUMNS):
        bank[start + i] = scratch[i]
    if which == banks.SRCA:
        banks.settle(s, s.matrix_bank[which] & 1, row & 63, rows)


@njit
def put(s: Any, kind: Any, first: Any, rows: Any) -> None:
    """Scratch to `rows` Dst rows from row `first`, in one of the PUT ways; they become valid."""
    cells, scratch = flat(s.dst), flat(s.lane_tmp)
    if kind == PUT_BF16 or kind == PUT_FP16:
        start = dest.row16(s, first) * COLUMNS
        dest.spoil(s, first, rows)
        if kind == PUT_BF16:
            for i in range(rows * COLUMNS):
                cells[start + i] = np.uint16(dest.enc_bf16(scratch[i] >> 16))
        else:
            for i in range(rows * COLUMNS):
                v = scratch[i]
                fp16 = ((v >> 16) & 0x8000) | ((v >> 13) & 0x7FFF)
                cells[start + i] = np.uint16(dest.enc_fp16(fp16))
        for i in range(rows):
            dest.mark16(s, first + i, 1)
        return
    if kind == PUT_LOW:
        # Scratch as bf16 into the low halves; high halves of rows that are not valid become zero.
        high = dest.adj32(first & (dest.ROWS - 1))
        for i in range(rows):
            if not s.dst_valid[high + i]:
                s.dst[high + i] = np.uint16(0)
        start = (high + LOW_HALF) * COLUMNS
        for i in range(rows * COLUMNS):
            cells[start + i] = np.uint16(dest.enc_bf16(scratch[i] >> 16))
    else:
        start = dest.adj32(first & (dest.ROWS - 1)) * COLUMNS
        low = start + LOW_HALF * COLUMNS
        for i in range(rows * COLUMNS):
            cells[start + i] = np.uint16(dest.enc_bf16(scratch[i] >> 16))
        for i in range(rows * COLUMNS):
            cells[low + i] = np.uint16(scratch[i] & 0xFFFF)
        if kind == PUT_32_LOW:
            for i in range(rows * COLUMNS):
                cells[low + i] = np.uint16(cells[low + i] | cells[start + i])
    for i in range(rows):
        row = dest.adj32((first + i) & (dest.ROWS - 1))
        s.dst_valid[row] = s.dst_valid[row] | 1 if kind == PUT_LOW else 1
        dest.written(s, row + LOW_HALF)


@njit
def storage_row(s: Any, kind: Any, first: Any) -> Any:
    """Storage row of Dst row `first`, read in one of the GET ways, whose flag counts."""
    if kind != GET_BF16 and kind != GET_FP16:
        return dest.adj32(first & (dest.ROWS - 1))
    return dest.row16(s, first)


@njit
def get(s: Any, kind: Any, first: Any, rows: Any) -> None:
    """`rows` Dst rows from row `first` to scratch, in one of the GET ways; not valid: zeros."""
    row = storage_row(s, kind, first)
    start = (row + (LOW_HALF if kind == GET_LOW else 0)) * COLUMNS
    count = rows * COLUMNS
    cells, scratch = flat(s.dst), flat(s.lane_tmp)
    if kind == GET_FP16:
        for i in range(count):
            v = dest.dec_fp16(np.uint32(cells[start + i]))
            scratch[i] = np.uint32(((v & 0x8000) << 16) | ((v & 0x7FFF) << 13))
    elif kind == GET_TF32:
        low = start + LOW_HALF * COLUMNS
        for i in range(count):
            v = np.uint32(dest.dec_bf16(np.uint32(cells[start + i])) << 16)
            scratch[i] = np.uint32(v | (cells[low + i] & 0xE000))
    else:
        for i in range(count):
            scratch[i] = np.uint32(dest.dec_bf16(np.uint32(cells[start + i])) << 16)
    for i in range(rows):
        if not s.dst_valid[row + i]:
            for col in range(COLUMNS):
                scratch[i * COLUMNS + col] = np.uint32(0)


# Which results of an instruction of the matrix unit are in doubt (tensix/unspecified.py).
#
# These functions fill `s.doubt_row`, one mask for each row of the result, for note_result of
# unspecified.py; they run only where an operand or a row of Dst gives reason to.  A product with a
# certain zero is certain.  Source: MVMUL and ELWMUL, Wormhole ISA; ttsim's Tensix model, which
# refuses these operands.

WIDE = 0x70000000  # exponent bits that a format with 5-bit exponents does not have
_EXPONENT_MASK = 0x7F800000
_FRACTION = 0x007FFFFF
_FAR = 12  # a product shifted further than this to the exponent of its sum adds nothing


@njit
def _causes(cell: Any, wide: Any) -> Any:
    """Causes of a Src cell (int64); `wide`: exponent bits that its format does not have."""
    return cell & CAUSES | (EXPONENT if cell & wide else 0)


@njit
def from_dst(s: Any, first: Any, rows: Any, wide: Any) -> None:
    """Doubts of the Dst rows that the result is added to."""
    for r in range(rows):
        row = first + r
        at = dest.adj32(row & (dest.ROWS - 1)) if wide else dest.row16(s, row)
        s.doubt_row[r] = unspecified.of_datums(s, at, wide)


@njit
def clear(s: Any, rows: Any) -> None:
    """No doubts, where nothing is added to."""
    for r in range(rows):
        s.doubt_row[r] = 0


@njit
def from_products(s: Any, k: Any, rows: Any, wide: Any) -> None:
    """Add the doubts of sums of products; `k`: (bank, row) of SrcA and of SrcB.

    `wide`: bits of a cell that put it in doubt.
    """
    for r in range(rows):
        for j in range(COLUMNS):
            causes = np.int64(0)
            for i in range(COLUMNS):
                a = np.int64(s.src[SRCA, k[0], ((k[1] & 48) + i) & 63, j])
                b = np.int64(s.src[SRCB, k[2], (k[3] + r) & 63, i])
                of_a, of_b = _causes(a, wide), _causes(b, wide)
                if (of_a | of_b) and (of_a or a & _EXPONENT_MASK) and (of_b or b & _EXPONENT_MASK):
                    causes |= of_a | of_b
            s.doubt_row[r] |= unspecified.columns(causes, j)


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
def from_denormals(s: Any, k: Any, rows: Any, mask: Any, bias: Any) -> None:
    """Add the doubts of products whose SrcB datum is a denormal that may count.

    `k`: (bank, row) of SrcA and of SrcB; `mask`: bits of a SrcB cell that its format has; `bias`:
    of the exponents, or 0 for integers.  The sums must be there.
    """
    for r in range(rows):
        for i in range(COLUMNS):
            b = np.int64(s.src[SRCB, k[2], (k[3] + r) & 63, i]) & mask
            if b & _EXPONENT_MASK or b & _FRACTION == 0:
                continue
            for j in range(COLUMNS):
                a = np.int64(s.src[SRCA, k[0], ((k[1] & 48) + i) & 63, j]) & _EXPONENT_MASK
                if a and _counts(s, r, np.int64(i), j, a >> 23, bias):
                    s.doubt_row[r] |= unspecified.columns(DENORMAL, j)


@njit
def from_elements(s: Any, k: Any, multiply: Any, wide: Any) -> None:
    """Add the doubts of element-wise results of the Blocks `k`."""
    for r in range(8):
        for j in range(COLUMNS):
            a = np.int64(s.src[SRCA, k.bank_a, (k.row_a + r) & 63, j])
            column = j if k.column else 0
            b = np.int64(s.src[SRCB, k.bank_b, (k.row_b + r * k.step) & 63, column])
            of_a, of_b = _causes(a, wide), _causes(b, wide)
            zero_a = of_a == 0 and a & _EXPONENT_MASK == 0
            zero_b = of_b == 0 and b & _EXPONENT_MASK == 0 and k.smallest != 0
            if not (multiply and (zero_a or zero_b)):
                s.doubt_row[r] |= unspecified.columns(of_a | of_b, j)


@njit
def from_pool(s: Any, row_a: Any, row_b: Any) -> None:
    """Add the doubts of maxima of 16 rows of SrcA; they go to the first row."""
    a, b = s.matrix_bank[SRCA] & 1, s.matrix_bank[SRCB] & 1
    scale = np.int64(0)
    for i in range(COLUMNS):
        scale |= np.int64(s.src[SRCB, b, row_b & 63, i]) & CAUSES
    for j in range(COLUMNS):
        found = scale
        for i in range(COLUMNS):
            found |= np.int64(s.src[SRCA, a, (row_a + i) & 63, j]) & CAUSES
        s.doubt_row[0] |= unspecified.columns(found, j)


@njit
def _tag(s: Any, which: Any, bank: Any, row: Any, column: Any, causes: Any) -> None:
    if causes:
        s.doubt[1] = 1
        s.src[which, bank, row, column] |= np.uint32(causes)


@njit
def copied_to_src(s: Any, which: Any, kind: Any, first: Any, row: Any, rows: Any) -> None:
    """The doubt of Dst rows, read in a GET way, for the rows from `row` on that hold them now."""
    bank, at = s.matrix_bank[which] & 1, storage_row(s, kind, first)
    halves = kind == GET_LOW or kind == GET_TF32
    for r in range(rows):
        mask = unspecified.of_datums(s, at + r, halves)
        for j in range(COLUMNS):
            _tag(s, which, bank, (row + r) & 63, j, unspecified.causes(mask, j))


@njit
def within_src(s: Any, row_a: Any, row_b: Any) -> None:
    """The doubt of four SrcB rows, for their copies in SrcA."""
    a, b = s.matrix_bank[SRCA] & 1, s.matrix_bank[SRCB] & 1
    for r in range(4):
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
            s.doubt_row[r] |= unspecified.columns(cell & CAUSES, j)


@njit
def note_moved(s: Any, t: Any, kind: Any, first: Any, rows: Any) -> None:
    """`s.doubt_row` for the Dst rows that a move has stored in a PUT way."""
    narrow = kind == PUT_BF16 or kind == PUT_FP16
    low = dest.LOW_HALF if kind == PUT_LOW else 0
    for i in range(rows):
        row = first + i
        at = dest.row16(s, row) if narrow else dest.adj32(row & (dest.ROWS - 1)) + low
        unspecified.note(s, t, at, s.doubt_row[i])
