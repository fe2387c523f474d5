"""Where a PACR reads and writes.

A PACR reads the columns of the X counters from one to four rows of Dst.  The first one of a tile
takes the L1 address from the configuration, the following ones append.  `a` is the thread whose
address counters count.
Source: PACR, Blackhole ISA; input and output address generators, Wormhole ISA; the strided mode and
checks from ttsim's Tensix model.
"""

from typing import Any, NamedTuple

import numpy as np

from bhemu.jit.subset import njit
from bhemu.memmap import L1_SIZE
from bhemu.tensix import config, dest, formats
from bhemu.tensix import config_fields as cf
from bhemu.tensix.quirks import refuse, violated
from bhemu.tensix.status import UB, UNIMPLEMENTED, UNSUPPORTED, error

X, Y, Z, W = 0, 1, 2, 3  # last index of s.adc
PACKER = 2  # second index of s.adc

_STRIDE = error(
    "PACR-STRIDE",
    UB,
    "the channel 0 strides of the packer are not multiples of the {size} bytes of a Dst datum",
    "PCK0_ADDR_CTRL_XY_REG_0 and ZW_REG_0 count bytes",
)
_ROW_START = error(
    "PACR-ROW",
    UNSUPPORTED,
    "the packer's channel 0 counters give column {column} of a row, but X is {x}",
    "let Y, Z and W count whole rows of 16, and X be 0 or Xstride the bytes of a datum",
)
_COUNT = error(
    "PACR-COUNT",
    UNSUPPORTED,
    "the packer's X counters give columns {first} to {last}; a row has 0 to 15, and bfp takes "
    "all of it",
)
_DOWNSAMPLED = error(
    "PACR-DOWNSAMPLE",
    UNSUPPORTED,
    "Downsample_mask {mask:#x} with block floats, or with less than a row from several interfaces",
    "what it does to groups of 16 is not specified",
)
_GROUP = error(
    "PACR-INTERFACE-GROUP",
    UB,
    "read_intf_sel {read_intf_sel} from Dst row {row} leaves the group of four rows that the "
    "interfaces read",
    "the first row plus the highest interface must stay within four aligned rows",
)
_DST_ROWS = error(
    "PACR-ROWS", UNIMPLEMENTED, "PACR reads Dst from row {first} to row {last}; it has 1024 rows"
)
_L1_END = error(
    "PACR-L1",
    UB,
    "PACR writes L1 from {first:#x} up to {end:#x}, beyond the end at 0x180000",
    "check L1_Dest_addr and Exp_section_size",
)
_L1_ALIGN = error(
    "PACR-L1-ALIGN",
    UNSUPPORTED,
    "PACR continues a tile at {address:#x}, which is no multiple of the {size} bytes of a datum",
    "end the tile with Last or Flush before changing the output format",
)


class Rows(NamedTuple):
    """First Dst row, interfaces as a mask, rows from one interface to the next (16: strided, else
    1), number of rows, first column and number of columns of each."""

    first: int
    mask: int
    step: int
    number: int
    column: int
    columns: int


class Place(NamedTuple):
    """L1 bytes where the datums and their shared exponents go."""

    data: int
    exponent: int


@njit
def _first_datum(s: Any, a: Any, m: Any) -> Any:
    # X has a fine and a coarse part: see the input address generator.
    b, at = m.bank, s.adc[a, PACKER, 0]
    base = config.get(s, b, cf.PCK0_ADDR_BASE_REG_0_Base)
    x = at[X] * (config.get(s, b, cf.PCK0_ADDR_CTRL_XY_REG_0_Xstride) & 15)
    y = at[Y] * config.get(s, b, cf.PCK0_ADDR_CTRL_XY_REG_0_Ystride)
    z = at[Z] * config.get(s, b, cf.PCK0_ADDR_CTRL_ZW_REG_0_Zstride)
    w = at[W] * config.get(s, b, cf.PCK0_ADDR_CTRL_ZW_REG_0_Wstride)
    down = formats.datum_bits(m.fmt) >> 4  # datums of 1, 2 or 4 bytes: 0, 1 or 2
    fine = (16 >> down) - 1
    return ((base + x + y + z + w) >> down & ~fine) + (at[X] & fine)


