"""From datums in L1 to cells of a source register: one loop over datums per width of datum.

A Src cell holds sign, 8-bit exponent and 10-bit mantissa in bits 31..13.  Formats with a 5-bit
exponent keep it as it is; nothing rounds.  Source: FormatConversion, UNPACR_Regular, Wormhole ISA;
fp8, bfp and int8 after ttsim's Tensix model.
"""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import config, formats
from bhemu.tensix import config_fields as cf
from bhemu.tensix.units.unpack.modes import section
from bhemu.tensix.words import l1_halves, l1_words, weights

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
def _from_8(s: Any, m: Any, at: Any, n: Any, cells: Any) -> None:
    # Sign, magnitude moved to its place in the cell, a bias added to normal numbers, and the low
    # mantissa bits that go with the largest magnitude of fp8.
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
def cells_of_16_or_32_bits(s: Any, m: Any, src: Any, n: Any, cells: Any) -> None:
    """Write cells[0:n] (uint32) from the first n datums of 16 or 32 bits, not tilized."""
    if src.bits == 32:
        _from_32(s, m.out, src.data >> 3, n, cells)
    else:
        _from_16(s, m.fmt, src.data >> 3, n, cells)


@njit
def to_cells(s: Any, m: Any, src: Any, done: Any, n: Any, cells: Any) -> Any:
    """Write cells[0:n] (uint32) from datum `done` and the n - 1 that follow it without a gap.

    `m` is the unpacker's Mode, `src` the Source, n at most PIECE.  Not 0 when a 5-bit exponent left
    its range.
    """
    bit = src.data + src.bits * (done % src.row) + 8 * src.step * (done // src.row)
    at = bit >> 3
    if src.bits == 32:
        _from_32(s, m.out, at, n, cells)
    elif src.bits == 16:
        _from_16(s, m.fmt, at, n, cells)
    elif m.fmt == formats.FP8 or m.fmt == formats.INT8:
        _from_8(s, m, at, n, cells)
    else:
        exponent = src.exponent + done if src.exponent >= 0 else src.exponent
        return _from_bfp(s, m, src.bits, bit, exponent, n, cells)
    return np.int64(0)
