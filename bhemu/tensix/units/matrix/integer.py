"""Integer arithmetic of the matrix unit: 8-bit operands, Dst as saturating 32-bit sign-magnitude.

Source: MVMUL and ELWADD, Wormhole ISA; integer modes of ttsim's Tensix model.
"""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import dest
from bhemu.tensix.banks import SRCA, SRCB
from bhemu.tensix.dest import COLUMNS, LOW_HALF

LARGEST = 0x7FFFFFFF

_I = np.int32


@njit(forceinline=True)
def _value(pattern: Any) -> Any:
    """int64 value of a sign-magnitude pattern."""
    magnitude = pattern & LARGEST
    return -magnitude if pattern >> 31 else magnitude


@njit
def add(s: Any, first: Any, rows: Any, accumulate: Any) -> None:
    """s.term_magnitude (two's complement) to `rows` rows of 32-bit Dst, added when `accumulate`."""
    for r in range(rows):
        row, at = dest.adj32((first + r) & (dest.ROWS - 1)), (r & 7) * COLUMNS
        high, low = s.dst[row], s.dst[row + LOW_HALF]
        keep = 0xFFFFFFFF if accumulate and s.dst_valid[row] else 0
        for j in range(COLUMNS):
            cell = ((np.int64(high[j]) << 16) | np.int64(low[j])) & keep
            total = _value(dest.dec_32(cell)) + np.int64(_I(s.term_magnitude[at + j]))
            total = min(max(total, -LARGEST), LARGEST)
            new = dest.enc_32(abs(total) | ((total >> 63) & 0x80000000))
            high[j] = np.uint16(new >> 16)
            low[j] = np.uint16(new & 0xFFFF)
        s.dst_valid[row] = 1
        dest.written(s, row + LOW_HALF)


@njit
def sums(s: Any, bank_a: Any, row_a: Any, bank_b: Any, row_b: Any, phase: Any, rows: Any) -> None:
    """Sums of 16 products on prepared banks, `rows` x 16, to s.term_magnitude."""
    a = s.src_slice[SRCA, bank_a, phase & 1]
    b = s.src_slice[SRCB, bank_b, (phase >> 1) & 1]
    for r in range(rows):
        row = b[(row_b + r) & 63]
        at = (r & 7) * COLUMNS
        for j in range(COLUMNS):
            s.term_magnitude[at + j] = np.uint32(0)
        for k in range(16):
            factor, column = _I(row[k]), a[(row_a & 48) + k]
            for j in range(COLUMNS):
                total = _I(s.term_magnitude[at + j]) + _I(_I(column[j]) * factor)
                s.term_magnitude[at + j] = np.uint32(_I(total))
