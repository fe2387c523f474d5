"""Accumulate, normalise, round: floating-point terms are added to Dst and stored in its format.

A term is (sign 0 or 1, exponent, magnitude).  Terms and Dst are shifted to the largest exponent
with a rounding of their own, added, and rounded again; a 16-bit Dst loses 13 bits before the sum.
There is no sticky bit and no NaN; results of exponent 0 or less become +0.  Infinities are ordinary
large numbers on the way in.  Source: MVMUL and ELWADD, Wormhole ISA; accumulation in ttsim's
Tensix model.

Cells are taken apart and put together in their shuffled order (see dest.py): sign, fraction,
exponent.
"""

from typing import Any, NamedTuple

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import dest
from bhemu.tensix.dest import COLUMNS, LOW_HALF

_U, _I = np.uint32, np.int32
_ZERO, _ONE = _U(0), _U(1)
_ALL = _U(0xFFFFFFFF)


class Cell(NamedTuple):
    """A 16-bit Dst cell: s, fraction, exponent; `point` is where bit 0 of the fraction stands."""

    exponent_bits: int
    exponent_mask: int
    fraction_mask: int
    hidden: int
    point: int
    limit: int  # exponents from here on are too large ...
    huge: int  # ... and give this cell


BF16 = Cell(8, 0xFF, 0x7F, 0x80, 16, 255, 0x00FF)  # infinity
FP16 = Cell(5, 0x1F, 0x3FF, 0x400, 13, 32, 0x7FFF)  # the largest number


@njit(forceinline=True)
def aligned(magnitude: Any, sign: Any, distance: Any) -> Any:
    """`magnitude` shifted right by `distance` >= 0, half of the signed value towards +infinity."""
    d = _U(min(distance, _I(31)) & _I(31))
    half = _U(_U(_ONE << d) >> _ONE)
    # Shifted by 0 nothing is rounded.  A magnitude is below 2**29, or a small negative number.
    return _U(_U(_I(_I(magnitude) + _I(half)) - _I(min(sign, d))) >> d)


@njit(forceinline=True)
def cut(magnitude: Any, sign: Any) -> Any:
    """Rounded to what a 16-bit Dst keeps of an aligned term."""
    return _U(_U(_U(magnitude + _U(4096)) - sign) & _U(0xFFFFE000))


@njit(forceinline=True)
def plus(total: Any, magnitude: Any, opposite: Any) -> Any:
    """`total` with a magnitude added, or taken off when its sign is the opposite one."""
    m = _I(magnitude)
    return _I(total + (_I(-m) if opposite else m))


@njit(forceinline=True)
def shift_of(magnitude: Any) -> Any:
    """Left shift (negative: right) that brings the leading bit of a non-zero value to bit 23."""
    # The leading bit alone decides the float's exponent: the bit below it is cleared first.
    leading = np.float32(_I(magnitude & ~_U(magnitude >> _ONE)))
    return _I(_I(127 + 23) - _I(leading.view(np.int32) >> _I(23)))


@njit(forceinline=True)
def _rounded(magnitude: Any, right: Any) -> Any:
    """`magnitude` shifted right by 0-31, half up."""
    n = _U(right & _I(31))
    return _U(_U(magnitude + _U(_U(_ONE << n) >> _ONE)) >> n)


@njit(forceinline=True)
def assembled_16(c: Any, sign: Any, e: Any, total: Any, m: Any, x: Any) -> Any:
    """The cell of a rounded mantissa `m` with exponent `e`; its sign flips when `total` < 0.

    `x`: the exponent that the terms were aligned to.
    """
    e = _I(e + _I(m > _U(_U(c.hidden) + _U(c.fraction_mask))))
    bits = _U(_U(_U(m & _U(c.fraction_mask)) << _U(c.exponent_bits)) | _U(e & _I(c.exponent_mask)))
    bits = _U(c.huge) if e >= _I(c.limit) else bits
    sign = _U(sign ^ (_ONE if total < _I(0) else _ZERO))
    some = (total != _I(0)) and (e > _I(0)) and (x > _I(0))
    return np.uint16(_U(_U(sign << _U(15)) | bits) if some else _ZERO)


