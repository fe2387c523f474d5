"""Rows on their way between Src banks and Dst: up to 8 rows pass through scratch as Src cells.

The caller has checked that 8 rows start at a multiple of 8 and 4 at a multiple of 4.  Aligned
rows are contiguous in every store (in 32-bit Dst: high halves and low halves each), so the loops
run over rows * 16 datums at once: loops over the 16 columns of one row are unrolled too early to
be vectorised, and so are those whose start is not visibly positive.
"""

from typing import Any

import numpy as np

from bhemu.jit.flat import flat
from bhemu.jit.subset import njit
from bhemu.tensix import banks, config, dest
from bhemu.tensix import config_fields as cf
from bhemu.tensix.dest import COLUMNS, LOW_HALF

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
def _put_16(s: Any, kind: Any, first: Any, rows: Any) -> None:
    cells = flat(s.dst)
    scratch = flat(s.lane_tmp)
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


@njit
def _put_low(s: Any, first: Any, rows: Any) -> None:
    """Scratch as bf16 into the low halves; high halves of rows that are not valid become zero."""
    high = dest.adj32(first & (dest.ROWS - 1))
    for i in range(rows):
        if not s.dst_valid[high + i]:
            for col in range(COLUMNS):
                s.dst[high + i, col] = np.uint16(0)
    cells = flat(s.dst)
    scratch = flat(s.lane_tmp)
    start = (high + LOW_HALF) * COLUMNS
    for i in range(rows * COLUMNS):
        cells[start + i] = np.uint16(dest.enc_bf16(scratch[i] >> 16))


@njit
def _put_32(s: Any, kind: Any, first: Any, rows: Any) -> None:
    cells = flat(s.dst)
    scratch = flat(s.lane_tmp)
    start = dest.adj32(first & (dest.ROWS - 1)) * COLUMNS
    low = start + LOW_HALF * COLUMNS
    for i in range(rows * COLUMNS):
        cells[start + i] = np.uint16(dest.enc_bf16(scratch[i] >> 16))
    for i in range(rows * COLUMNS):
        cells[low + i] = np.uint16(scratch[i] & 0xFFFF)
    if kind == PUT_32_LOW:
        for i in range(rows * COLUMNS):
            cells[low + i] = np.uint16(cells[low + i] | cells[start + i])


@njit
def put(s: Any, kind: Any, first: Any, rows: Any) -> None:
    """Scratch to `rows` Dst rows from row `first`, in one of the PUT ways; they become valid."""
    if kind == PUT_BF16 or kind == PUT_FP16:
        _put_16(s, kind, first, rows)
        return
    if kind == PUT_LOW:
        _put_low(s, first, rows)
    else:
        _put_32(s, kind, first, rows)
    for i in range(rows):
        row = dest.adj32((first + i) & (dest.ROWS - 1))
        s.dst_valid[row] = s.dst_valid[row] | 1 if kind == PUT_LOW else 1
        dest.written(s, row + LOW_HALF)


@njit
def _get_cells(s: Any, kind: Any, start: Any, count: Any) -> None:
    cells = flat(s.dst)
    scratch = flat(s.lane_tmp)
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
    offset = LOW_HALF if kind == GET_LOW else 0
    _get_cells(s, kind, (row + offset) * COLUMNS, rows * COLUMNS)
    scratch = flat(s.lane_tmp)
    for i in range(rows):
        if not s.dst_valid[row + i]:
            for col in range(COLUMNS):
                scratch[i * COLUMNS + col] = np.uint32(0)
