"""Where a PACR reads and writes, and which datums the edge masks clear.

A PACR reads 16 (or 8) datums from each of one, two or four rows of Dst.  The first one of a tile
takes the L1 address from the configuration, the following ones append.
Source: PACR, Blackhole ISA; row selection and checks from ttsim's Tensix model.
"""

from typing import Any, NamedTuple

import numpy as np

from bhemu.tensix import config, dest, formats
from bhemu.tensix import config_fields as cf
from bhemu.tensix.state import L1_SIZE
from bhemu.tensix.status import UB, UNIMPLEMENTED, UNSUPPORTED, error
from bhemu.tensix.subset import njit

X, Y, Z, W = 0, 1, 2, 3  # last index of s.adc
PACKER = 2  # second index of s.adc
_MAPPING = cf.TILE_ROW_SET_MAPPING_0_row_set_mapping_0.word
assert cf.TILE_ROW_SET_MAPPING_1_row_set_mapping_0.word == _MAPPING + 1

# Words of the sentences: as written, from {0}.
_STRIDE = error(
    "PACR-STRIDE",
    UB,
    "the channel 0 strides of the packer are not multiples of the {0} bytes of a Dst datum",
    "PCK0_ADDR_CTRL_XY_REG_0 and ZW_REG_0 count bytes",
)
_CH0_X = error("PACR-X", UNIMPLEMENTED, "the packer's channel 0 X counter is {0}, not 0")
_ROW_START = error(
    "PACR-ROW",
    UNIMPLEMENTED,
    "the packer's channel 0 counters give datum {0}, not the start of a row of 16",
)
_COUNT = error(
    "PACR-COUNT",
    UNIMPLEMENTED,
    "the packer's channel 1 X counter is {0}: 16 datums of a row are packed (15), or 8 (7) by one "
    "interface",
)
_DST_ROWS = error(
    "PACR-ROWS", UNIMPLEMENTED, "PACR reads Dst from row {0} to row {1}; it has 1024 rows"
)
_CHANNEL_1 = error(
    "PACR-CHANNEL-1",
    UNIMPLEMENTED,
    "a tile starts with the packer's channel 1 Z {0}, W {1}, PCK0_ADDR_BASE_REG_1_Base {2}, not 0",
)
_L1_END = error(
    "PACR-L1",
    UB,
    "PACR writes L1 from {0:#x} up to {1:#x}, beyond the end at 0x180000",
    "check L1_Dest_addr and Exp_section_size",
)
_READS = error(
    "PACR-READS",
    UNSUPPORTED,
    "PACK_COUNTERS_SEC0_pack_reads_per_xy_plane is {0}; 1 to 16 rows make a plane",
)
_EDGE_SET = error(
    "PACR-EDGE-SET",
    UNIMPLEMENTED,
    "PCK_EDGE_TILE_ROW_SET_SELECT_select chooses row set mapping {0}, or TILE_ROW_SET_MAPPING row "
    "set {1}; 0 and 1 are modelled",
)
_EDGE_MASK = error(
    "PACR-EDGE-MASK",
    UNIMPLEMENTED,
    "PCK_EDGE_OFFSET mask {0:#x} is not modelled; 0, 1 and 0xffff are",
)


class Rows(NamedTuple):
    """First Dst row, rows from one read to the next, and datums in all."""

    first: int
    step: int
    datums: int


class Place(NamedTuple):
    """L1 bytes where the datums and their shared exponents go."""

    data: int
    exponent: int


@njit
def _first_datum(s: Any, t: Any, b: Any) -> Any:
    at = s.adc[t, PACKER, 0]
    y = at[Y] * config.get(s, b, cf.PCK0_ADDR_CTRL_XY_REG_0_Ystride)
    z = at[Z] * config.get(s, b, cf.PCK0_ADDR_CTRL_ZW_REG_0_Zstride)
    return y + z + at[W] * config.get(s, b, cf.PCK0_ADDR_CTRL_ZW_REG_0_Wstride)


@njit
def rows_of(s: Any, t: Any, m: Any, interfaces: Any, strided: Any) -> Any:
    """Rows that the selected interfaces read; to be asked after `rows_refused`."""
    size = formats.datum_bits(m.fmt) >> 3
    first = _first_datum(s, t, m.bank) // size >> 4
    first = (first + config.get(s, m.bank, cf.DEST_TARGET_REG_CFG_PACK_SEC0_Offset)) & 0x3FF
    count = 4
    if interfaces:
        count = 1 if interfaces == 1 else 2
    step = 1
    if strided:  # swizzle and remap turn the interfaces' rows 16 apart
        step = 16
    elif interfaces == 5 or interfaces == 10:
        step = 2
        first += interfaces == 10
    return Rows(first, step, count * (s.adc[t, PACKER, 1, X] + 1))


@njit
def rows_refused(s: Any, t: Any, m: Any, interfaces: Any) -> Any:
    """0, or the error of the packer's channel 0 counters and strides."""
    b, size = m.bank, formats.datum_bits(m.fmt) >> 3
    strides = np.int64(s.cfg[b, cf.PCK0_ADDR_CTRL_XY_REG_0_Xstride.word])
    strides |= np.int64(s.cfg[b, cf.PCK0_ADDR_CTRL_ZW_REG_0_Zstride.word])
    s.detail[0] = size
    if (strides | strides >> 16) & (size - 1):
        return _STRIDE
    s.detail[0] = s.adc[t, PACKER, 0, X]
    if s.detail[0]:
        return _CH0_X
    s.detail[0] = _first_datum(s, t, b) // size
    if s.detail[0] & 15:
        return _ROW_START
    last = s.adc[t, PACKER, 1, X]
    half = last == 7 and interfaces == 1 and formats.datum_bits(m.out) > 8
    s.detail[0] = last
    return 0 if last == 15 or half else _COUNT


