"""Which rows of Dst and datums PACR takes, and the addresses of L1 that it writes."""

from typing import Any, NamedTuple

import numpy as np

from bhemu.jit.subset import njit
from bhemu.memmap import L1_SIZE
from bhemu.tensix import config, dest, formats, rules, unspecified
from bhemu.tensix import config_fields as cf
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.formats import BF16, BFP8, FP32, TF32
from bhemu.tensix.units.counters import W, X, Y, Z
from bhemu.tensix.units.pack.modes import lower_counts

# Which Dst rows a PACR reads: the columns of the X counters from one to four of them.  `a` is the
# thread whose address counters count, here and below.

PACKER = 2  # second index of s.adc
_STRIDE = rules.error("PACR-STRIDE", rules.UB, "the channel 0 strides of the packer are not multiples of the {size} bytes of a Dst datum", "PCK0_ADDR_CTRL_XY_REG_0 and ZW_REG_0 count bytes")  # fmt: skip
_ROW_START = rules.error("PACR-ROW", rules.UNSUPPORTED, "the packer's channel 0 counters give column {column} of a row, but X is {x}", "let Y, Z and W count whole rows of 16, and X be 0 or Xstride the bytes of a datum")  # fmt: skip
_COUNT = rules.error("PACR-COUNT", rules.UNSUPPORTED, "the packer's X counters give columns {first} to {last}; a row has 0 to 15, and bfp takes all of it")  # fmt: skip
_DOWNSAMPLED = rules.error("PACR-DOWNSAMPLE", rules.UNSUPPORTED, "Downsample_mask {mask:#x} with block floats, or with less than a row from several interfaces", "what it does to groups of 16 is not specified")  # fmt: skip
_GROUP = rules.error("PACR-INTERFACE-GROUP", rules.UB, "read_intf_sel {read_intf_sel} from Dst row {row} leaves the group of four rows that the interfaces read", "the first row plus the highest interface must stay within four aligned rows")  # fmt: skip
_DST_ROWS = rules.error("PACR-ROWS", rules.UNIMPLEMENTED, "PACR reads Dst from row {first} to row {last}; it has 1024 rows")  # fmt: skip


class Rows(NamedTuple):
    """First Dst row, interfaces as a mask, rows from one interface to the next (16: strided, else
    1), number of rows, first column and number of columns of each."""

    first: int
    mask: int
    step: int
    number: int
    column: int
    columns: int


@njit
def rows_of(s: Any, a: Any, m: Any, interfaces: Any, strided: Any) -> Any:
    """Rows that the selected interfaces (mask, 0 = all) read; to be checked by `rows_refused`."""
    # X has a fine and a coarse part: see the input address generator.
    b, at = m.bank, s.adc[a, PACKER, 0]
    base = config.get(s, b, cf.PCK0_ADDR_BASE_REG_0_Base)
    x = at[X] * (config.get(s, b, cf.PCK0_ADDR_CTRL_XY_REG_0_Xstride) & 15)
    y = at[Y] * config.get(s, b, cf.PCK0_ADDR_CTRL_XY_REG_0_Ystride)
    z = at[Z] * config.get(s, b, cf.PCK0_ADDR_CTRL_ZW_REG_0_Zstride)
    w = at[W] * config.get(s, b, cf.PCK0_ADDR_CTRL_ZW_REG_0_Wstride)
    down = formats.datum_bits(m.fmt) >> 4  # datums of 1, 2 or 4 bytes: 0, 1 or 2
    fine = (16 >> down) - 1
    datum = ((base + x + y + z + w) >> down & ~fine) + (at[X] & fine)
    first = ((datum >> 4) + config.get(s, m.bank, cf.DEST_TARGET_REG_CFG_PACK_SEC0_Offset)) & 0x3FF
    mask = interfaces if interfaces else 15
    count = (mask & 1) + (mask >> 1 & 1) + (mask >> 2 & 1) + (mask >> 3 & 1)
    x = s.adc[a, PACKER, 0, X]
    return Rows(
        first, mask, 16 if strided else 1, count, datum & 15, s.adc[a, PACKER, 1, X] - x + 1
    )


