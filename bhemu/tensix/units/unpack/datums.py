"""Datums of UNPACR: their formats in L1 and how they are written to SrcA, SrcB and Dst."""

from typing import Any

import numpy as np

from bhemu.jit.intrinsics import flat
from bhemu.jit.subset import njit
from bhemu.tensix import config, dest, formats, unspecified
from bhemu.tensix import config_fields as cf
from bhemu.tensix.insn import UNPACK_DST_16, UNPACK_EXPONENTS, UNPACK_ZEROS, second_entry
from bhemu.tensix.rules import DONE, UB, error, refuse
from bhemu.tensix.state import l1_halves, l1_words, weights
from bhemu.tensix.units.counters import SRC_ROWS, X
from bhemu.tensix.units.unpack import addresses
from bhemu.tensix.units.unpack.addresses import FIRST_CELL
from bhemu.tensix.units.unpack.modes import WIDE, UnpackWord, column_shift, mode_of_word, section

# From datums in L1 to cells of a source register: one loop over datums per width of datum.
#
# A Src cell holds sign, 8-bit exponent and 10-bit mantissa in bits 31..13.  Formats with a 5-bit
# exponent keep it as it is; nothing rounds.

PIECE = 1024  # datums converted at a time, at most

_SIGN = 0x80000000
_MINUS_INF = 0xFF800000
_MINUS_BFP_A = 0x8F800000  # -2**16 as fp16, what the sign alone means


@njit
def _from_32(s: Any, out: Any, at: Any, n: Any, cells: Any) -> None:
    words = l1_words(s)[at >> 2 : (at >> 2) + n]
    if out == formats.FP16:
        for i in range(n):
            v = np.int64(words[i])
            cells[i] = np.uint32(formats.fp16_cell(formats.fp32_to_fp16(v)))
        return
    keep, denormal = np.uint32(0xFFFFE000), np.uint32(0xFFFFE000)
    if out == formats.BF16:
        keep, denormal = np.uint32(0xFFFF0000), np.uint32(_SIGN)
    for i in range(n):
        normal = words[i] & np.uint32(0x7F800000)
        cells[i] = words[i] & (keep if normal else denormal)


@njit
def _from_16(s: Any, fmt: Any, at: Any, n: Any, cells: Any) -> None:
    # The sign and two groups of bits, each moved to its place in the cell.  uint16 is taken for a
    # shuffled bf16, so that moving the cell to Dst restores the word.
    words = l1_halves(s)[at >> 1 : (at >> 1) + n]
    low, low_by, high, high_by = np.uint32(0x7FFF), np.uint32(16), np.uint32(0), np.uint32(0)
    if fmt == formats.FP16:
        low_by = np.uint32(13)
    elif fmt == formats.UINT16:
        low, low_by, high, high_by = np.uint32(0xFF), np.uint32(23), np.uint32(0x7F00), np.uint32(8)
    for i in range(n):
        v = np.uint32(words[i])
        sign = (v & np.uint32(0x8000)) << np.uint32(16)
        cells[i] = sign | ((v & low) << low_by) | ((v & high) << high_by)


@njit
def _bfp_bytes(s: Any, bits: Any, bit: Any, n: Any, cells: Any) -> None:
    # Sign and magnitude of each datum, left-aligned in 8 bits.
    if bits == 8:
        data = s.l1[bit >> 3 : (bit >> 3) + n]
        for i in range(n):
            cells[i] = np.uint32(data[i])
        return
    keep = np.uint32(0x100 - (0x100 >> bits))
    if bits == 4 and (bit | n << 2) & 7 == 0:
        data = s.l1[bit >> 3 : (bit >> 3) + (n >> 1)]
        for i in range(n >> 1):
            v = np.uint32(data[i])
            cells[2 * i] = np.uint32(v << np.uint32(4)) & np.uint32(0xF0)
            cells[2 * i + 1] = v & np.uint32(0xF0)
        return
    for i in range(n):
        at = bit + i * bits
        v = np.int64(s.l1[at >> 3]) << (8 - bits) >> (at & 7)
        cells[i] = np.uint32(v) & keep


