"""PACR of datums of Dst rows that nothing has written in full since power-up, or that are in doubt.

Silicon packs what earlier programs left there; here such rows hold zeros.  Datums that an edge mask
replaces, or that downsampling drops, do not count.  Nor does PACR read rows whose numbers have
changed since they were written.  Source: Dst, Blackhole ISA.
"""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import dest, doubt
from bhemu.tensix.quirks import refuse, violated
from bhemu.tensix.status import UB, UNIMPLEMENTED, error
from bhemu.tensix.units.pack import downsample, edge_mask
from bhemu.tensix.units.pack.input_address import row_of
from bhemu.tensix.units.pack.modes import lower_counts

_DOUBTFUL = 2  # mark of a doubtful datum of the first interface; minus infinity is none of these

_UNWRITTEN = error(
    "PACR-UNWRITTEN",
    UB,
    "PACR packs {count} datums of Dst rows that nothing has written in full since power-up, the "
    "first in row {row} ({bits}-bit datums): on silicon the rest is what an earlier program left "
    "there",
    "let math write the whole tile, clear Dst with ZEROACC first, or wait for math with SEMWAIT; "
    "with bit 11 of DBG_FEATURE_DISABLE set, 16-bit moves leave the low half of 32-bit datums",
)
_REORDERED = error(
    "PACR-REORDERED",
    UNIMPLEMENTED,
    "PACR reads Dst row {row} ({bits}-bit datums), written before DEST_ACCESS_CFG_remap_addrs or "
    "swizzle_32b changed: which row that now is, is not followed",
    "change them before Dst is written, or clear Dst with ZEROACC in between",
)


@njit
def _reordered(s: Any, m: Any, rows: Any) -> Any:
    # The first row that is not where it was written, or -1.
    for k in range(rows.number):
        row = row_of(rows, k)
        at = dest.adj32(row) if m.wide else dest.row16(s, row)
        below = dest.LOW_HALF if lower_counts(m) else 0
        both = s.dst_valid[at] | s.dst_valid[at + below]
        if s.dst_valid[at] and both & dest.REORDERED and both & (dest.UNWRITTEN - 1) == 0:
            return row
    return np.int64(-1)


@njit
def _unwritten(s: Any, m: Any, row: Any) -> Any:
    # Not 0 when the row counts and it, or its lower half, has not been written.
    at = dest.adj32(row) if m.wide else dest.row16(s, row)
    below = dest.LOW_HALF if lower_counts(m) else 0
    flag = s.dst_valid[at]
    return (flag << 1) & (flag | s.dst_valid[at + below]) & (dest.UNWRITTEN - 1)


@njit
def _doubtful(s: Any, m: Any, row: Any) -> Any:
    at = dest.adj32(row) if m.wide else dest.row16(s, row)
    return doubt.refused(s, row, at, doubt.of_datums(s, at, lower_counts(m)))


@njit
def refused(s: Any, m: Any, rows: Any, values: Any) -> Any:
    """0, or the error of unwritten or doubtful datums among those of the Rows in Mode `m`.

    `values` (uint32) is scratch for the datums of the Rows.
    """
    width = 32 if m.wide else 16
    moved = _reordered(s, m, rows)
    if moved >= 0:
        return refuse(s, _REORDERED, row=moved, bits=width)
    first = np.int64(-1)
    for k in range(rows.number):
        row = row_of(rows, k)
        mark = 1 if _unwritten(s, m, row) else 0
        if mark and first < 0:
            first = row
        at = dest.adj32(row) if m.wide else dest.row16(s, row)
        mask = doubt.of_datums(s, at, lower_counts(m)) if s.doubt[0] else np.int64(0)
        for j in range(16):
            doubtful = doubt.causes(mask, j) != 0
            values[16 * k + j] = np.uint32(_DOUBTFUL + k if doubtful else mark)
    if edge_mask.masked(s, m.bank):
        edge_mask.clear(s, m, rows, values)
    count = np.int64(0)
    for i in range(downsample.chosen(s, m, rows, values)):
        if _DOUBTFUL <= values[i] < _DOUBTFUL + 4:
            return _doubtful(s, m, row_of(rows, np.int64(values[i]) - _DOUBTFUL))
        count += values[i] == 1
    return violated(s, _UNWRITTEN, row=first, bits=width, count=count) if count else 0