_INTERFACES = np.array(
    [([i for i in range(4) if mask >> i & 1] + 4 * [0])[:4] for mask in range(16)], np.int64
)


@njit(forceinline=True)
def row_of(rows: Any, k: Any) -> Any:
    """Dst row of the k-th of the Rows."""
    return rows.first + (_INTERFACES[rows.mask & 15, k] if rows.step == 1 else k * rows.step)


@njit
def _strides(s: Any, m: Any) -> Any:
    """The bits of all strides of channel 0."""
    strides = np.int64(s.cfg[m.bank, cf.PCK0_ADDR_CTRL_XY_REG_0_Xstride.word])
    strides |= np.int64(s.cfg[m.bank, cf.PCK0_ADDR_CTRL_ZW_REG_0_Zstride.word])
    return strides | strides >> 16


@njit
def counts_partly(s: Any, a: Any, m: Any) -> Any:
    """Not 0 when channel 0 counts X, or has strides of parts of datums."""
    return s.adc[a, PACKER, 0, X] | (_strides(s, m) & ((formats.datum_bits(m.fmt) >> 3) - 1))


@njit(forceinline=True)  # one caller
def rows_refused(s: Any, a: Any, m: Any, rows: Any) -> Any:
    """0, or the error of the packer's channel 0 counters and strides."""
    b, size = m.bank, max(formats.datum_bits(m.fmt) >> 3, 1)
    if _strides(s, m) & (size - 1):
        return rules.refuse(s, _STRIDE, size=size)
    x = s.adc[a, PACKER, 0, X]
    if rows.column != x:
        return rules.refuse(s, _ROW_START, column=rows.column, x=x)
    if rows.columns < 1 or x + rows.columns > 16 or (formats.is_bfp(m.out) and rows.columns != 16):
        return rules.refuse(s, _COUNT, first=x, last=x + rows.columns - 1)
    mask = config.get(s, b, cf.THCON_SEC0_REG1_Downsample_mask)
    if mask and mask != 0xFFFF:
        if formats.is_bfp(m.out) or (rows.columns != 16 and rows.number != 1):
            return rules.refuse(s, _DOWNSAMPLED, mask=mask)
    last = row_of(rows, rows.number - 1)
    if last >= dest.ROWS:
        return rules.refuse(s, _DST_ROWS, first=rows.first, last=last)
    if rows.step == 1 and rows.mask << (rows.first & 3) > 15:
        return rules.undefined(s, _GROUP, read_intf_sel=rows.mask, row=rows.first)
    return 0


# Where in L1 a PACR writes: the first one of a tile takes the address from the configuration, the
# following ones append.

_L1_END = rules.error("PACR-L1", rules.UB, "PACR writes L1 from {first:#x} up to {end:#x}, beyond the end at 0x180000", "check L1_Dest_addr and Exp_section_size")  # fmt: skip
_L1_ALIGN = rules.error("PACR-L1-ALIGN", rules.UNSUPPORTED, "PACR continues a tile at {address:#x}, which is no multiple of the {size} bytes of a datum", "end the tile with Last or Flush before changing the output format")  # fmt: skip


class Place(NamedTuple):
    """L1 bytes where the datums and their shared exponents go."""

    data: int
    exponent: int


