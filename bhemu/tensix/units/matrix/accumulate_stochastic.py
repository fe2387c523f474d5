"""Accumulate, normalise, round stochastically: accumulate.py for the modes of stochastic.py.

Only the last rounding, that of the sum, goes by chance.  A second entry, because few programs use
it.
"""

from typing import Any

import numpy as np

from bhemu.bits import Word, bits
from bhemu.jit.subset import njit
from bhemu.tensix import dest, stochastic
from bhemu.tensix.dest import COLUMNS, LOW_HALF
from bhemu.tensix.second_entries import FPU_STOCHASTIC, second_entry
from bhemu.tensix.status import DONE
from bhemu.tensix.units.matrix import accumulate, operands

_U, _I = np.uint32, np.int32
_ZERO, _ONE, _ALL = _U(0), _U(1), _U(0xFFFFFFFF)
_MIDDLE = 256  # added to the bias


class _Results(Word):
    """What the second entry takes: the arguments of accumulate.add_sums and add_terms."""

    first = bits(11, 0)
    rows = bits(15, 12)
    wide = bits(16)
    five_bit = bits(17)
    terms = bits(18)
    add_dst = bits(19)
    bias = bits(28, 20)


@njit
def _terms(s: Any, f: Any, at: Any) -> Any:
    """(sign, exponent, magnitude) of both terms of result `at`."""
    if f.terms:
        sign, x = _U(s.term_sum[0, at]), _I(s.term_exponent[0, at])
        return sign, x, _U(s.term_magnitude[at]), _ZERO, _I(0), _ZERO
    bias = _I(f.bias - _MIDDLE)
    least = max(bias, _I(0))
    s0, x0, m0 = accumulate.group(s.term_sum[0, at], s.term_exponent[0, at], bias, least)
    s1, x1, m1 = accumulate.group(s.term_sum[1, at], s.term_exponent[1, at], bias, least)
    return s0, x0, m0, s1, x1, m1


@njit
def _total(s: Any, f: Any, at: Any, old: Any) -> Any:
    """Exponent and signed sum of a result; `old`: sign, exponent and magnitude in Dst."""
    s0, x0, m0, s1, x1, m1 = _terms(s, f, at)
    sign, xd, md = old
    x = max(max(x0, x1), max(xd, _I(0)))
    md = accumulate.aligned(md, _ZERO, _I(x - xd))
    m0, m1 = accumulate.aligned(m0, s0, _I(x - x0)), accumulate.aligned(m1, s1, _I(x - x1))
    if not f.wide:
        md = accumulate.cut(md, _ZERO)
        m0, m1 = accumulate.cut(m0, s0), accumulate.cut(m1, s1)
    total = accumulate.plus(_I(md), m0, s0 != sign)
    return x, accumulate.plus(total, m1, s1 != sign)


@njit
def _mantissa(s: Any, total: Any, right: Any) -> Any:
    """The magnitude of a sum shifted right by `right` (left when negative), rounded."""
    magnitude, n = np.int64(abs(total)), max(np.int64(right), np.int64(0))
    low = magnitude & ((np.int64(1) << n) - 1)
    m = (magnitude >> n) + (stochastic.up(s, stochastic.FPU, low, n) if n and magnitude else 0)
    return _U(m << max(np.int64(-right), np.int64(0)))


@njit
def _row_16(s: Any, f: Any, r: Any) -> None:
    c = accumulate.FP16 if f.five_bit else accumulate.BF16
    row = dest.row16(s, f.first + r)
    cells, keep = s.dst[row], _ALL if f.add_dst and s.dst_valid[row] else _ZERO
    for j in range(COLUMNS):
        old = _U(_U(cells[j]) & keep)
        sign, xd, md = accumulate.taken_16(c, old)
        x, total = _total(s, f, r * COLUMNS + j, (sign, xd, md))
        shift = accumulate.shift_of(_U(abs(total)))
        m = _mantissa(s, total, _I(c.point) - shift)
        cells[j] = accumulate.assembled_16(c, sign, _I(x - shift), total, m, x)
    s.dst_valid[row] = 1


@njit
def _row_32(s: Any, f: Any, r: Any) -> None:
    row = dest.adj32((f.first + r) & (dest.ROWS - 1))
    high, low = s.dst[row], s.dst[row + LOW_HALF]
    keep = _ALL if f.add_dst and s.dst_valid[row] else _ZERO
    for j in range(COLUMNS):
        sign, xd, md = accumulate.taken_32(_U(_U(high[j]) & keep), _U(_U(low[j]) & keep))
        x, total = _total(s, f, r * COLUMNS + j, (sign, xd, md))
        shift = accumulate.shift_of(_U(abs(total)))
        m = _mantissa(s, total, -shift)
        new = accumulate.assembled_32(sign, _I(x - shift), total, m, x)
        high[j], low[j] = np.uint16(_U(new >> _U(16))), np.uint16(_U(new & _U(0xFFFF)))
    s.dst_valid[row] = 1
    dest.written(s, row + LOW_HALF)


def _round(s: Any, t: Any, f: Any) -> Any:
    if not f.wide:
        dest.spoil(s, f.first, f.rows)
    for r in range(f.rows):
        if f.wide:
            _row_32(s, f, np.int64(r))
        else:
            _row_16(s, f, np.int64(r))
    return DONE


_entry = second_entry(FPU_STOCHASTIC, _round, _Results)
_ROWS, _WIDE, _FIVE = _Results.rows.lo, _Results.wide.lo, _Results.five_bit.lo
_TERMS, _ADD, _BIAS = _Results.terms.lo, _Results.add_dst.lo, _Results.bias.lo


@njit
def add(s: Any, t: Any, m: Any, first: Any, rows: Any, add_dst: Any, bias: Any) -> None:
    """Rows of results to Dst; `m`: wide, five_bit, and 1 for terms, 0 for sums of products."""
    wide, five_bit, terms = m
    word = (first & (dest.ROWS - 1)) | rows << _ROWS | wide << _WIDE | five_bit << _FIVE
    word |= terms << _TERMS | (1 if add_dst else 0) << _ADD | (bias + _MIDDLE) << _BIAS
    _entry(s, t, word)


@njit
def add_terms(s: Any, t: Any, wide: Any, five_bit: Any, first: Any, add_dst: Any) -> None:
    """accumulate.add_terms, stochastically where the configuration and the options say so."""
    if s.stochastic[0] and operands.stochastically(s, t) and stochastic.modelled(s):
        add(s, t, (wide, five_bit, 1), first, np.int64(8), add_dst, np.int64(0))
    else:
        accumulate.add_terms(s, wide, five_bit, first, add_dst)
