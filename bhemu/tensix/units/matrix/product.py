"""Sums of products of SrcB rows and SrcA columns, on prepared banks (see prepare.py).

A sum runs over eight products.  Its exponent is the largest of theirs; every product is shifted to
it, rounded half away from zero, and the sum is exact.  All of it fits 16 bits.  Source: MVMUL,
Wormhole ISA; sums of products in ttsim's Tensix model.
"""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix.banks import SRCA, SRCB
from bhemu.tensix.dest import COLUMNS

_S = np.int16
_FAR = _S(14)  # a product shifted by 14 or more rounds to 0


@njit(forceinline=True)
def _aligned(a: Any, b: Any, distance: Any) -> Any:
    """a * b (`a` doubled) halved and shifted right by `distance` >= 0, half away from zero."""
    d = _S(min(distance, _FAR) & _S(15))
    p = _S(a * b)
    return _S(_S(_S(p + _S(_S(1) << d)) + _S(p >> _S(15))) >> _S(_S(d + _S(1)) & _S(15)))


@njit
def sums(s: Any, bank_a: Any, row_a: Any, bank_b: Any, row_b: Any, phase: Any, rows: Any) -> None:
    """Both sums of `rows` x 16 outputs to s.term_sum, their unbiased exponents to term_exponent.

    SrcA rows from `row_a` (multiple of 16), SrcB rows from `row_b`; the second sum takes k = 8-15.
    """
    ea, pa = s.src_exponent[SRCA, bank_a], s.src_slice[SRCA, bank_a, phase & 1]
    eb, pb = s.src_exponent[SRCB, bank_b], s.src_slice[SRCB, bank_b, (phase >> 1) & 1]
    for g in range(0, 16, 8):
        out_sum, out_exponent = s.term_sum[g >> 3], s.term_exponent[g >> 3]
        a = (row_a & 48) + g
        for r in range(rows):
            b = (row_b + r) & 63
            x, y = eb[b], pb[b]
            x0, x1, x2, x3 = x[g], x[g + 1], x[g + 2], x[g + 3]
            x4, x5, x6, x7 = x[g + 4], x[g + 5], x[g + 6], x[g + 7]
            y0, y1, y2, y3 = y[g], y[g + 1], y[g + 2], y[g + 3]
            y4, y5, y6, y7 = y[g + 4], y[g + 5], y[g + 6], y[g + 7]
            out = (r & 7) * COLUMNS
            # Written out for the eight products: the loop over columns becomes vector code.
            for j in range(COLUMNS):
                e0 = _S(ea[a, j] + x0)
                e1 = _S(ea[a + 1, j] + x1)
                e2 = _S(ea[a + 2, j] + x2)
                e3 = _S(ea[a + 3, j] + x3)
                e4 = _S(ea[a + 4, j] + x4)
                e5 = _S(ea[a + 5, j] + x5)
                e6 = _S(ea[a + 6, j] + x6)
                e7 = _S(ea[a + 7, j] + x7)
                e = max(max(max(e0, e1), max(e2, e3)), max(max(e4, e5), max(e6, e7)))
                t = _S(_aligned(pa[a, j], y0, _S(e - e0)) + _aligned(pa[a + 1, j], y1, _S(e - e1)))
                t = _S(t + _aligned(pa[a + 2, j], y2, _S(e - e2)))
                t = _S(t + _aligned(pa[a + 3, j], y3, _S(e - e3)))
                t = _S(t + _aligned(pa[a + 4, j], y4, _S(e - e4)))
                t = _S(t + _aligned(pa[a + 5, j], y5, _S(e - e5)))
                t = _S(t + _aligned(pa[a + 6, j], y6, _S(e - e6)))
                t = _S(t + _aligned(pa[a + 7, j], y7, _S(e - e7)))
                out_sum[out + j] = t
                out_exponent[out + j] = e