@njit
def _from_bfp(s: Any, m: Any, bits: Any, bit: Any, exponent: Any, n: Any, cells: Any) -> Any:
    # A magnitude as float has the exponent 127 + log2 of it; its leading bit has the weight of the
    # shared exponent when it is bit 6.  Exponents wrap modulo 256, as in the silicon.  Those of
    # 5 bits stand at the same place in the cell; not 0 when one of them is beyond 31.
    _bfp_bytes(s, bits, bit, n, cells)
    five = m.fmt & 4 == 0
    minus = np.uint32(_MINUS_BFP_A if five else _MINUS_INF)
    normal, as_float = s.unpack_weight, weights(s)
    for i in range(n):
        as_float[i] = np.float32(np.int32(cells[i] & np.uint32(0x7F)))
    outside = np.uint32(0)
    start: Any = np.int64(0)
    end: Any = np.int64(0)
    while start < n:
        shared = -1 - exponent
        end = n
        if exponent >= 0:
            shared = np.int64(s.l1[(exponent + start) >> 4])
            end = min(start + 16 - ((exponent + start) & 15), n)
        offset = np.uint32(((shared + 256 - 127 - 6) & 0xFF) << 23)
        group, weighed = cells[start:end], normal[start:end]
        for j in range(end - start):
            v = group[j]
            sign = (v & np.uint32(0x80)) << np.uint32(24)
            finite = np.uint32(weighed[j] + offset) & np.uint32(0x7FFFFFFF)
            special = minus if sign else np.uint32(0)
            group[j] = (finite | sign) if v & np.uint32(0x7F) else special
        if five:
            for j in range(end - start):
                outside |= group[j] & np.uint32(0x70000000)
        start = end
    return np.int64(outside)


@njit
def cells_of_16_or_32_bits(s: Any, m: Any, bits: Any, at: Any, n: Any, cells: Any) -> None:
    """Write cells[0:n] (uint32) from n datums of 16 or 32 bits, at address `at` without a gap."""
    if bits == 32:
        _from_32(s, m.out, at, n, cells)
    else:
        _from_16(s, m.fmt, at, n, cells)


