"""Sums of products and what adds them to Dst, datum by datum: the model of sixteen.py."""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import dest
from bhemu.tensix.banks import SRCA, SRCB
from bhemu.tensix.dest import COLUMNS
from bhemu.tensix.units.matrix.arithmetic import _cell_16, aligned, cut, group, plus, taken_16

_U, _I = np.uint32, np.int32
_ZERO, _ALL = _U(0), _U(0xFFFFFFFF)

_S = np.int16
_FAR = _S(14)  # a product shifted by 14 or more rounds to 0


@njit(forceinline=True)
def _aligned(a: Any, b: Any, distance: Any) -> Any:
    """a * b (`a` doubled) halved and shifted right by `distance` >= 0, half away from zero."""
    d = _S(min(distance, _FAR) & _S(15))
    p = _S(a * b)
    return _S(_S(_S(p + _S(_S(1) << d)) + _S(p >> _S(15))) >> _S(_S(d + _S(1)) & _S(15)))


@njit
def sums_by_datum(s: Any, a: Any, row_a: Any, b: Any, row_b: Any, phase: Any, rows: Any) -> None:
    """Both sums of `rows` x 16 outputs to s.term_sum, their unbiased exponents to term_exponent.

    SrcA rows from `row_a` (multiple of 16) of bank `a`, SrcB rows from `row_b` of bank `b`; the
    second sum takes k = 8-15.
    """
    ea, pa = s.src_exponent[SRCA, a], s.src_slice[SRCA, a, phase & 1]
    eb, pb = s.src_exponent[SRCB, b], s.src_slice[SRCB, b, (phase >> 1) & 1]
    for g in range(0, 16, 8):
        out_sum, out_exponent = s.term_sum[g >> 3], s.term_exponent[g >> 3]
        top = (row_a & 48) + g
        for r in range(rows):
            x, y = eb[(row_b + r) & 63], pb[(row_b + r) & 63]
            x0, x1, x2, x3 = x[g], x[g + 1], x[g + 2], x[g + 3]
            x4, x5, x6, x7 = x[g + 4], x[g + 5], x[g + 6], x[g + 7]
            y0, y1, y2, y3 = y[g], y[g + 1], y[g + 2], y[g + 3]
            y4, y5, y6, y7 = y[g + 4], y[g + 5], y[g + 6], y[g + 7]
            out = (r & 7) * COLUMNS
            # Written out for the eight products: the loop over columns becomes vector code.
            for j in range(COLUMNS):
                e0 = _S(ea[top, j] + x0)
                e1 = _S(ea[top + 1, j] + x1)
                e2 = _S(ea[top + 2, j] + x2)
                e3 = _S(ea[top + 3, j] + x3)
                e4 = _S(ea[top + 4, j] + x4)
                e5 = _S(ea[top + 5, j] + x5)
                e6 = _S(ea[top + 6, j] + x6)
                e7 = _S(ea[top + 7, j] + x7)
                e = max(max(max(e0, e1), max(e2, e3)), max(max(e4, e5), max(e6, e7)))
                t = _S(
                    _aligned(pa[top, j], y0, _S(e - e0)) + _aligned(pa[top + 1, j], y1, _S(e - e1))
                )
                t = _S(t + _aligned(pa[top + 2, j], y2, _S(e - e2)))
                t = _S(t + _aligned(pa[top + 3, j], y3, _S(e - e3)))
                t = _S(t + _aligned(pa[top + 4, j], y4, _S(e - e4)))
                t = _S(t + _aligned(pa[top + 5, j], y5, _S(e - e5)))
                t = _S(t + _aligned(pa[top + 6, j], y6, _S(e - e6)))
                t = _S(t + _aligned(pa[top + 7, j], y7, _S(e - e7)))
                out_sum[out + j] = t
                out_exponent[out + j] = e


@njit
def add_sums_by_datum(s: Any, c: Any, first: Any, rows: Any, bias: Any) -> None:
    """Both sums of products added to `rows` rows of 16-bit cells `c`, a loop over the datums."""
    least = max(bias, _I(0))
    dest.spoil(s, first, rows)
    for r in range(rows):
        row, at = dest.row16(s, first + r), (r & 7) * COLUMNS
        cells, keep = s.dst[row], _ALL if s.dst_valid[row] else _ZERO
        for j in range(COLUMNS):
            s0, x0, m0 = group(s.term_sum[0, at + j], s.term_exponent[0, at + j], bias, least)
            s1, x1, m1 = group(s.term_sum[1, at + j], s.term_exponent[1, at + j], bias, least)
            old = _U(_U(cells[j]) & keep)
            sign, xd, md = taken_16(c, old)
            x = max(max(x0, x1), xd)
            t = _I(cut(aligned(md, _ZERO, _I(x - xd)), _ZERO))
            t = plus(t, cut(aligned(m0, s0, _I(x - x0)), s0), s0 != sign)
            t = plus(t, cut(aligned(m1, s1, _I(x - x1)), s1), s1 != sign)
            cells[j] = _cell_16(c, sign, x, t)
        s.dst_valid[row] = 1
