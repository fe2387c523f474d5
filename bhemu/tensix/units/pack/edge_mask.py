"""Edge masks: which datums become zero or minus infinity, by their row within the tile.

The position within the tile is kept twice.  By the ISA text it is an 8-bit row counter that grows
by the interfaces of each PACR, starts again only where it meets pack_reads_per_xy_plane exactly,
and knows nothing of tiles.  ttsim counts datums, row by row, and starts again with each tile.  Both
agree for planes of whole PACRs and whole tiles.  Where they do not, the text decides with
reference `isa`; else ttsim does for the masks it accepts, which is noted where it makes a
difference, and with any other mask that would make one PACR refuses.
Source: EdgeMasking, Wormhole ISA; PACR, Blackhole ISA.
"""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import config
from bhemu.tensix import config_fields as cf
from bhemu.tensix.formats import BF16, BFP8, FP32, TF32
from bhemu.tensix.quirks import follows_isa, noted, refuse
from bhemu.tensix.status import UNIMPLEMENTED, UNSUPPORTED, error

_MAPPING = cf.TILE_ROW_SET_MAPPING_0_row_set_mapping_0.word
assert cf.TILE_ROW_SET_MAPPING_3_row_set_mapping_0.word == _MAPPING + 3
_MASKS = cf.PCK_EDGE_OFFSET_SEC0_mask.word
assert cf.PCK_EDGE_OFFSET_SEC3_mask.word == _MASKS + 3
_ROWS = 16  # rows of a plane up to which ttsim's count is defined

_POSITION = error(
    "PACR-TILE-POSITION",
    UNSUPPORTED,
    "an edge mask depends on whether this is row {row} or row {row_by_datums} of the plane: the "
    "sources disagree after planes or tiles of incomplete PACRs",
    "let pack_reads_per_xy_plane be a multiple of the interfaces of a PACR and end tiles there, or"
    ' choose reference = "isa", which follows the ISA text',
)
_COUNTED_AS_TTSIM = error(
    "PACR-EDGE-ROW",
    UNIMPLEMENTED,
    "the row that chose an edge mask was counted as ttsim counts, by datums and from each tile; by"
    " the ISA text rows are those of PACRs, start again at pack_reads_per_xy_plane alone, and other"
    " datums are masked",
    'reference = "isa" follows the text',
)
_FORMAT = error(
    "PACR-EDGE-MODE",
    UNSUPPORTED,
    "PCK_EDGE_MODE_mode (minus infinity) with intermediate format {fmt} is not modelled",
    "formats with 8-bit exponents have an infinity",
)


@njit
def masked(s: Any, b: Any) -> Any:
    """Not 0 when the edge masks may clear a datum."""
    chosen = config.get(s, b, cf.PCK_EDGE_TILE_ROW_SET_SELECT_select) & 3
    sets = np.int64(s.cfg[b, _MAPPING + chosen])
    return sets | (config.get(s, b, cf.PCK_EDGE_OFFSET_SEC0_mask) ^ 0xFFFF)


@njit
def _mask(s: Any, b: Any, row: Any) -> Any:
    chosen = config.get(s, b, cf.PCK_EDGE_TILE_ROW_SET_SELECT_select) & 3
    which = (np.int64(s.cfg[b, _MAPPING + chosen]) >> 2 * (row & 15)) & 3
    return np.int64(s.cfg[b, _MASKS + which]) & 0xFFFF


@njit
def _known_to_ttsim(s: Any, m: Any, rows: Any) -> Any:
    # Masks 0, 1 and 0xFFFF, sets 0 and 1, whole rows or 8 datums of one.
    chosen = config.get(s, m.bank, cf.PCK_EDGE_TILE_ROW_SET_SELECT_select) & 3
    odd = np.int64(s.cfg[m.bank, _MAPPING + chosen]) & 0xAAAAAAAA
    odd |= chosen & 2 | config.get(s, m.bank, cf.PCK_EDGE_MODE_mode)
    for i in range(2):
        mask = np.int64(s.cfg[m.bank, _MASKS + i]) & 0xFFFF
        odd |= mask if mask != 0xFFFF and mask != 1 else 0
    return odd == 0 and (rows.columns == 16 or (rows.columns == 8 and rows.number == 1))


