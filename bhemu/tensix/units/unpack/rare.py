"""What an UNPACR seldom writes: zeros, 16-bit datums to Dst, block floats with 5-bit exponents.

`general` has checked the word and counts on afterwards.
"""

from typing import Any

import numpy as np

from bhemu.jit.flat import flat
from bhemu.jit.subset import njit
from bhemu.tensix import dest, formats
from bhemu.tensix.quirks import refuse
from bhemu.tensix.second_entries import UNPACK_RARE, second_entry
from bhemu.tensix.status import DONE, UB, error
from bhemu.tensix.units.unpack import geometry
from bhemu.tensix.units.unpack.convert import to_cells
from bhemu.tensix.units.unpack.geometry import FIRST_CELL, SRC_ROWS, X
from bhemu.tensix.units.unpack.modes import WIDE, column_shift
from bhemu.tensix.units.unpack.target import to_src
from bhemu.tensix.units.unpack.word import UnpackWord, mode_of_word

_PIECE = 1024  # datums converted at a time

EXPONENT = error(
    "UNPACR-BFP-EXPONENT",
    UB,
    "unpacker {unpacker}: an exponent of format {fmt}, less the leading zeros of its datum, is "
    "not in 0 to 31",
    "5-bit block floating point (bfp8a, bfp4a, bfp2a) has exponents from 0 to 31",
)


@njit
def _exponents_refused(s: Any, m: Any, src: Any, count: Any) -> Any:
    # Converts everything once, to look at the exponents before any effect.
    if not formats.is_bfp(m.fmt) or m.fmt & 4:
        return 0
    done = np.int64(0)
    while done < count:
        n = min(count - done, _PIECE)
        if m.tileize:
            n = min(n, src.row - done % src.row)
        if to_cells(s, m, src, done, n, s.unpack_tmp[:n]):
            return refuse(s, EXPONENT, unpacker=m.unpacker, fmt=m.fmt)
        done += n
    return 0


@njit(inline="always")
def dst_cell_16(m: Any, cell: Any) -> Any:
    """16-bit Dst cell (int64) of a Src cell (int64) in Mode `m`."""
    if (formats.FIVE_BIT_DATUMS >> m.out) & 1:
        return (cell >> 16 & 0x8000) | dest.enc_fp16(cell >> 13 & 0x7FFF)
    return dest.enc_bf16(cell >> 16)


@njit(inline="always")  # one caller
def _to_dst_16(s: Any, m: Any, src: Any, first: Any, count: Any) -> None:
    store = flat(s.dst)
    done = np.int64(0)
    while done < count:
        n = min(count - done, _PIECE)
        if m.tileize:
            n = min(n, src.row - done % src.row)
        cells = s.unpack_tmp[:n]
        to_cells(s, m, src, done, n, cells)
        for i in range(n):
            at = first + done + i
            cell = np.uint16(dst_cell_16(m, np.int64(cells[i])))
            store[16 * dest.row16(s, at >> 4) + (at & 15)] = cell
            if dest.halves(s):
                low = dest.adj32(at >> 4) + dest.LOW_HALF
                s.dst[low, at & 15] = np.uint16(dest.UNPREDICTABLE)
                s.dst_valid[low] = dest.UNWRITTEN
        done += n
    for row in range(first >> 4, (first + count + 15) >> 4):
        dest.mark16(s, row, 1)


@njit(inline="always")  # one caller
def _zeros(s: Any, m: Any, first: Any, count: Any) -> None:
    # zero_write2: what is read does not matter.
    shift = column_shift(s, m)
    for at in range(first, first + count):
        row, column = at >> 4, at & 15
        if not m.to_dst:
            row, column = row & (SRC_ROWS - 1), column - shift
            if column < 0:
                continue
            if m.haloize and m.unpacker == 0:
                row, column = (row & ~15) | column, row & 15
            s.src[m.unpacker, s.unpack_bank[m.unpacker] & 1, row, column] = np.uint32(0)
        elif (WIDE >> m.out) & 1:
            dest.write32(s, row, column, np.int64(0))
        else:
            dest.write16(s, row, column, np.int64(0))


def _rare(s: Any, t: Any, f: Any) -> Any:
    m = mode_of_word(s, t, f)
    first = geometry.first_cell(s, t, m)
    if m.unpacker == 0:
        first -= FIRST_CELL
    count = s.adc[m.counters, m.unpacker, 1, X] - s.adc[m.counters, m.unpacker, 0, X] + 1
    if f.zero_write2:
        start = np.int64(0) if m.to_dst else np.int64(max(-first, 0))
        _zeros(s, m, first + geometry.set_cells(s, t, m) + start, count - start)
        return DONE
    src = geometry.source(s, t, m)
    status = _exponents_refused(s, m, src, count)
    if status:
        return status
    if m.to_dst:
        _to_dst_16(s, m, src, first, count)
    else:
        start = np.int64(max(-first, 0))
        to_src(s, m, src, first + geometry.set_cells(s, t, m), start, count)
    return DONE


rare = second_entry(UNPACK_RARE, _rare, UnpackWord)
