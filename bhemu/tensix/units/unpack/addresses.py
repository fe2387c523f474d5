"""The addresses of UNPACR: of tiles in L1, and of the rows of SrcA, SrcB and Dst."""

from typing import Any, NamedTuple

import numpy as np

from bhemu.jit.subset import njit
from bhemu.memmap import L1_SIZE
from bhemu.tensix import banks, config, dest, formats
from bhemu.tensix import config_fields as cf
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.config import SECTION_WORDS
from bhemu.tensix.rules import UB, UNIMPLEMENTED, UNSUPPORTED, error, refuse
from bhemu.tensix.units.counters import SRC_ROWS, W, X, Y, Z
from bhemu.tensix.units.unpack import modes

# Where in L1 an UNPACR reads: `count` consecutive datums of a tile, in rows of 32 (16 for datums of
# up to 8 bits) that follow each other or, with Tileize_mode, are Shift_amount apart.

_MISALIGNED = error("UNPACR-ALIGN", UB, "unpacker {unpacker}: Haloize_mode and Tileize_mode read from 16-byte boundaries; the first datum is at {address:#x}")  # fmt: skip
_NO_EXPONENTS = error("UNPACR-NO-EXPONENTS", UNSUPPORTED, "unpacker {unpacker}: the tile descriptor says that the tile has no exponent section", "clear bit 5 of the descriptor, or use Force_shared_exp")  # fmt: skip
_L1_END = error("UNPACR-L1", UB, "unpacker {unpacker} reads L1 from {first:#x} up to {end:#x}, beyond the end at 0x180000", "check Base address, Offset address and the ADC counters")  # fmt: skip


class Dimensions(NamedTuple):
    """Of a tile in L1, datums."""

    x: int
    y: int
    z: int
    w: int


class Source(NamedTuple):
    """What is read: bits of a datum, bit address of the first datum, 16 times the address of its
    exponent byte (or -1 - the forced exponent), datums of a row, bytes from row to row."""

    bits: int
    data: int
    exponent: int
    row: int
    step: int


@njit
def descriptor(s: Any, m: Any, i: Any) -> Any:
    """Word `i` (0-3) of the tile descriptor."""
    return np.int64(s.cfg[m.bank, modes.DESCRIPTOR_X.word + SECTION_WORDS * m.unpacker + i])


@njit
def dimensions(s: Any, m: Any) -> Any:
    """The Dimensions that the tile descriptor, or the context of unpacker 0, gives."""
    b, u = m.bank, m.unpacker
    x = modes.section(s, b, u, modes.DESCRIPTOR_X)
    if m.multi and u == 0:
        x = modes.half_of_context(s, b, m.context, cf.THCON_SEC0_REG5_Tile_x_dim_cntx0)
    z = max(modes.section(s, b, u, modes.DESCRIPTOR_Z), 1)
    return Dimensions(
        x, modes.section(s, b, u, modes.DESCRIPTOR_Y), z, max(descriptor(s, m, 2) & 0xFF, 1)
    )


@njit
def base(s: Any, m: Any) -> Any:
    """Byte address after the header of a tile: 16 bytes, and DigestSize times as many."""
    k = m.context
    first = modes.word_of_context(s, m.bank, m.unpacker, k, cf.THCON_SEC0_REG3_Base_address)
    f = cf.THCON_SEC0_REG7_Offset_address
    offset = modes.word_of_context(s, m.bank, m.unpacker, k & 3, f) & 0xFFFF
    return ((first + offset + 1 + (descriptor(s, m, 3) >> 24)) << 4) & 0xFFFFFFFF