@njit
def rows_of(s: Any, a: Any, m: Any, interfaces: Any, strided: Any) -> Any:
    """Rows that the selected interfaces (mask, 0 = all) read; to be checked by `rows_refused`."""
    datum = _first_datum(s, a, m)
    first = ((datum >> 4) + config.get(s, m.bank, cf.DEST_TARGET_REG_CFG_PACK_SEC0_Offset)) & 0x3FF
    mask = interfaces if interfaces else 15
    count = (mask & 1) + (mask >> 1 & 1) + (mask >> 2 & 1) + (mask >> 3 & 1)
    x = s.adc[a, PACKER, 0, X]
    return Rows(
        first, mask, 16 if strided else 1, count, datum & 15, s.adc[a, PACKER, 1, X] - x + 1
    )


def _set_bits(mask: int) -> list[int]:
    return [i for i in range(4) if mask >> i & 1]


_INTERFACES = np.array([(_set_bits(mask) + 4 * [0])[:4] for mask in range(16)], np.int64)


@njit(forceinline=True)
def row_of(rows: Any, k: Any) -> Any:
    """Dst row of the k-th of the Rows."""
    return rows.first + (_INTERFACES[rows.mask & 15, k] if rows.step == 1 else k * rows.step)


@njit
def counts_partly(s: Any, a: Any, m: Any) -> Any:
    """Not 0 when channel 0 counts X, or has strides of parts of datums."""
    strides = np.int64(s.cfg[m.bank, cf.PCK0_ADDR_CTRL_XY_REG_0_Xstride.word])
    strides |= np.int64(s.cfg[m.bank, cf.PCK0_ADDR_CTRL_ZW_REG_0_Zstride.word])
    return s.adc[a, PACKER, 0, X] | (
        (strides | strides >> 16) & ((formats.datum_bits(m.fmt) >> 3) - 1)
    )


@njit(forceinline=True)  # one caller
def rows_refused(s: Any, a: Any, m: Any, rows: Any) -> Any:
    """0, or the error of the packer's channel 0 counters and strides."""
    b, size = m.bank, max(formats.datum_bits(m.fmt) >> 3, 1)
    strides = np.int64(s.cfg[b, cf.PCK0_ADDR_CTRL_XY_REG_0_Xstride.word])
    strides |= np.int64(s.cfg[b, cf.PCK0_ADDR_CTRL_ZW_REG_0_Zstride.word])
    if (strides | strides >> 16) & (size - 1):
        return refuse(s, _STRIDE, size=size)
    x = s.adc[a, PACKER, 0, X]
    if rows.column != x:
        return refuse(s, _ROW_START, column=rows.column, x=x)
    if rows.columns < 1 or x + rows.columns > 16 or (formats.is_bfp(m.out) and rows.columns != 16):
        return refuse(s, _COUNT, first=x, last=x + rows.columns - 1)
    mask = config.get(s, b, cf.THCON_SEC0_REG1_Downsample_mask)
    if mask and mask != 0xFFFF:
        if formats.is_bfp(m.out) or (rows.columns != 16 and rows.number != 1):
            return refuse(s, _DOWNSAMPLED, mask=mask)
    last = row_of(rows, rows.number - 1)
    if last >= dest.ROWS:
        return refuse(s, _DST_ROWS, first=rows.first, last=last)
    if rows.step == 1 and rows.mask << (rows.first & 3) > 15:
        return violated(s, _GROUP, read_intf_sel=rows.mask, row=rows.first)
    return 0


@njit
def place_of(s: Any, a: Any, m: Any) -> Any:
    """Where this PACR writes: the configured address, or behind the previous PACR."""
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
        return refuse(s, _L1_ALIGN, address=place.data, size=size)
    end = place.data + (datums * formats.datum_bits(m.out) >> 3)
    if end > L1_SIZE:
        return refuse(s, _L1_END, first=place.data, end=end)
    if formats.is_bfp(m.out):
        end = place.exponent + (datums >> 4)
        if end > L1_SIZE:
            return refuse(s, _L1_END, first=place.exponent, end=end)
    return 0
