"""Writing datums to Dst: 32-bit datums as they are, others as 16-bit cells.

`stages` has checked the word and counts on afterwards.
"""

from typing import Any

import numpy as np

from bhemu.jit.flat import flat
from bhemu.jit.subset import njit
from bhemu.tensix import dest, doubt, formats
from bhemu.tensix.second_entries import UNPACK_DST_16, second_entry
from bhemu.tensix.status import DONE
from bhemu.tensix.units.adc import X
from bhemu.tensix.units.unpack import input_address, output_address
from bhemu.tensix.units.unpack.datums import PIECE, to_cells
from bhemu.tensix.units.unpack.output_address import FIRST_CELL
from bhemu.tensix.units.unpack.word import UnpackWord, mode_of_word
from bhemu.tensix.words import l1_words


@njit
def _ends(s: Any, first: Any, count: Any, wide: Any) -> Any:
    """Storage rows of the first and the last Dst row that `count` datums from `first` reach."""
    row, last = first >> 4, (first + count - 1) >> 4
    if wide:
        return dest.adj32(row), dest.adj32(last)
    return dest.row16(s, row), dest.row16(s, last)


@njit
def _hold_doubt(s: Any, first: Any, count: Any, wide: Any) -> None:
    """Keep the doubt of cells of the first and the last row that are not written."""
    at, end = _ends(s, first, count, wide)
    from_first, to_last = 0xFFFF << (first & 15), 0xFFFF >> (15 - ((first + count - 1) & 15))
    if at == end:
        from_first &= to_last
        to_last = from_first
    for i in range(1 + wide):
        doubt.hold(s, 2 * i, at + i * dest.LOW_HALF, from_first & 0xFFFF)
        doubt.hold(s, 2 * i + 1, end + i * dest.LOW_HALF, to_last & 0xFFFF)


@njit
def _settle_doubt(s: Any, first: Any, count: Any, wide: Any) -> None:
    at, end = _ends(s, first, count, wide)
    for i in range(1 + wide):
        doubt.settle(s, 2 * i, at + i * dest.LOW_HALF)
        doubt.settle(s, 2 * i + 1, end + i * dest.LOW_HALF)


@njit(forceinline=True)  # one caller
def to_dst_32(s: Any, src: Any, first: Any, count: Any) -> None:
    """Write `count` datums of the Source from Dst datum `first` on, as 32-bit datums."""
    # 32-bit rows of a group of eight follow each other in the storage; source rows need not.
    store = flat(s.dst)
    if s.doubt[0]:
        _hold_doubt(s, first, count, 1)
    done = np.int64(0)
    while done < count:
        at = first + done
        n = min(count - done, 128 - (at & 127))
        if src.step != 4 * src.row:
            n = min(n, src.row - done % src.row)
        word = ((src.data >> 3) + 4 * (done % src.row) + src.step * (done // src.row)) >> 2
        data = l1_words(s)[word : word + n]
        start = 16 * dest.adj32(at >> 4) + (at & 15)
        high, low = store[start : start + n], store[start + 128 : start + 128 + n]
        for i in range(n):
            v = np.uint32(data[i] >> np.uint32(16))
            mantissa = np.uint32((v & np.uint32(0x7F)) << np.uint32(8))
            exponent = np.uint32(v >> np.uint32(7)) & np.uint32(0xFF)
            high[i] = np.uint16((v & np.uint32(0x8000)) | mantissa | exponent)
            low[i] = np.uint16(data[i] & np.uint32(0xFFFF))
        for row in range(start >> 4, (start + n + 15) >> 4):
            s.dst_valid[row] = 1
            dest.written(s, row + dest.LOW_HALF)
        done += n
    if s.doubt[0]:
        _settle_doubt(s, first, count, 1)


@njit(inline="always")
def dst_cell_16(m: Any, cell: Any) -> Any:
    """16-bit Dst cell (int64) of a Src cell (int64) in Mode `m`."""
    if (formats.FIVE_BIT_DATUMS >> m.out) & 1:
        return (cell >> 16 & 0x8000) | dest.enc_fp16(cell >> 13 & 0x7FFF)
    return dest.enc_bf16(cell >> 16)


@njit(inline="always")  # one caller
def _write_16(s: Any, m: Any, src: Any, first: Any, count: Any) -> None:
    store = flat(s.dst)
    if s.doubt[0]:
        _hold_doubt(s, first, count, 0)
    done = np.int64(0)
    while done < count:
        n = min(count - done, PIECE)
        if m.tileize:
            n = min(n, src.row - done % src.row)
        cells = s.unpack_tmp[:n]
        to_cells(s, m, src, done, n, cells)
        for i in range(n):
            at = first + done + i
            cell = np.uint16(dst_cell_16(m, np.int64(cells[i])))
            store[16 * dest.row16(s, at >> 4) + (at & 15)] = cell
            if dest.halves(s):
                dest.spoil_one(s, dest.adj32(at >> 4), at)
        done += n
    for row in range(first >> 4, (first + count + 15) >> 4):
        dest.mark16(s, row, 1)
    if s.doubt[0]:
        _settle_doubt(s, first, count, 0)


def _to_dst_16(s: Any, t: Any, f: Any) -> Any:
    m = mode_of_word(s, t, f)
    first = output_address.first_cell(s, t, m) - FIRST_CELL
    count = s.adc[m.counters, m.unpacker, 1, X] - s.adc[m.counters, m.unpacker, 0, X] + 1
    _write_16(s, m, input_address.source(s, t, m), first, count)
    return DONE


to_dst_16 = second_entry(UNPACK_DST_16, _to_dst_16, UnpackWord)
