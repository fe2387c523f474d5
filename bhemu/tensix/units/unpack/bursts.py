"""The bursts in which SrcA is written, and the rows of them that may be lost.

An unpacker writes up to 8 rows of SrcA at once.  A burst that reaches from one set of 16 rows into
the next may lose rows: ttsim refuses it.  Its first row arrives: tt-llk unpacks 16 rows from row
0, 1, .. 15 on, each time for the sake of one row, which the next UNPACR leaves alone.  So every row
is written as the ISA text says, and `s.src_doubt` notes those that may be lost until they are
written again for certain; who reads one of them is refused (banks.doubtful).
Source: UNPACR_Regular, Wormhole ISA; sizes of bursts from ttsim's Tensix model.
"""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import banks, config, formats
from bhemu.tensix import config_fields as cf
from bhemu.tensix.quirks import refuse
from bhemu.tensix.rwc import SRC_ROWS
from bhemu.tensix.status import UNSUPPORTED, error
from bhemu.tensix.units.unpack.modes import column_shift

_SET = 16  # rows

_MODE = error(
    "UNPACR-BURST-MODE",
    UNSUPPORTED,
    "unpacker 0 starts at SrcA row {row} and writes bursts of {burst} rows over the boundary of "
    "a 16-row set, transposed, from within a row, from before row 0 or beyond row 63",
    "start at a multiple of the burst, or unpack fewer datums at a time",
)


@njit
def _rows(s: Any, m: Any) -> Any:
    """Rows of a burst (1, 2, 4 or 8)."""
    bits = formats.datum_bits(m.fmt)
    power = config.get(s, m.bank, cf.THCON_SEC0_REG2_Throttle_mode)
    if bits == 2:
        power = 0
    elif m.tileize:
        power = 2
    elif config.get(s, m.bank, cf.THCON_SEC0_REG1_ovrd_default_throttle_mode) == 0:
        power = 3 if bits == 8 else 2
    size = 128 if power == 2 and bits >= 16 else 16 << power
    return min(max(size // (2 * bits), 1), 8)


@njit
def _crosses(row: Any, start: Any, burst: Any) -> Any:
    # Whether the burst that writes `row`, of an UNPACR from row `start` on, leaves its set of rows.
    first = row - (row - start) % burst
    return (first & (_SET - 1)) + burst > _SET


@njit
def refused(s: Any, m: Any, first: Any, count: Any) -> Any:
    """0, or the error of an UNPACR whose bursts leave a set of rows in a mode nobody vouches for.

    `count` datums from target datum `first`, FIRST_CELL taken off.
    """
    if m.unpacker or m.to_dst or count <= 16:
        return 0
    start, last, burst = first >> 4, (first + count - 1) >> 4, _rows(s, m)
    if start & (burst - 1) == 0 and first & 15 == 0:
        return 0
    if first & 15 or start < 0 or last >= SRC_ROWS:
        return refuse(s, _MODE, row=start, burst=burst)
    if m.haloize:
        for row in range(start, last + 1):
            if _crosses(row, start, burst):
                return refuse(s, _MODE, row=start, burst=burst)
    return 0


@njit
def note(s: Any, m: Any, first: Any, count: Any, offset: Any) -> None:
    """Note what an UNPACR to SrcA wrote that `refused` let pass; `offset`: rows added to its rows.

    Partly written rows stay as doubtful as they were; so do transposed sets that are not written
    as a whole, and everything with a column shift.
    """
    bank = s.unpack_bank[0] & 1
    start, whole, end = (first + 15) >> 4, (first + count) >> 4, (first + count + 15) >> 4
    burst = _rows(s, m) if count > 16 else np.int64(1)
    if start & (burst - 1) == 0 and not banks.any_doubt(s, bank):
        return
    shifted = column_shift(s, m)
    for row in range(max(start, 0), end):
        if (row - start) % burst and _crosses(row, start, burst):
            at = row + offset
            s.src_doubt[bank, (at >> 4) & 3] |= np.int64(1) << (at & 15)
        elif row < whole and not (m.haloize or shifted):
            banks.settle(s, bank, row + offset, np.int64(1))
    if m.haloize and not shifted:
        for row in range((max(start, 0) + 15) & ~15, whole - 15, _SET):
            banks.settle(s, bank, row + offset, np.int64(_SET))
