"""GMPOOL in its general form: 5-bit exponents, integers, and scaling by the exponents of SrcB.

A datum is a sign, an exponent with the bias of two (that of SrcB's exponent is added to SrcA's, or
once more to Dst's), and ten bits of mantissa or magnitude.  Without scaling and with 8-bit
exponents it gives what pool.py gives faster.  Source: GMPOOL, Wormhole ISA; ttsim has none of this.
"""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import dest
from bhemu.tensix.banks import SRCA, SRCB
from bhemu.tensix.dest import COLUMNS, LOW_HALF
from bhemu.tensix.rwc import SRC_ROWS

# Styles of SrcA: mantissas of 7 bits, of 10 bits, 5-bit exponents, 8-bit integers.
BF16, TF32, FIVE_BIT, INT8 = range(4)
ROWS, DEPTH = 4, 16  # of Dst that pooling writes, of SrcA that are pooled
_LOWEST = -((511 << 10) + 1023)  # what a scale of zero makes of every datum


@njit
def _source(cell: Any, exponent: Any, style: Any) -> Any:
    # Comparable value of a SrcA cell under the exponent of its scale: sign, then exponent and
    # mantissa in one number.
    if exponent == 0:
        return np.int64(_LOWEST)
    own, man = (cell >> 23) & 0xFF, (cell >> 13) & 0x3FF
    if own == 0:
        return np.int64(0)
    if style == INT8:
        exp: Any = np.int64(0)
    elif style == FIVE_BIT:
        exp = (own & 31) + (exponent & 31)
    else:
        exp = own + exponent
    if style == BF16:
        man &= 0x3F8
    value = (exp << 10) + man
    return -value if cell >> 31 else value


@njit
def _from_dst(high: Any, low: Any, style: Any, wide: Any) -> Any:
    # Comparable value of a Dst datum; of integers only 19 bits of magnitude count.
    if style == INT8:
        value = low | (((high >> 8) & 7) << 16)
    elif style == FIVE_BIT:
        value = (((high & 31) + 15) << 10) + ((high >> 5) & 0x3FF)
    else:
        man = ((high >> 8) & 0x7F) << 3
        if wide:
            man += low >> 13
        value = (((high & 0xFF) + 127) << 10) + man
    return -value if high >> 15 else value


@njit
def _to_dst(sign: Any, magnitude: Any, style: Any, wide: Any) -> Any:
    # 32 bits of a Dst datum (16-bit Dst: the high half); exponents wrap around.
    exp, man = magnitude >> 10, magnitude & 0x3FF
    if style == INT8:
        return sign | ((exp & 7) << 10) | man
    if style == FIVE_BIT:
        return sign | (man << 21) | (((exp - 15) & 31) << 16) if exp & 0x3F else np.int64(0)
    cell = ((man & 0x3F8) << 21) | (((exp - 127) & 0xFF) << 16)
    if wide:
        cell |= (man & 7) << 13
    return sign | cell if exp else np.int64(0)


@njit
def _maximum(s: Any, j: Any, high: Any, low: Any, rows: Any, style: Any, wide: Any) -> Any:
    # The new Dst datum of column j; `rows`: first row of SrcA and row of SrcB.
    cells = s.src[SRCA, s.matrix_bank[SRCA] & 1]
    scale = s.src[SRCB, s.matrix_bank[SRCB] & 1, rows[1] & (SRC_ROWS - 1)]
    best, negative = _from_dst(high, low, style, wide), high >> 15
    for i in range(DEPTH):
        exponent = (np.int64(scale[i]) >> 23) & 0xFF
        value = _source(np.int64(cells[(rows[0] + i) & (SRC_ROWS - 1), j]), exponent, style)
        if value >= best:
            best, negative = value, np.int64(1 if value < 0 else 0)
    return _to_dst(negative << 31, abs(best), style, wide)


@njit
def pool(s: Any, row: Any, rows: Any, style: Any, wide: Any) -> None:
    """Maxima of the columns of 16 rows of SrcA and of Dst row `row`, into that row.

    `rows`: first row of SrcA, and row of SrcB, whose datum i scales row i.  `wide` = 1: 32-bit Dst.
    """
    at = dest.adj32(row & (dest.ROWS - 1)) if wide else dest.row16(s, row)
    fill = 0 if s.dst_valid[at] & 1 else 0xFFFF  # rows that are not valid: minus infinity
    for j in range(COLUMNS):
        high, low = np.int64(s.dst[at, j]) | fill, np.int64(0)
        if wide:
            low = np.int64(s.dst[(at + LOW_HALF) & (dest.ROWS - 1), j]) | fill
        s.lane_tmp[0, j] = np.uint32(_maximum(s, np.int64(j), high, low, rows, style, wide))
    for i in range(ROWS):
        for j in range(COLUMNS):
            cell = np.int64(0) if i else np.int64(s.lane_tmp[0, j])
            if wide:
                dest.write32(s, row + i, j, cell)
            else:
                dest.write16(s, row + i, j, cell >> 16)
