"""Dst cells: the shuffled encodings, 16- and 32-bit row addressing, and the row-valid flags.

Storage is 1024 rows of 16 columns of 16 bits with one valid flag per row.  A 16-bit datum of row r
lives in row r; a 32-bit datum of row r has its high half in row `adj32(r)`, its low half eight rows
below, and the validity of the high half's row.  A row that is not valid reads as zero.  A *cell* is
what the storage holds, a *pattern* the datum in IEEE order.  Source: Dst, Blackhole ISA; Dst access
in ttsim's Tensix model.

The flag of a row is 0 (ZEROACC marked it as zero), 1 (valid) or UNWRITTEN: valid, and nothing has
written the row since power-up.  Code that writes a row leaves 1 there, for 32-bit datums in
both rows, so that PACR can tell older bits from results; REORDERED is another mark for PACR.  Bit 0
alone says whether cells count.

With bit 11 of DBG_FEATURE_DISABLE a 16-bit datum of row r is the high half of 32-bit row r instead,
and writing it leaves something unpredictable in the low half, which counts as UNWRITTEN; tt-llk's
kernels set it around moves between Src and 32-bit Dst.  ttsim refuses the bit.  Production kernels
read low halves after such a write: with reference "llk" those of rows that were valid keep what
they hold, and the rule is noted.

The encodings take and give int64 or uint32 values alike, so that loops over lanes or columns can
use them; in compiled code the result must be stored or cast to uint32 to stay vectorised.
"""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.memmap import RISCV_DEBUG_REG_DBG_FEATURE_DISABLE
from bhemu.tensix.rules import UB, error, follows_llk, note_rule

ROWS = 1024
COLUMNS = 16
LOW_HALF = 8  # rows between the high and the low half of a 32-bit datum
UNWRITTEN = 3  # flag of a row that holds what it held at power-up
REORDERED = 4  # bit of the flag: DEST_ACCESS_CFG has changed the order of rows since it was written
HALVES = 1 << 11  # bit of DBG_FEATURE_DISABLE: 16-bit datums are high halves
UNPREDICTABLE = 0xBAD1  # what such a write leaves in the low half: any value is right

_FEATURES = RISCV_DEBUG_REG_DBG_FEATURE_DISABLE >> 2

_KEPT = error("DST-LOW-KEPT", UB, "bit 11 of DBG_FEATURE_DISABLE is set: 16-bit datums were written to the high halves of 32-bit datums, and the low halves taken to keep what they hold", "production kernels rely on it; the ISA text says that generally garbage is left there")  # fmt: skip


@njit(inline="always")
def enc_bf16(v: Any) -> Any:
    """Cell of a 16-bit s e8 m7 pattern: s[15] m[14:8] e[7:0]."""
    return (v & 0x8000) | ((v & 0x7F) << 8) | ((v >> 7) & 0xFF)


@njit(inline="always")
def dec_bf16(c: Any) -> Any:
    """Pattern s e8 m7 of a 16-bit cell."""
    return (c & 0x8000) | ((c & 0xFF) << 7) | ((c >> 8) & 0x7F)


@njit(inline="always")
def enc_fp16(v: Any) -> Any:
    """Cell of a 16-bit s e5 m10 pattern: s[15] m[14:5] e[4:0]."""
    return (v & 0x8000) | ((v & 0x3FF) << 5) | ((v >> 10) & 0x1F)


@njit(inline="always")
def dec_fp16(c: Any) -> Any:
    """Pattern s e5 m10 of a 16-bit cell."""
    return (c & 0x8000) | ((c & 0x1F) << 10) | ((c >> 5) & 0x3FF)


@njit(inline="always")
def enc_32(v: Any) -> Any:
    """Cell of a 32-bit pattern (fp32, tf32, int32): its high half as bf16, its low half as is."""
    return (enc_bf16((v >> 16) & 0xFFFF) << 16) | (v & 0xFFFF)


@njit(inline="always")
def dec_32(c: Any) -> Any:
    """32-bit pattern of a 32-bit cell."""
    return (dec_bf16((c >> 16) & 0xFFFF) << 16) | (c & 0xFFFF)


@njit(inline="always")
def adj32(row: Any) -> Any:
    """Storage row of the high half of 32-bit row `row` (0-1023); the low half is at + LOW_HALF."""
    return ((row & 0x1F8) << 1) | (row & 0x207)


@njit(inline="always")
def halves(s: Any) -> Any:
    """Whether 16-bit datums are the high halves of 32-bit datums."""
    return s.debug[_FEATURES] & HALVES != 0


