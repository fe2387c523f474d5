"""Where in Src or Dst an UNPACR writes: datums go into consecutive columns and rows.

Source: UNPACR_Regular, Wormhole ISA; checks from ttsim's Tensix model.
"""

from typing import Any

from bhemu.jit.subset import njit
from bhemu.tensix import config, dest, formats
from bhemu.tensix import config_fields as cf
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.quirks import refuse
from bhemu.tensix.rwc import SRC_ROWS
from bhemu.tensix.status import UB, UNIMPLEMENTED, UNSUPPORTED, error
from bhemu.tensix.units.adc import W, X, Y, Z
from bhemu.tensix.units.unpack.modes import half_of_context

FIRST_CELL = 64  # unpacker 0 counts its target from row 4
_STRIDE = error(
    "UNPACR-STRIDE",
    UNSUPPORTED,
    "unpacker {unpacker}: the channel 1 strides are not multiples of the {size} bytes of an "
    "output datum",
    "UNP0/1_ADDR_CTRL_XY_REG_1 and ZW_REG_1 count bytes",
)
_DEST_LOW = error(
    "UNPACR-DEST-LOW",
    UNSUPPORTED,
    "unpacker 0 would write {count} datums before the start of Dst",
    "its target starts at datum 64: Dest_cntx address and channel 1 counters give at least that",
)
_X_RANGE = error(
    "UNPACR-X",
    UNSUPPORTED,
    "unpacker {unpacker}: channel 0 X counter {x} is beyond that of channel 1",
)
_NO_OVERRIDE = error(
    "UNPACR-SRCA-SET",
    UB,
    "unpacker 0 writes SrcA up to row {row}; with SRCA_SET_SetOvrdWithAddr 0 it has 16 rows",
    "write 4 to SRCA_SET",
)
_SRCB_ROWS = error("UNPACR-SRCB-ROWS", UB, "unpacker 1 writes {rows} rows of SrcB, which has 64")
_DST_ROWS = error(
    "UNPACR-DST-ROWS", UNIMPLEMENTED, "unpacker 0 writes Dst up to row {row}; it has 1024 rows"
)


@njit
def first_cell(s: Any, t: Any, m: Any) -> Any:
    """First target datum (datum n: row n // 16, column n % 16), FIRST_CELL more for unpacker 0.

    An error is negative.
    """
    b, u = m.bank, m.unpacker
    f0, f1 = cf.UNP0_ADDR_CTRL_XY_REG_1_Ystride, cf.UNP1_ADDR_CTRL_XY_REG_1_Ystride
    y = config.get(s, b, f1 if u else f0)
    f0, f1 = cf.UNP0_ADDR_CTRL_ZW_REG_1_Zstride, cf.UNP1_ADDR_CTRL_ZW_REG_1_Zstride
    z = config.get(s, b, f1 if u else f0)
    f0, f1 = cf.UNP0_ADDR_CTRL_ZW_REG_1_Wstride, cf.UNP1_ADDR_CTRL_ZW_REG_1_Wstride
    w = config.get(s, b, f1 if u else f0)
    size = (formats.datum_bits(m.out) + 7) >> 3
    at = s.adc[t, u, 1]
    if (y | z | w) & (size - 1):
        return refuse(s, _STRIDE, unpacker=u, size=size)
    first = (at[Y] * y + at[Z] * z + at[W] * w) // size
    if u == 0 and m.multi:
        if not (m.to_dst or config.get(s, b, cf.UNP0_ADD_DEST_ADDR_CNTR_add_dest_addr_cntr)):
            first = 0
        first += half_of_context(s, b, m.context, cf.THCON_SEC0_REG5_Dest_cntx0_address)
    return first


@njit
def set_cells(s: Any, t: Any, m: Any) -> Any:
    """Cells of a source register by which SrcRow moves the target of Mode `m`."""
    if m.to_dst or (m.unpacker == 0 and config.thread(s, t, tf.SRCA_SET_SetOvrdWithAddr)):
        return 0
    return s.unpack_row[m.unpacker, t] * 16


@njit
def extent_refused(s: Any, m: Any, first: Any, count: Any, override: Any) -> Any:
    """0, or the error of cells of `count` datums from target datum `first` that do not exist."""
    if m.to_dst and first < 0:
        return refuse(s, _DEST_LOW, count=-first)
    last = (first + count - 1) >> 4
    if m.unpacker:  # the number of a row wraps
        rows = last - (first >> 4) + 1
        return refuse(s, _SRCB_ROWS, rows=rows) if rows > SRC_ROWS else 0
    if m.to_dst:
        return refuse(s, _DST_ROWS, row=last) if last >= dest.ROWS else 0
    return refuse(s, _NO_OVERRIDE, row=last) if override == 0 and last >= 16 else 0


@njit
def target_refused(s: Any, m: Any, first: Any, count: Any, override: Any) -> Any:
    """0, or the error of writing `count` datums from target datum `first` (FIRST_CELL taken off).

    `override`: SRCA_SET_SetOvrdWithAddr of the thread.
    """
    if count <= 0:
        x = s.adc[m.counters, m.unpacker, 0, X]
        return refuse(s, _X_RANGE, unpacker=m.unpacker, x=x)
    return extent_refused(s, m, first, count, override)