@njit(forceinline=True)
def _cell_16(c: Any, sign: Any, x: Any, total: Any) -> Any:
    """The cell of sum `total` with the exponent `x` of bit 23."""
    magnitude = _U(abs(total))
    shift = shift_of(magnitude)
    m = _rounded(magnitude, _I(_I(c.point) - shift))
    return assembled_16(c, sign, _I(x - shift), total, m, x)


@njit(forceinline=True)
def assembled_32(sign: Any, e: Any, total: Any, m: Any, x: Any) -> Any:
    """As `assembled_16` for a 32-bit Dst: both halves as one word, the high half s m7 e8."""
    e = _I(e + _I(m >> _U(24)))
    bits = _U(_U(_U(m & _U(0x7F0000)) << _U(8)) | _U(m & _U(0xFFFF)))
    bits = _U(bits | _U(_U(e & _I(255)) << _U(16)))
    bits = _U(0x00FF0000) if e >= _I(255) else bits
    sign = _U(sign ^ (_ONE if total < _I(0) else _ZERO))
    some = (total != _I(0)) and (e > _I(0)) and (x > _I(0))
    return _U(_U(sign << _U(31)) | bits) if some else _ZERO


@njit(forceinline=True)
def _word_32(sign: Any, x: Any, total: Any) -> Any:
    """The same of sum `total` with the exponent `x` of bit 23."""
    magnitude = _U(abs(total))
    shift = shift_of(magnitude)
    m = _rounded(magnitude, max(_I(-shift), _I(0)))
    m = _U(m << _U(max(shift, _I(0)) & _I(31)))
    return assembled_32(sign, _I(x - shift), total, m, x)


@njit(forceinline=True)
def taken_16(c: Any, old: Any) -> Any:
    """(sign, exponent, magnitude) of a 16-bit cell."""
    sign, xd = _U(old >> _U(15)), _I(old & _U(c.exponent_mask))
    md = _U(_U(_U(old >> _U(c.exponent_bits)) & _U(c.fraction_mask)) | _U(c.hidden))
    return sign, xd, _U(md << _U(c.point)) if xd != _I(0) else _ZERO


@njit(forceinline=True)
def taken_32(old: Any, rest: Any) -> Any:
    """(sign, exponent, magnitude) of both halves of a 32-bit cell."""
    sign, xd = _U(old >> _U(15)), _I(old & _U(0xFF))
    md = _U(_U(_U(_U(_U(old >> _U(8)) & _U(0x7F)) | _U(0x80)) << _U(16)) | rest)
    return sign, xd, md if xd != _I(0) else _ZERO


@njit(forceinline=True)
def group(total: Any, exponent: Any, bias: Any, least: Any) -> Any:
    """(sign, exponent, magnitude) of a sum of products; `least` is the exponent of no product."""
    x = max(_I(_I(exponent) + bias), least)
    t = _I(total) if x > _I(0) else _I(0)
    return (_ONE if t < _I(0) else _ZERO), x, _U(_U(abs(t)) << _U(13))


@njit
def _add_sums_16(s: Any, c: Any, first: Any, rows: Any, bias: Any) -> None:
    least = max(bias, _I(0))
    dest.spoil(s, first, rows)
    for r in range(rows):
        row, at = dest.row16(s, first + r), (r & 7) * COLUMNS
        cells, keep = s.dst[row], _ALL if s.dst_valid[row] else _ZERO
        for j in range(COLUMNS):
            s0, x0, m0 = group(s.term_sum[0, at + j], s.term_exponent[0, at + j], bias, least)
            s1, x1, m1 = group(s.term_sum[1, at + j], s.term_exponent[1, at + j], bias, least)
            old = _U(_U(cells[j]) & keep)
            sign, xd, md = taken_16(c, old)
            x = max(max(x0, x1), xd)
            t = _I(cut(aligned(md, _ZERO, _I(x - xd)), _ZERO))
            t = plus(t, cut(aligned(m0, s0, _I(x - x0)), s0), s0 != sign)
            t = plus(t, cut(aligned(m1, s1, _I(x - x1)), s1), s1 != sign)
            cells[j] = _cell_16(c, sign, x, t)
        s.dst_valid[row] = 1