@njit(inline="always")
def row16(s: Any, row: Any) -> Any:
    """Storage row of 16-bit row `row`, taken modulo 1024; rows of a group of 8 stay together."""
    return adj32(row & 0x3FF) if halves(s) else row & 0x3FF


@njit
def keeps_low(s: Any, high: Any) -> Any:
    """Whether a 16-bit write to storage row `high` leaves its low halves alone (with bit 11 set).

    Asked before the row is marked as valid.  What ZEROACC cleared comes back by no reading.
    """
    return follows_llk(s) and s.dst_valid[high] & 1


@njit
def note_kept(s: Any) -> None:
    """Count that low halves were taken to be kept."""
    if follows_llk(s):
        note_rule(s, _KEPT)


@njit(inline="always")
def spoil(s: Any, row: Any, rows: Any) -> None:
    """What writing `rows` 16-bit rows does to low halves; before they are marked as valid."""
    if halves(s):
        for r in range(rows):
            high = adj32((row + r) & 0x3FF)
            if not keeps_low(s, high):
                s.dst_valid[high + LOW_HALF] = UNWRITTEN
                for col in range(COLUMNS):
                    s.dst[high + LOW_HALF, col] = np.uint16(UNPREDICTABLE)
        note_kept(s)


@njit(inline="always")
def valid16(s: Any, row: Any) -> Any:
    """Valid flag (0 or 1) of 16-bit row `row`, taken modulo 1024."""
    return s.dst_valid[row16(s, row)] & 1


@njit(inline="always")
def mark16(s: Any, row: Any, valid: Any) -> None:
    """Set the valid flag of 16-bit row `row`, taken modulo 1024."""
    s.dst_valid[row16(s, row)] = valid


@njit(inline="always")
def written(s: Any, row: Any) -> None:
    """Storage row `row` (0-1023) holds written cells now; whether they count stays as it is."""
    s.dst_valid[row] &= 1


@njit
def reorder(s: Any) -> None:
    """Rows that count go by other numbers from now on; which ones is not followed.

    Everyone goes by the numbers of the present order here, so rows are right until it changes.
    """
    for row in range(ROWS):
        if s.dst_valid[row]:
            s.dst_valid[row] |= REORDERED


@njit(inline="always")
def read16(s: Any, row: Any, col: Any) -> Any:
    """16-bit cell as int64; 0 when the row is not valid."""
    r = row16(s, row)
    return np.int64(s.dst[r, col & 15]) * (s.dst_valid[r] & 1)


@njit(inline="always")
def write16(s: Any, row: Any, col: Any, cell: Any) -> None:
    """Store a 16-bit cell (low 16 bits of `cell`) and mark the row valid."""
    put16(s, row, col, cell)
    mark16(s, row, 1)


@njit
def spoil_one(s: Any, high: Any, col: Any) -> None:
    """What writing a 16-bit datum to storage row `high` does to its low half."""
    if keeps_low(s, high):
        note_rule(s, _KEPT)
    else:
        s.dst[high + LOW_HALF, col & 15] = np.uint16(UNPREDICTABLE)
        s.dst_valid[high + LOW_HALF] = UNWRITTEN


@njit(inline="always")
def put16(s: Any, row: Any, col: Any, cell: Any) -> None:
    """Store a 16-bit cell and leave the row as valid as it is."""
    r = row16(s, row)
    s.dst[r, col & 15] = np.uint16(cell & 0xFFFF)
    if halves(s):
        spoil_one(s, r, col)
    written(s, r)


@njit(inline="always")
def read32(s: Any, row: Any, col: Any) -> Any:
    """32-bit cell as int64; 0 when the row is not valid."""
    r = adj32(row)
    high = np.int64(s.dst[r, col & 15])
    low = np.int64(s.dst[r + LOW_HALF, col & 15])
    return ((high << 16) | low) * (s.dst_valid[r] & 1)


@njit(inline="always")
def write32(s: Any, row: Any, col: Any, cell: Any) -> None:
    """Store a 32-bit cell and mark the row valid."""
    put32(s, row, col, cell)
    s.dst_valid[adj32(row)] = 1


@njit(inline="always")
def put32(s: Any, row: Any, col: Any, cell: Any) -> None:
    """Store a 32-bit cell and leave the row as valid as it is."""
    r = adj32(row)
    s.dst[r, col & 15] = np.uint16((cell >> 16) & 0xFFFF)
    s.dst[r + LOW_HALF, col & 15] = np.uint16(cell & 0xFFFF)
    written(s, r)
    written(s, r + LOW_HALF)
