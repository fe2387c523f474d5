"""UNPACR of compressed tiles, of rows found by RowSearch, and with upsampling: datum by datum.

A compressed tile starts with a table of 16-bit numbers: the first stored datum of each row (or
blob).  Stored datums come in blocks of 32, each followed by 32 numbers of 4 bits: how many zeros
follow each datum.  Upsampling puts 1, 3 or 7 zeros behind each datum, or leaves as many cells as
they are.  `stages` has checked the mode and counts on afterwards.
Source: UNPACR_Regular, Wormhole ISA (shared with Blackhole).
"""

from typing import Any, NamedTuple

import numpy as np

from bhemu.jit.subset import njit
from bhemu.memmap import L1_SIZE
from bhemu.tensix import config, dest, formats
from bhemu.tensix import config_fields as cf
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.quirks import refuse
from bhemu.tensix.rwc import SRC_ROWS
from bhemu.tensix.second_entries import UNPACK_DATUM_STREAM, second_entry
from bhemu.tensix.status import DONE, UB, UNSUPPORTED, error
from bhemu.tensix.units.adc import W, X, Y, Z
from bhemu.tensix.units.unpack import input_address, output_address
from bhemu.tensix.units.unpack.datums import to_cells
from bhemu.tensix.units.unpack.exponents import EXPONENT
from bhemu.tensix.units.unpack.formats import WIDE
from bhemu.tensix.units.unpack.input_address import Source
from bhemu.tensix.units.unpack.modes import DESCRIPTOR_BLOBS, column_shift, section, uncompressed
from bhemu.tensix.units.unpack.output_address import FIRST_CELL
from bhemu.tensix.units.unpack.to_dst import dst_cell_16
from bhemu.tensix.units.unpack.word import UnpackWord, mode_of_word
from bhemu.tensix.words import l1_halves, l1_words

_BEYOND_L1 = -1 << 40
_BLOCK = 32  # stored datums of a compressed tile before their 16 bytes of numbers of zeros

_TILEIZE = error(
    "UNPACR-TILEIZE-MODES",
    UB,
    "unpacker {unpacker}: Tileize_mode with upsampling or a compressed tile",
    "unpack plain rows with Tileize_mode",
)
_TWO_BITS = error(
    "UNPACR-COMPRESSED-BFP2",
    UNSUPPORTED,
    "unpacker {unpacker}: a compressed tile of format {fmt}, whose blocks are not whole units of "
    "16 bytes",
    "pack as bfp4 or bfp8, or without compression",
)
_L1 = error(
    "UNPACR-STORED-L1",
    UB,
    "unpacker {unpacker} reads L1 at {address:#x}, beyond the end at 0x180000",
    "check the row starts of a compressed tile, Base address and the ADC counters",
)
_EMPTY = error(
    "UNPACR-NOTHING",
    UNSUPPORTED,
    "unpacker {unpacker}: the row starts or X counters give {count} datums",
    "the row after this one must start later",
)
_SET = error(
    "UNPACR-SET-START",
    UNSUPPORTED,
    "unpacker 0 writes more than a row of SrcA from row {row} on: with compression, row search or "
    "upsampling the size of its bursts is not known",
    "start at a multiple of 16 rows, at column 0",
)


class Stream(NamedTuple):
    """Where stored datums come from: bit addresses of the next datum and of its number of zeros
    (or -1), exponent as in Source; stored datums, and how many datums to drop and then to keep."""

    data: int
    zeros: int
    exponent: int
    stored: int
    drop: int
    keep: int


@njit
def _blob(s: Any, m: Any, k: Any) -> Any:
    # First datum of blob k: four bits, in units of 16.
    starts = input_address.descriptor(s, m, np.int64(2)) >> 16
    starts |= (input_address.descriptor(s, m, np.int64(3)) & 0xFFFF) << 16
    if m.multi and m.unpacker == 0:
        starts = np.int64(
            s.cfg[m.bank, cf.UNP0_BLOBS_Y_START_CNTX_01_blobs_y_start.word + (m.context >> 1 & 1)]
        )
    return ((starts >> (4 * k)) & 15) << 4


