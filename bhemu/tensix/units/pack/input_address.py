"""Which Dst rows a PACR reads.

A PACR reads the columns of the X counters from one to four rows of Dst.  `a` is the thread whose
address counters count.
Source: PACR, Blackhole ISA; input address generator, Wormhole ISA; the strided mode and checks from
ttsim's Tensix model.
"""

from typing import Any, NamedTuple

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import config, dest, formats
from bhemu.tensix import config_fields as cf
from bhemu.tensix.quirks import refuse, violated
from bhemu.tensix.status import UB, UNIMPLEMENTED, UNSUPPORTED, error
from bhemu.tensix.units.adc import W, X, Y, Z

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