@njit
def place_of(s: Any, a: Any, m: Any) -> Any:
    """Where this PACR writes: the configured address, or after the previous PACR."""
    if s.pack_open[0]:
        return Place(s.pack_data[0], s.pack_exp[0])
    at = s.adc[a, PACKER, 1]
    offset = config.get(s, m.bank, cf.PCK0_ADDR_BASE_REG_1_Base)
    offset += at[Y] * config.get(s, m.bank, cf.PCK0_ADDR_CTRL_XY_REG_1_Ystride)
    offset += at[Z] * config.get(s, m.bank, cf.PCK0_ADDR_CTRL_ZW_REG_1_Zstride)
    offset += at[W] * config.get(s, m.bank, cf.PCK0_ADDR_CTRL_ZW_REG_1_Wstride)
    start = config.get(s, m.bank, cf.THCON_SEC0_REG1_L1_Dest_addr) + (offset >> 4)
    start += 1 - config.get(s, m.bank, cf.THCON_SEC0_REG1_Sub_l1_tile_header_size)
    limit = 2 * config.get(s, m.bank, cf.THCON_SEC0_REG9_Pack_0_2_limit_address) + 1
    if start & 0xFFFFFFFF > limit:
        start -= 2 * config.get(s, m.bank, cf.THCON_SEC0_REG9_Pack_0_2_fifo_size)
    data = start
    if formats.datum_bits(m.out) <= 8:
        data += config.get(s, m.bank, cf.THCON_SEC0_REG1_Exp_section_size)
    # 32-bit arithmetic: flag bits at the top of L1_Dest_addr fall out
    return Place((data << 4) & 0xFFFFFFFF, (start << 4) & 0xFFFFFFFF)


@njit
def place_refused(s: Any, m: Any, datums: Any, place: Any) -> Any:
    """0, or the error of writing `datums` to `place`."""
    size = max(formats.datum_bits(m.out) >> 3, 1)
    if place.data & (size - 1):
        return rules.refuse(s, _L1_ALIGN, address=place.data, size=size)
    end = place.data + (datums * formats.datum_bits(m.out) >> 3)
    if end > L1_SIZE:
        return rules.refuse(s, _L1_END, first=place.data, end=end)
    if formats.is_bfp(m.out):
        end = place.exponent + (datums >> 4)
        if end > L1_SIZE:
            return rules.refuse(s, _L1_END, first=place.exponent, end=end)
    return 0


# Address counters of the packer after a PACR.

_ADDR_MOD = tf.ADDR_MOD_PACK_SEC0_YsrcIncr.word  # section k is k values further on

# Channel, counter, wrap, and in ADDR_MOD_PACK: first bit and mask of the increment, clear bit, CR
# bit (-1: none).
_UPDATES = np.array(
    [
        (0, Y, 0x1FFF, tf.ADDR_MOD_PACK_SEC0_YsrcIncr.shift, 15, 5, 4),
        (0, Z, 0xFF, tf.ADDR_MOD_PACK_SEC0_ZsrcIncr.shift, 1, 13, -1),
        (1, Y, 0x1FFF, tf.ADDR_MOD_PACK_SEC0_YdstIncr.shift, 15, 11, 10),
        (1, Z, 0xFF, tf.ADDR_MOD_PACK_SEC0_ZdstIncr.shift, 1, 15, -1),
    ],
    np.int64,
)


@njit
def count_on(s: Any, t: Any, a: Any, addr_mode: Any) -> None:
    """Update the packer's Y and Z counters of thread `a` by section `addr_mode` of thread `t`."""
    word = np.int64(s.thread_cfg[t, _ADDR_MOD + addr_mode])
    for i in range(4):
        channel, counter = _UPDATES[i, 0], _UPDATES[i, 1]
        incr = (word >> _UPDATES[i, 3]) & _UPDATES[i, 4]
        if (word >> _UPDATES[i, 5]) & 1:
            s.adc[a, PACKER, channel, counter] = 0
            s.adc_cr[a, PACKER, channel, counter] = 0
        elif _UPDATES[i, 6] >= 0 and (word >> _UPDATES[i, 6]) & 1:
            start = s.adc_cr[a, PACKER, channel, counter]
            s.adc_cr[a, PACKER, channel, counter] = (start + incr) & _UPDATES[i, 2]
            s.adc[a, PACKER, channel, counter] = s.adc_cr[a, PACKER, channel, counter]
        else:
            at = s.adc[a, PACKER, channel, counter]
            s.adc[a, PACKER, channel, counter] = (at + incr) & _UPDATES[i, 2]