@njit
def _row(s: Any, t: Any, m: Any, d: Any, search: Any) -> Any:
    # (first datum, datums) of an uncompressed tile.
    xy, zw = s.adc[m.counters, m.unpacker, 0], s.adc[t, m.unpacker, 0]
    last = s.adc[m.counters, m.unpacker, 1, X]
    blobs = section(s, m.bank, m.unpacker, DESCRIPTOR_BLOBS)
    x, y, end = xy[X], xy[Y], last + 1
    if search and blobs:
        x, y, after = _blob(s, m, xy[Y] & 7), np.int64(0), (xy[X] & 7) + 1
        end = d.x & 0x1F0 if after == blobs else _blob(s, m, after & 7)
    elif search:
        x, end = np.int64(0), last
    return x + d.x * (y + d.y * (zw[Z] + d.z * zw[W])), end - x


@njit
def _stored_row(s: Any, t: Any, m: Any, d: Any, at: Any, search: Any) -> Any:
    # (first stored datum, stored datums or -1, drop, keep) of a compressed tile; when its table
    # lies beyond L1: (address, _BEYOND_L1, 0, 0).
    xy, zw = s.adc[m.counters, m.unpacker, 0], s.adc[t, m.unpacker, 0]
    last = s.adc[m.counters, m.unpacker, 1, X]
    blobs = section(s, m.bank, m.unpacker, DESCRIPTOR_BLOBS)
    rows = blobs if search and blobs else d.y
    start = (at >> 1) + (zw[W] * d.z + zw[Z]) * rows
    mine, next_x, next_y = xy[Y] & 0xFF, (xy[X] & 0xFF) + 1, (xy[Y] & 0xFF) + 1
    end = 2 * (start + max(mine, max(next_x, next_y)) + 1)
    if end > L1_SIZE:
        return end, np.int64(_BEYOND_L1), np.int64(0), np.int64(0)
    table = l1_halves(s)
    first = np.int64(table[start + mine])
    endless = np.int64(1 << 32)
    if search:
        return first, np.int64(table[start + next_x]) - first, np.int64(0), endless
    if xy[X] == 0 and last == d.x - 1:
        return first, np.int64(table[start + next_y]) - first, np.int64(0), endless
    return first, np.int64(-1), xy[X], last + 1 - xy[X]