@njit
def place_of(s: Any, t: Any, m: Any) -> Any:
    """Where this PACR writes: the configured address, or behind the previous PACR."""
    if s.pack_open[0]:
        return Place(s.pack_data[0], s.pack_exp[0])
    offset = s.adc[t, PACKER, 1, Y] * config.get(s, m.bank, cf.PCK0_ADDR_CTRL_XY_REG_1_Ystride)
    start = config.get(s, m.bank, cf.THCON_SEC0_REG1_L1_Dest_addr) + 1 + (offset >> 4)
    data = start
    if formats.datum_bits(m.out) <= 8:
        data += config.get(s, m.bank, cf.THCON_SEC0_REG1_Exp_section_size)
    # 32-bit arithmetic: flag bits at the top of L1_Dest_addr fall out
    return Place((data << 4) & 0xFFFFFFFF, (start << 4) & 0xFFFFFFFF)


@njit
def place_refused(s: Any, t: Any, m: Any, rows: Any, place: Any) -> Any:
    """0, or the error of reading `rows` or of writing to `place`."""
    last = rows.first + rows.step * (((rows.datums + 15) >> 4) - 1)
    s.detail[0] = rows.first
    s.detail[1] = last
    if last >= dest.ROWS:
        return _DST_ROWS
    base = config.get(s, m.bank, cf.PCK0_ADDR_BASE_REG_1_Base)
    if s.pack_open[0] == 0 and s.adc[t, PACKER, 1, Z] | s.adc[t, PACKER, 1, W] | base:
        s.detail[0] = s.adc[t, PACKER, 1, Z]
        s.detail[1] = s.adc[t, PACKER, 1, W]
        s.detail[2] = base
        return _CHANNEL_1
    s.detail[0] = place.data
    s.detail[1] = place.data + (rows.datums * formats.datum_bits(m.out) >> 3)
    if s.detail[1] > L1_SIZE:
        return _L1_END
    if formats.is_bfp(m.out):
        s.detail[0] = place.exponent
        s.detail[1] = place.exponent + (rows.datums >> 4)
        if s.detail[1] > L1_SIZE:
            return _L1_END
    return 0


@njit
def edge_refused(s: Any, b: Any, datums: Any) -> Any:
    """0, or the error of an edge mask that applies to the next `datums` of the tile."""
    chosen = config.get(s, b, cf.PCK_EDGE_TILE_ROW_SET_SELECT_select) & 3
    reads = config.get(s, b, cf.PACK_COUNTERS_SEC0_pack_reads_per_xy_plane)
    s.detail[0] = reads
    if reads == 0 or reads > 16:
        return _READS
    s.detail[0] = chosen
    s.detail[1] = 0
    if chosen > 1:
        return _EDGE_SET
    sets = np.int64(s.cfg[b, _MAPPING + chosen])
    first = s.pack_datum[0] & 15 if s.pack_open[0] else 0
    row = s.pack_row[0] if s.pack_open[0] else 0
    f0, f1 = cf.PCK_EDGE_OFFSET_SEC0_mask, cf.PCK_EDGE_OFFSET_SEC1_mask
    rows = (first + datums + 15) >> 4 if sets else 1
    for _ in range(rows):
        s.detail[1] = (sets >> 2 * (row & 15)) & 3
        if s.detail[1] > 1:
            return _EDGE_SET
        mask = config.get(s, b, f1 if s.detail[1] else f0)
        if mask > 1 and mask != 0xFFFF:
            s.detail[0] = mask
            return _EDGE_MASK
        row = 0 if row + 1 == reads else row + 1
    return 0


@njit
def advance(s: Any, b: Any, datums: Any) -> Any:
    """Advance the position within the tile; True when `clear_edges` may have datums to clear."""
    reads = config.get(s, b, cf.PACK_COUNTERS_SEC0_pack_reads_per_xy_plane)
    first = s.pack_datum[0]
    s.pack_datum[0] = first + datums
    s.pack_from[0] = s.pack_row[0]
    for _ in range(((first & 15) + datums) >> 4):
        s.pack_row[0] = 0 if s.pack_row[0] + 1 == reads else s.pack_row[0] + 1
    chosen = config.get(s, b, cf.PCK_EDGE_TILE_ROW_SET_SELECT_select) & 3
    sets = np.int64(s.cfg[b, _MAPPING + chosen])
    return sets != 0 or config.get(s, b, cf.PCK_EDGE_OFFSET_SEC0_mask) != 0xFFFF


@njit
def clear_edges(s: Any, b: Any, datums: Any, values: Any) -> None:
    """Zero what the edge masks clear of the `datums` by which `advance` has just advanced."""
    reads = config.get(s, b, cf.PACK_COUNTERS_SEC0_pack_reads_per_xy_plane)
    chosen = config.get(s, b, cf.PCK_EDGE_TILE_ROW_SET_SELECT_select) & 3
    sets = np.int64(s.cfg[b, _MAPPING + chosen])
    inner = config.get(s, b, cf.PCK_EDGE_OFFSET_SEC0_mask)
    outer = config.get(s, b, cf.PCK_EDGE_OFFSET_SEC1_mask)
    column = (s.pack_datum[0] - datums) & 15
    row = s.pack_from[0]
    for i in range(datums):
        mask = outer if (sets >> 2 * (row & 15)) & 3 else inner
        if (mask >> (i & 15)) & 1 == 0:
            values[i] = np.uint32(0)
        column += 1
        if column == 16:
            column = 0
            row = 0 if row + 1 == reads else row + 1