@njit
def data_of_bfp(s: Any, m: Any, elements: Any, data: Any, first: Any) -> Any:
    """(address of the data section, 16 times the address of the first datum's exponent)."""
    b, u = m.bank, m.unpacker
    if modes.section(s, b, u, cf.THCON_SEC0_REG2_Force_shared_exp):
        f0, f1 = cf.UNP0_FORCED_SHARED_EXP_shared_exp, cf.UNP1_FORCED_SHARED_EXP_shared_exp
        return data, -1 - config.get(s, b, f1 if u else f0)
    return data + (((elements + 15) // 16 + 15) & ~15), (data << 4) + first


@njit
def source(s: Any, t: Any, m: Any) -> Any:
    """Source of thread `t`'s UNPACR in Mode `m`; not checked against L1."""
    b, u = m.bank, m.unpacker
    d = dimensions(s, m)
    xy, zw = s.adc[m.counters, u, 0], s.adc[t, u, 0]
    first = xy[X] + d.x * (xy[Y] + d.y * (zw[Z] + d.z * zw[W]))
    bits = formats.datum_bits(m.fmt)
    data = base(s, m)
    exponent = (data << 4) + first
    if formats.is_bfp(m.fmt):
        data, exponent = data_of_bfp(s, m, d.x * d.y * d.z * d.w, data, first)
    row = 16 if bits <= 8 else 32
    step = bits * row >> 3
    if m.tileize:
        step = modes.section(s, b, u, cf.THCON_SEC0_REG2_Shift_amount_cntx0) << 4
        step |= modes.section(s, b, u, cf.THCON_SEC0_REG2_Shift_amount_cntx1) << 8
        step |= modes.section(s, b, u, cf.THCON_SEC0_REG2_Shift_amount_cntx2) << 12
    return Source(bits, (data << 3) + first * bits, exponent, row, step)


@njit
def start_refused(s: Any, m: Any, bit: Any) -> Any:
    """0, or the error of a first datum at bit address `bit`, or of a missing exponent section."""
    b, u = m.bank, m.unpacker
    if (m.tileize or (m.haloize and u == 0)) and bit & 127:
        return refuse(s, _MISALIGNED, unpacker=u, address=bit >> 3)
    forced = modes.section(s, b, u, cf.THCON_SEC0_REG2_Force_shared_exp)
    if formats.is_bfp(m.fmt) and formats.datum_bits(m.fmt) < 8 and forced == 0:
        # the bit has no effect on 8-bit formats
        if modes.section(s, b, u, modes.DESCRIPTOR_NO_EXPONENTS):
            return refuse(s, _NO_EXPONENTS, unpacker=u)
    return 0


@njit
def source_refused(s: Any, m: Any, src: Any, count: Any) -> Any:
    """0, or the error of reading `count` datums from Source `src`."""
    status = start_refused(s, m, src.data)
    if status:
        return status
    full = (count - 1) // src.row
    end = src.data + 8 * src.step * full + src.bits * (count - full * src.row)
    if full:  # rows overlap when the step is small: the last but one may reach further
        end = max(end, src.data + 8 * src.step * (full - 1) + src.bits * src.row)
    if end > 8 * L1_SIZE:
        first = src.data >> 3
        return refuse(s, _L1_END, unpacker=m.unpacker, first=first, end=(end + 7) >> 3)
    if formats.is_bfp(m.fmt) and src.exponent >= 0:
        end = (src.exponent + count + 15) >> 4
        if end > L1_SIZE:
            first = src.exponent >> 4
            return refuse(s, _L1_END, unpacker=m.unpacker, first=first, end=end)
    return 0


# Where in Src or Dst an UNPACR writes: datums go into consecutive columns and rows.

FIRST_CELL = 64  # unpacker 0 counts its target from row 4
_STRIDE = error("UNPACR-STRIDE", UNSUPPORTED, "unpacker {unpacker}: the channel 1 strides are not multiples of the {size} bytes of an output datum", "UNP0/1_ADDR_CTRL_XY_REG_1 and ZW_REG_1 count bytes")  # fmt: skip
_DEST_LOW = error("UNPACR-DEST-LOW", UNSUPPORTED, "unpacker 0 would write {count} datums before the start of Dst", "its target starts at datum 64: Dest_cntx address and channel 1 counters give at least that")  # fmt: skip
_X_RANGE = error("UNPACR-X", UNSUPPORTED, "unpacker {unpacker}: channel 0 X counter {x} is beyond that of channel 1")  # fmt: skip
_NO_OVERRIDE = error("UNPACR-SRCA-SET", UB, "unpacker 0 writes SrcA up to row {row}; with SRCA_SET_SetOvrdWithAddr 0 it has 16 rows", "write 4 to SRCA_SET")  # fmt: skip
_SRCB_ROWS = error("UNPACR-SRCB-ROWS", UB, "unpacker 1 writes {rows} rows of SrcB, which has 64")
_DST_ROWS = error("UNPACR-DST-ROWS", UNIMPLEMENTED, "unpacker 0 writes Dst up to row {row}; it has 1024 rows")  # fmt: skip


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
        first += modes.half_of_context(s, b, m.context, cf.THCON_SEC0_REG5_Dest_cntx0_address)
    return first


@njit
def set_cells(s: Any, t: Any, m: Any) -> Any:
    """Cells of a source register by which SrcRow moves the target of Mode `m`."""
    if m.to_dst or (m.unpacker == 0 and config.thread(s, t, tf.SRCA_SET_SetOvrdWithAddr)):
        return 0
    return s.unpack_row[m.unpacker, t] * 16


@njit
def extent_refused(s: Any, m: Any, first: Any, count: Any, override: Any) -> Any:
    """0, or the error of writing `count` datums from target datum `first` (FIRST_CELL taken off).

    `override`: SRCA_SET_SetOvrdWithAddr of the thread.
    """
    if count <= 0:
        x = s.adc[m.counters, m.unpacker, 0, X]
        return refuse(s, _X_RANGE, unpacker=m.unpacker, x=x)
    if m.to_dst and first < 0:
        return refuse(s, _DEST_LOW, count=-first)
    last = (first + count - 1) >> 4
    if m.unpacker:  # the number of a row wraps
        rows = last - (first >> 4) + 1
        return refuse(s, _SRCB_ROWS, rows=rows) if rows > SRC_ROWS else 0
    if m.to_dst:
        return refuse(s, _DST_ROWS, row=last) if last >= dest.ROWS else 0
    return refuse(s, _NO_OVERRIDE, row=last) if override == 0 and last >= 16 else 0


# Address counters of an unpacker after an UNPACR.

_Y_WRAP = 0x1FFF  # ADC Y counters have 13 bits, Z counters 8
_Z_WRAP = 0xFF


@njit
def count_on(s: Any, t: Any, u: Any, addr_mode: Any) -> None:
    """Add the four 2-bit increments of the word: channel 0 Z, Y, channel 1 Z, Y."""
    channels = s.adc[t, u]
    channels[0, Z] = (channels[0, Z] + (addr_mode & 3)) & _Z_WRAP
    channels[0, Y] = (channels[0, Y] + (addr_mode >> 2 & 3)) & _Y_WRAP
    channels[1, Z] = (channels[1, Z] + (addr_mode >> 4 & 3)) & _Z_WRAP
    channels[1, Y] = (channels[1, Y] + (addr_mode >> 6 & 3)) & _Y_WRAP


# The bursts in which SrcA is written, and the rows of them that may be lost.
#
# An unpacker writes up to 8 rows of SrcA at once.  A burst that reaches from one set of 16 rows
# into the next may lose rows: ttsim refuses it.  Its first row arrives: tt-llk unpacks 16 rows
# from row 0, 1, .. 15 on, each time for the sake of one row, which the next UNPACR leaves alone.
# So every row is written as the ISA text says, and `s.src_doubt` notes those that may be lost
# until they are written again for certain; reading one of them is refused (banks.doubtful).

_SET = 16  # rows

_MODE = error("UNPACR-BURST-MODE", UNSUPPORTED, "unpacker 0 starts at SrcA row {row} and writes bursts of {burst} rows over the boundary of a 16-row set, transposed, from within a row, from before row 0 or beyond row 63", "start at a multiple of the burst, or unpack fewer datums at a time")  # fmt: skip


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
    """0, or the error of an UNPACR whose bursts leave a set of rows, in an unconfirmed mode.

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
    shifted = modes.column_shift(s, m)
    for row in range(max(start, 0), end):
        if (row - start) % burst and _crosses(row, start, burst):
            at = row + offset
            s.src_doubt[bank, (at >> 4) & 3] |= np.int64(1) << (at & 15)
        elif row < whole and not (m.haloize or shifted):
            banks.settle(s, bank, row + offset, np.int64(1))
    if m.haloize and not shifted:
        for row in range((max(start, 0) + 15) & ~15, whole - 15, _SET):
            banks.settle(s, bank, row + offset, np.int64(_SET))