@njit
def to_cells(s: Any, m: Any, src: Any, done: Any, n: Any, cells: Any) -> Any:
    """Write cells[0:n] (uint32) from datum `done` and the n - 1 that follow it without a gap.

    `m` is the unpacker's Mode, `src` the Source, n at most PIECE.  Not 0 when a 5-bit exponent left
    its range.
    """
    bit = src.data + src.bits * (done % src.row) + 8 * src.step * (done // src.row)
    at = bit >> 3
    if src.bits >= 16:
        cells_of_16_or_32_bits(s, m, src.bits, at, n, cells)
    elif m.fmt == formats.FP8 or m.fmt == formats.INT8:
        # Sign, magnitude moved to its place in the cell, a bias added to normal numbers, and the
        # low mantissa bits that go with the largest magnitude of fp8.
        b, u = m.bank, m.unpacker
        data = s.l1[at : at + n]
        sign, by, normal, bias, largest, fill = 0x80, 21, 0x100, 0, 0x7F, 0xFF << 13  # e5m2
        if m.fmt == formats.INT8:
            f0, f1 = cf.ALU_FORMAT_SPEC_REG0_SrcAUnsigned, cf.ALU_FORMAT_SPEC_REG0_SrcBUnsigned
            if config.get(s, b, f1 if u else f0):
                sign = 0
            by, normal, bias, fill = 13, 1, 16 << 23, 0
        elif section(s, b, u, cf.THCON_SEC0_REG1_Unp_LF8_4b_exp):
            by, normal, bias, fill = 20, 8, 8 << 23, 0x7F << 13
        for i in range(n):
            v = np.int64(data[i])
            magnitude = v & ~sign
            cell = ((v & sign) << 24) | (magnitude << by)
            cell += bias if magnitude >= normal else 0
            cells[i] = np.uint32(cell | (fill if magnitude == largest else 0))
    else:
        exponent = src.exponent + done if src.exponent >= 0 else src.exponent
        return _from_bfp(s, m, src.bits, bit, exponent, n, cells)
    return np.int64(0)


# UNPACR of block floats with 5-bit exponents (bfp8a, bfp4a, bfp2a): are they in range? All are
# converted once, to look at the exponents before any effect.

EXPONENT = error("UNPACR-BFP-EXPONENT", UB, "unpacker {unpacker}: an exponent of format {fmt}, less the leading zeros of its datum, is not in 0 to 31", "5-bit block floating point (bfp8a, bfp4a, bfp2a) has exponents from 0 to 31")  # fmt: skip


def _exponents_refused(s: Any, t: Any, f: Any) -> Any:
    m = mode_of_word(s, t, f)
    count = s.adc[m.counters, m.unpacker, 1, X] - s.adc[m.counters, m.unpacker, 0, X] + 1
    src = addresses.source(s, t, m)
    done = np.int64(0)
    while done < count:
        n = min(count - done, PIECE)
        if m.tileize:
            n = min(n, src.row - done % src.row)
        if to_cells(s, m, src, done, n, s.unpack_tmp[:n]):
            return refuse(s, EXPONENT, unpacker=m.unpacker, fmt=m.fmt)
        done += n
    return DONE


exponents_refused = second_entry(UNPACK_EXPONENTS, _exponents_refused, UnpackWord)


# Writing datums to Dst: 32-bit datums as they are, others as 16-bit cells.


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
        unspecified.hold(s, 2 * i, at + i * dest.LOW_HALF, from_first & 0xFFFF)
        unspecified.hold(s, 2 * i + 1, end + i * dest.LOW_HALF, to_last & 0xFFFF)


@njit
def _settle_doubt(s: Any, first: Any, count: Any, wide: Any) -> None:
    at, end = _ends(s, first, count, wide)
    for i in range(1 + wide):
        unspecified.settle(s, 2 * i, at + i * dest.LOW_HALF)
        unspecified.settle(s, 2 * i + 1, end + i * dest.LOW_HALF)


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


def _to_dst_16(s: Any, t: Any, f: Any) -> Any:
    m = mode_of_word(s, t, f)
    first = addresses.first_cell(s, t, m) - FIRST_CELL
    count = s.adc[m.counters, m.unpacker, 1, X] - s.adc[m.counters, m.unpacker, 0, X] + 1
    src = addresses.source(s, t, m)
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
    return DONE


to_dst_16 = second_entry(UNPACK_DST_16, _to_dst_16, UnpackWord)


# Writing cells to a source register: rows wrap, transposition, column shift.

_SRC_CELLS = SRC_ROWS * 16


@njit
def to_src(s: Any, m: Any, src: Any, first: Any, start: Any, count: Any) -> None:
    """Write datums `start` to `count` of the Source in Mode `m`; datum 0 goes to cell `first`."""
    target = flat(s.src[m.unpacker, s.unpack_bank[m.unpacker] & 1])
    transposed = m.haloize and m.unpacker == 0
    shift = column_shift(s, m)
    done = start
    while done < count:
        at = (first + done) & (_SRC_CELLS - 1)
        n = min(count - done, _SRC_CELLS - at)
        if m.tileize:
            n = min(n, src.row - done % src.row)
        cells = s.unpack_tmp[:n] if transposed or shift else target[at : at + n]
        to_cells(s, m, src, done, n, cells)
        if transposed or shift:
            for i in range(n):
                cell = at + i
                column = (cell & 15) - shift
                if column < 0:
                    continue
                row = cell >> 4
                if transposed:
                    row, column = (row & ~15) | column, row & 15
                target[16 * row + column] = cells[i]
        done += n


# UNPACR with zero_write2: zeros to Src or Dst, whatever is read.


def _zeros(s: Any, t: Any, f: Any) -> Any:
    m = mode_of_word(s, t, f)
    first = addresses.first_cell(s, t, m)
    if m.unpacker == 0:
        first -= FIRST_CELL
    count = s.adc[m.counters, m.unpacker, 1, X] - s.adc[m.counters, m.unpacker, 0, X] + 1
    start = np.int64(0) if m.to_dst else np.int64(max(-first, 0))
    first, shift = first + addresses.set_cells(s, t, m), column_shift(s, m)
    for at in range(first + start, first + count):
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
    return DONE


zeros = second_entry(UNPACK_ZEROS, _zeros, UnpackWord)