@njit
def _stream(s: Any, t: Any, m: Any, search: Any) -> Any:
    # The Stream; with _BEYOND_L1 stored datums `data` is the address.
    d = input_address.dimensions(s, m)
    bits, whole = formats.datum_bits(m.fmt), uncompressed(s, m)
    at = input_address.base(s, m)
    table = at
    if whole == 0:
        blobs = section(s, m.bank, m.unpacker, DESCRIPTOR_BLOBS)
        rows = (blobs if blobs else d.y) * d.z * d.w
        at += (2 * (rows + 1) + 15) & ~15
    first: Any = np.int64(0)
    stored, drop, keep, plain = first, first, first + (1 << 32), first - 1
    if whole:
        first, stored = _row(s, t, m, d, search)
    else:
        first, stored, drop, keep = _stored_row(s, t, m, d, table, search)
        if stored == _BEYOND_L1:
            return Stream(first, plain, plain, stored, drop, keep)
    data, exponent = at, plain
    if formats.is_bfp(m.fmt):
        data, exponent = input_address.data_of_bfp(s, m, d.x * d.y * d.z * d.w, at, first)
    if whole:
        return Stream((data << 3) + first * bits, plain, exponent, stored, drop, keep)
    block = (data << 3) + (first // _BLOCK) * (_BLOCK * bits + 128)
    inside = first % _BLOCK
    zeros = block + _BLOCK * bits + 4 * inside
    return Stream(block + inside * bits, zeros, exponent, stored, drop, keep)


@njit
def _put(s: Any, t: Any, m: Any, at: Any, shift: Any, cell: Any) -> None:
    # One cell (Src cell, or the 32-bit pattern for 32-bit Dst) to target datum `at`.
    row, column = at >> 4, at & 15
    if m.to_dst:
        if (WIDE >> m.out) & 1:
            dest.write32(s, row, column, dest.enc_32(cell))
        else:
            dest.write16(s, row, column, dst_cell_16(m, cell))
        return
    column -= shift
    if row < 0 or column < 0:
        return
    row += output_address.set_cells(s, t, m) >> 4
    if m.haloize and m.unpacker == 0:
        row, column = (row & ~15) | column, row & 15
    bank = s.unpack_bank[m.unpacker] & 1
    s.src[m.unpacker, bank, row & (SRC_ROWS - 1), column] = np.uint32(cell)


@njit
def _datum(s: Any, m: Any, bit: Any, exponent: Any) -> Any:
    # Cell of the stored datum at `bit`; -1: its exponent is out of range.
    if m.to_dst and (WIDE >> m.out) & 1:
        return np.int64(l1_words(s)[bit >> 5])
    none: Any = np.int64(0)
    src = Source(formats.datum_bits(m.fmt), bit, exponent, none + 16, none)
    outside = to_cells(s, m, src, np.int64(0), np.int64(1), s.unpack_tmp[:1])
    return np.int64(-1) if outside else np.int64(s.unpack_tmp[0])


@njit
def _walk(s: Any, t: Any, m: Any, q: Any, all_zero: Any, first: Any, write: Any) -> Any:
    # Follows the Stream; returns the cells that are passed, or an error.
    bits = formats.datum_bits(m.fmt)
    rate = section(s, m.bank, m.unpacker, cf.THCON_SEC0_REG2_Upsample_rate)
    skip = section(s, m.bank, m.unpacker, cf.THCON_SEC0_REG2_Upsample_and_interleave)
    shift, out = column_shift(s, m), first
    bit, zeros, exponent, drop, keep = q.data, q.zeros, q.exponent, q.drop, q.keep
    i = np.int64(0)
    while (q.stored < 0 or i < q.stored) and keep > 0:
        address = max(bit, max(zeros, exponent >> 1)) >> 3
        if address >= L1_SIZE:
            return np.int64(refuse(s, _L1, unpacker=m.unpacker, address=address))
        cell = np.int64(0) if all_zero else _datum(s, m, bit, exponent)
        if cell < 0:
            return np.int64(refuse(s, EXPONENT, unpacker=m.unpacker, fmt=m.fmt))
        i, bit = i + 1, bit + bits
        exponent += 1 if exponent >= 0 else 0
        more = np.int64(0)
        if zeros >= 0:
            more = (np.int64(s.l1[zeros >> 3]) >> (zeros & 7)) & 15
            zeros += 4
            if zeros & 127 == 0:
                bit, zeros = bit + 128, zeros + _BLOCK * bits
        for j in range(1 if all_zero else 1 + more):
            if drop:
                drop -= 1
                continue
            for k in range(1 << rate):
                if write and not (skip and k):
                    _put(s, t, m, out, shift, cell if j + k == 0 else np.int64(0))
                out += 1
            keep -= 1
            if keep == 0:
                break
    return out - first


@njit
def _refused(s: Any, t: Any, m: Any, first: Any, cells: Any) -> Any:
    if m.unpacker == 0 and m.to_dst == 0 and cells > 16 and first & 255:
        return refuse(s, _SET, row=first >> 4)
    override = config.thread(s, t, tf.SRCA_SET_SetOvrdWithAddr)
    return output_address.extent_refused(s, m, first, cells, override)


def _datum_by_datum(s: Any, t: Any, f: Any) -> Any:
    m = mode_of_word(s, t, f)
    first = output_address.first_cell(s, t, m)
    if first < 0:
        return first
    if m.unpacker == 0:
        first -= FIRST_CELL
    whole = uncompressed(s, m)
    upsampled = section(s, m.bank, m.unpacker, cf.THCON_SEC0_REG2_Upsample_rate)
    if m.tileize and (upsampled or whole == 0):
        return refuse(s, _TILEIZE, unpacker=m.unpacker)
    if whole == 0 and formats.datum_bits(m.fmt) < 4:
        return refuse(s, _TWO_BITS, unpacker=m.unpacker, fmt=m.fmt)
    q = _stream(s, t, m, f.row_search)
    if q.stored == _BEYOND_L1 and whole == 0:
        return refuse(s, _L1, unpacker=m.unpacker, address=q.data)
    if q.stored == 0 or (q.stored < 0 and whole) or q.keep <= 0:
        return refuse(s, _EMPTY, unpacker=m.unpacker, count=q.stored)
    status = input_address.start_refused(s, m, q.data)
    if status == 0:
        status = _walk(s, t, m, q, f.zero_write2, first, False)
    if status > 0:
        status = _refused(s, t, m, first, status)
        if status == 0:
            _walk(s, t, m, q, f.zero_write2, first, True)
            status = DONE
    return status


datum_by_datum = second_entry(UNPACK_DATUM_STREAM, _datum_by_datum, UnpackWord)