# Downsampling: which of the datums that were read are packed.


@njit(forceinline=True)
def chosen(s: Any, m: Any, rows: Any, values: Any) -> Any:
    """Move the datums that are packed to the front of values; how many there are.

    Of the columns that the X counters name, those of Downsample_mask, whose bits go round.
    """
    mask = config.get(s, m.bank, cf.THCON_SEC0_REG1_Downsample_mask)
    if mask == 0:
        mask = 0xFFFF
    if rows.columns == 16 and mask == 0xFFFF:
        return rows.number * 16
    n = np.int64(0)
    for k in range(rows.number):
        for i in range(rows.columns):
            if (mask >> i) & 1:
                values[n] = values[16 * k + rows.column + i]
                n += 1
    return n


@njit
def count_of(s: Any, m: Any, rows: Any) -> Any:
    """How many datums `chosen` will choose."""
    mask = config.get(s, m.bank, cf.THCON_SEC0_REG1_Downsample_mask)
    if mask == 0:
        return rows.number * rows.columns
    n = np.int64(0)
    for i in range(rows.columns):
        n += (mask >> i) & 1
    return rows.number * n


# Edge masks: which datums become zero or minus infinity, by their row within the tile.
#
# The position within the tile is kept twice.  By the ISA text it is an 8-bit row counter that
# grows by the interfaces of each PACR, starts again only where it meets pack_reads_per_xy_plane
# exactly, and knows nothing of tiles.  ttsim counts datums, row by row, and starts again with each
# tile. Both agree for planes of whole PACRs and whole tiles.  Where they do not, the text decides
# with reference `isa`; else ttsim does for the masks it accepts, which is noted where it makes a
# difference, and with any other mask that would make one PACR refuses. Source: EdgeMasking,
# Wormhole ISA; PACR, Blackhole ISA.

_MAPPING = cf.TILE_ROW_SET_MAPPING_0_row_set_mapping_0.word
assert cf.TILE_ROW_SET_MAPPING_3_row_set_mapping_0.word == _MAPPING + 3
_MASKS = cf.PCK_EDGE_OFFSET_SEC0_mask.word
assert cf.PCK_EDGE_OFFSET_SEC3_mask.word == _MASKS + 3
_ROWS = 16  # rows of a plane up to which ttsim's count is defined

_POSITION = rules.error("PACR-TILE-POSITION", rules.UNSUPPORTED, "an edge mask depends on whether this is row {row} or row {row_by_datums} of the plane: the sources disagree after planes or tiles of incomplete PACRs", "let pack_reads_per_xy_plane be a multiple of the interfaces of a PACR and end tiles there, or choose reference = \"isa\", which follows the ISA text")  # fmt: skip
_COUNTED_AS_TTSIM = rules.error("PACR-EDGE-ROW", rules.UNIMPLEMENTED, "the row that chose an edge mask was counted as ttsim counts, by datums and from each tile; by the ISA text rows are those of PACRs, start again at pack_reads_per_xy_plane alone, and other datums are masked", "reference = \"isa\" follows the text")  # fmt: skip
_FORMAT = rules.error("PACR-EDGE-MODE", rules.UNSUPPORTED, "PCK_EDGE_MODE_mode (minus infinity) with intermediate format {fmt} is not modelled", "formats with 8-bit exponents have an infinity")  # fmt: skip


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
    return 0 < reads <= _ROWS and not rules.follows_isa(s)