@njit
def _add_sums_32(s: Any, first: Any, rows: Any, bias: Any) -> None:
    least = max(bias, _I(0))
    for r in range(rows):
        row, at = dest.adj32((first + r) & (dest.ROWS - 1)), (r & 7) * COLUMNS
        high, low, keep = s.dst[row], s.dst[row + LOW_HALF], _ALL if s.dst_valid[row] else _ZERO
        for j in range(COLUMNS):
            s0, x0, m0 = group(s.term_sum[0, at + j], s.term_exponent[0, at + j], bias, least)
            s1, x1, m1 = group(s.term_sum[1, at + j], s.term_exponent[1, at + j], bias, least)
            sign, xd, md = taken_32(_U(_U(high[j]) & keep), _U(_U(low[j]) & keep))
            x = max(max(x0, x1), xd)
            t = _I(aligned(md, _ZERO, _I(x - xd)))
            t = plus(t, aligned(m0, s0, _I(x - x0)), s0 != sign)
            t = plus(t, aligned(m1, s1, _I(x - x1)), s1 != sign)
            new = _word_32(sign, x, t)
            high[j] = np.uint16(_U(new >> _U(16)))
            low[j] = np.uint16(_U(new & _U(0xFFFF)))
        s.dst_valid[row] = 1
        dest.written(s, row + LOW_HALF)


@njit(forceinline=True)
def add_sums(s: Any, wide: Any, five_bit: Any, first: Any, rows: Any, bias: Any) -> None:
    """Add both sums of products (s.term_sum, s.term_exponent + `bias`) to `rows` Dst rows."""
    if wide:
        _add_sums_32(s, first, rows, _I(bias))
    else:
        _add_sums_16(s, FP16 if five_bit else BF16, first, rows, _I(bias))


@njit
def _add_terms_16(s: Any, c: Any, first: Any, add_dst: Any) -> None:
    dest.spoil(s, first, np.int64(8))
    for r in range(8):
        row, at = dest.row16(s, first + r), r * COLUMNS
        cells, keep = s.dst[row], _ALL if add_dst and s.dst_valid[row] else _ZERO
        for j in range(COLUMNS):
            s0, x0 = _U(s.term_sum[0, at + j]), _I(s.term_exponent[0, at + j])
            old = _U(_U(cells[j]) & keep)
            sign, xd, md = taken_16(c, old)
            x = max(max(x0, _I(0)), xd)
            t = _I(cut(aligned(md, _ZERO, _I(x - xd)), _ZERO))
            m0 = cut(aligned(s.term_magnitude[at + j], s0, _I(x - x0)), s0)
            cells[j] = _cell_16(c, sign, x, plus(t, m0, s0 != sign))
        s.dst_valid[row] = 1


@njit
def _add_terms_32(s: Any, first: Any, add_dst: Any) -> None:
    for r in range(8):
        row, at = dest.adj32((first + r) & (dest.ROWS - 1)), r * COLUMNS
        high, low = s.dst[row], s.dst[row + LOW_HALF]
        keep = _ALL if add_dst and s.dst_valid[row] else _ZERO
        for j in range(COLUMNS):
            s0, x0 = _U(s.term_sum[0, at + j]), _I(s.term_exponent[0, at + j])
            sign, xd, md = taken_32(_U(_U(high[j]) & keep), _U(_U(low[j]) & keep))
            x = max(max(x0, _I(0)), xd)
            t = _I(aligned(md, _ZERO, _I(x - xd)))
            m0 = aligned(s.term_magnitude[at + j], s0, _I(x - x0))
            new = _word_32(sign, x, plus(t, m0, s0 != sign))
            high[j] = np.uint16(_U(new >> _U(16)))
            low[j] = np.uint16(_U(new & _U(0xFFFF)))
        s.dst_valid[row] = 1
        dest.written(s, row + LOW_HALF)


@njit(forceinline=True)
def add_terms(s: Any, wide: Any, five_bit: Any, first: Any, add_dst: Any) -> None:
    """Add one term per cell (term_sum[0] sign, term_exponent[0], term_magnitude) to 8 Dst rows.

    Without `add_dst` the old contents count as zero.
    """
    if wide:
        _add_terms_32(s, first, add_dst)
    else:
        _add_terms_16(s, FP16 if five_bit else BF16, first, add_dst)
