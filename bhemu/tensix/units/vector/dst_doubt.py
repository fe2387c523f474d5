"""Doubt of Dst datums (tensix/doubt.py) on its way to the lanes of the vector unit and back.

Lane 8 j + k takes part in the row j of four, in column 2 k, or 2 k + 1 where `odd` is not 0.
"""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import dest, doubt, lane_doubt
from bhemu.tensix.status import DONE

_VALID = 7  # of a row's flag: what says whether it is valid and wholly written
_ROW = 0xFF  # lanes of a row


@njit
def _to_lanes(mask: Any, odd: Any) -> Any:
    """Doubt of the columns of a row, as marks of lanes 0 to 7."""
    marks, first = np.int64(0), 1 if odd else 0
    for k in range(8):
        cell = mask >> (2 * k + first)
        marks |= (cell & 1) << k | (cell >> 16 & 1) << (32 + k)
    return marks


@njit
def _to_columns(marks: Any, odd: Any) -> Any:
    """The other way round."""
    mask, first = np.int64(0), 1 if odd else 0
    for k in range(8):
        lane = marks >> k
        mask |= ((lane & 1) | (lane >> 32 & 1) << 16) << (2 * k + first)
    return mask


@njit
def of_lanes(s: Any, first: Any, odd: Any, wide: Any) -> Any:
    """Marks that the lanes take from four storage rows; `wide`: of 32-bit datums."""
    marks = np.int64(0)
    for j in range(4):
        mask = doubt.of_datums(s, first + j, wide)
        marks |= _to_lanes(mask, odd) << (8 * j) if mask else np.int64(0)
    return marks


@njit
def _validity_open(s: Any, at: Any, below: Any, lanes: Any) -> Any:
    """True when a store decides by open `lanes` whether row `at` is valid, and written `below`."""
    settled = s.dst_valid[at] & _VALID == 1
    settled = settled and s.dst_valid[at + below] & _VALID <= 1
    return not settled and lane_doubt.is_open(s, lanes)


@njit
def hold_stored(s: Any, first: Any, odd: Any, wide: Any, marks: Any) -> Any:
    """Before a store to four rows and those below: their doubt after it, in scratch.

    `marks`: of what is stored.  Scratch 0-3: the four rows, 4-7: those below.  DONE, or an error.
    """
    on, flags = lane_doubt.enabled(s), lane_doubt.of_flags(s)
    unsure = lane_doubt.spread(flags)
    stored = (marks & (on | unsure)) | flags
    low = stored if wide else (flags if dest.halves(s) else np.int64(0))
    for j in range(4):
        at = first + j
        if _validity_open(s, at, dest.LOW_HALF * wide, np.int64(_ROW) << (8 * j)):
            return lane_doubt.open_refused(s)
        written = _to_columns((on & ~unsure) >> (8 * j), odd)
        doubt.hold(s, j, at, written)
        doubt.hold(s, 4 + j, at + dest.LOW_HALF, written if wide else 0)
        s.doubt_row[8 + j] = _to_columns(stored >> (8 * j), odd)
        s.doubt_row[12 + j] = _to_columns(low >> (8 * j), odd)
    return np.int64(DONE)


@njit
def settle_stored(s: Any, t: Any, first: Any) -> None:
    """After that: what `hold_stored` left is the doubt of the rows."""
    for i in range(8):
        at = first + (i & 3) + (i >> 2) * dest.LOW_HALF
        if s.doubt_row[8 + i]:
            s.doubt_row[i] |= s.doubt_row[8 + i]
            s.dst_doubt_pc[at] = s.gate_pc[t]
        doubt.settle(s, i, at)