@njit
def refused(s: Any, m: Any, rows: Any) -> Any:
    """0, or the error of a mask for which the position within the tile is not certain."""
    if config.get(s, m.bank, cf.PCK_EDGE_MODE_mode):
        if m.fmt != FP32 and m.fmt != TF32 and m.fmt != BF16 and m.fmt != BFP8:
            return rules.refuse(s, _FORMAT, fmt=m.fmt)
    reads = config.get(s, m.bank, cf.PACK_COUNTERS_SEC0_pack_reads_per_xy_plane)
    if not _ttsim_counts(s, reads) or _known_to_ttsim(s, m, rows):
        return 0
    for k in range(rows.number):
        for i in range(rows.columns):
            row = _row_by_datums(s, reads, k * rows.columns + i)
            other = (s.pack_plane[0] + k) & 15
            differ = _mask(s, m.bank, other) ^ _mask(s, m.bank, row)
            if (differ >> (rows.column + i)) & 1:
                return rules.refuse(s, _POSITION, row=other, row_by_datums=row)
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
        rules.note_rule(s, _COUNTED_AS_TTSIM)


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


# PACR of datums of Dst rows that nothing has written in full since power-up, or that are in doubt.
#
# Silicon packs what earlier programs left there; here such rows hold zeros.  Datums that an edge
# mask replaces, or that downsampling drops, do not count.  Nor does PACR read rows whose numbers
# have changed since they were written.  Source: Dst, Blackhole ISA.

_DOUBTFUL = 2  # mark of a doubtful datum of the first interface; minus infinity is none of these

_UNWRITTEN = rules.error("PACR-UNWRITTEN", rules.UB, "PACR packs {count} datums of Dst rows that nothing has written in full since power-up, the first in row {row} ({bits}-bit datums): on silicon the rest is what an earlier program left there", "let math write the whole tile, clear Dst with ZEROACC first, or wait for math with SEMWAIT; with bit 11 of DBG_FEATURE_DISABLE set, 16-bit moves leave the low half of 32-bit datums")  # fmt: skip
_REORDERED = rules.error("PACR-REORDERED", rules.UNIMPLEMENTED, "PACR reads Dst row {row} ({bits}-bit datums), written before DEST_ACCESS_CFG_remap_addrs or swizzle_32b changed: which row that now is, is not followed", "change them before Dst is written, or clear Dst with ZEROACC in between")  # fmt: skip


@njit
def unwritten_rows_refused(s: Any, m: Any, rows: Any, values: Any) -> Any:
    """0, or the error of unwritten or doubtful datums among those of the Rows in Mode `m`.

    `values` (uint32) is scratch for the datums of the Rows.
    """
    width = 32 if m.wide else 16
    below = dest.LOW_HALF if lower_counts(m) else 0
    for k in range(rows.number):
        row = row_of(rows, k)
        at = dest.adj32(row) if m.wide else dest.row16(s, row)
        both = s.dst_valid[at] | s.dst_valid[at + below]
        if s.dst_valid[at] and both & dest.REORDERED and both & (dest.UNWRITTEN - 1) == 0:
            return rules.refuse(s, _REORDERED, row=row, bits=width)
    first = np.int64(-1)
    for k in range(rows.number):
        row = row_of(rows, k)
        # Not 0 when the row counts and it, or its lower half, has not been written.
        at = dest.adj32(row) if m.wide else dest.row16(s, row)
        flag = s.dst_valid[at]
        mark = 1 if ((flag << 1) & (flag | s.dst_valid[at + below]) & (dest.UNWRITTEN - 1)) else 0
        if mark and first < 0:
            first = row
        mask = unspecified.of_datums(s, at, lower_counts(m)) if s.doubt[0] else np.int64(0)
        for j in range(16):
            doubtful = unspecified.causes(mask, j) != 0
            values[16 * k + j] = np.uint32(_DOUBTFUL + k if doubtful else mark)
    if masked(s, m.bank):
        clear(s, m, rows, values)
    count = np.int64(0)
    for i in range(chosen(s, m, rows, values)):
        if _DOUBTFUL <= values[i] < _DOUBTFUL + 4:
            row = row_of(rows, np.int64(values[i]) - _DOUBTFUL)
            at = dest.adj32(row) if m.wide else dest.row16(s, row)
            return unspecified.refused(s, row, at, unspecified.of_datums(s, at, lower_counts(m)))
        count += values[i] == 1
    return rules.undefined(s, _UNWRITTEN, row=first, bits=width, count=count) if count else 0