@njit
def _row_by_datums(s: Any, reads: Any, i: Any) -> Any:
    # ttsim's row of the i-th datum from here on.
    first = s.pack_datum[0] & 15 if s.pack_open[0] else np.int64(0)
    row = s.pack_row[0] if s.pack_open[0] else np.int64(0)
    for _ in range((first + i) >> 4):
        row = 0 if row + 1 == reads else row + 1
    return row


@njit
def _ttsim_counts(s: Any, reads: Any) -> Any:
    # Whether the position is ttsim's: it has none for other planes.
    return 0 < reads <= _ROWS and not follows_isa(s)


@njit
def refused(s: Any, m: Any, rows: Any) -> Any:
    """0, or the error of a mask for which the position within the tile is not certain."""
    if config.get(s, m.bank, cf.PCK_EDGE_MODE_mode):
        if m.fmt != FP32 and m.fmt != TF32 and m.fmt != BF16 and m.fmt != BFP8:
            return refuse(s, _FORMAT, fmt=m.fmt)
    reads = config.get(s, m.bank, cf.PACK_COUNTERS_SEC0_pack_reads_per_xy_plane)
    if not _ttsim_counts(s, reads) or _known_to_ttsim(s, m, rows):
        return 0
    for k in range(rows.number):
        for i in range(rows.columns):
            row = _row_by_datums(s, reads, k * rows.columns + i)
            other = (s.pack_plane[0] + k) & 15
            differ = _mask(s, m.bank, other) ^ _mask(s, m.bank, row)
            if (differ >> (rows.column + i)) & 1:
                return refuse(s, _POSITION, row=other, row_by_datums=row)
    return 0


@njit
def clear(s: Any, m: Any, rows: Any, values: Any) -> None:
    """Replace what the masks clear of intermediate values[0 : 16 * rows]; before `advance`."""
    fill = np.uint32(0)
    if config.get(s, m.bank, cf.PCK_EDGE_MODE_mode):
        fill = np.uint32(0xFF800000 if m.fmt == FP32 else 0x7FC00 if m.fmt == TF32 else 0xFF80)
    reads = config.get(s, m.bank, cf.PACK_COUNTERS_SEC0_pack_reads_per_xy_plane)
    by_datums = _ttsim_counts(s, reads)
    first = s.pack_datum[0] & 15 if s.pack_open[0] else np.int64(0)
    differ = np.int64(0)
    for k in range(rows.number):
        at = first + k * rows.columns
        of_text = _mask(s, m.bank, s.pack_plane[0] + k)
        mask = of_text
        for i in range(rows.columns):
            if by_datums and (i == 0 or (at + i) & 15 == 0):
                mask = _mask(s, m.bank, _row_by_datums(s, reads, k * rows.columns + i))
            differ |= ((mask ^ of_text) >> (rows.column + i)) & 1
            if (mask >> (rows.column + i)) & 1 == 0:
                values[16 * k + rows.column + i] = fill
    if differ:
        noted(s, _COUNTED_AS_TTSIM)


@njit
def advance(s: Any, b: Any, count: Any, columns: Any) -> None:
    """Advance both positions by `count` rows of `columns` datums."""
    reads = config.get(s, b, cf.PACK_COUNTERS_SEC0_pack_reads_per_xy_plane)
    s.pack_plane[0] = (s.pack_plane[0] + count) & 0xFF
    if s.pack_plane[0] == reads:
        s.pack_plane[0] = 0
    if s.pack_open[0] == 0:
        s.pack_datum[0] = 0
        s.pack_row[0] = 0
    first = s.pack_datum[0] & 15
    s.pack_datum[0] += count * columns
    for _ in range((first + count * columns) >> 4):
        s.pack_row[0] = 0 if s.pack_row[0] + 1 == reads else (s.pack_row[0] + 1) & 0xFF
