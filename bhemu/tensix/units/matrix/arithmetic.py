"""Arithmetic of the matrix unit: products of Src datums, and their accumulation in Dst."""

from typing import Any, NamedTuple

import numpy as np

from bhemu.bits import Word, bits
from bhemu.jit.subset import JIT, njit
from bhemu.tensix import dest, lanes
from bhemu.tensix.banks import SRCA, SRCB
from bhemu.tensix.dest import COLUMNS, LOW_HALF
from bhemu.tensix.insn import FPU_STOCHASTIC, second_entry
from bhemu.tensix.rules import DONE
from bhemu.tensix.units import matrix as operands
from bhemu.tensix.units.matrix import sixteen

# Accumulate, normalise, round: floating-point terms are added to Dst and stored in its format.
#
# A term is (sign 0 or 1, exponent, magnitude).  Terms and Dst are shifted to the largest exponent
# with a rounding of their own, added, and rounded again; a 16-bit Dst loses 13 bits before the
# sum. There is no sticky bit and no NaN; results of exponent 0 or less become +0.  Infinities are
# ordinary large numbers on the way in.  Source: MVMUL and ELWADD, Wormhole ISA; accumulation in
# ttsim's Tensix model.
#
# Cells are taken apart and put together in their shuffled order (see dest.py): sign, fraction,
# exponent.

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


@njit(forceinline=True)
def add_sums_by_row(s: Any, c: Any, first: Any, rows: Any, bias: Any) -> None:
    """Both sums of products added to `rows` rows of 16-bit cells `c`, whole rows at once."""
    terms = (s.term_exponent, s.term_sum)
    dest.spoil(s, first, rows)
    for r in range(rows):
        row = dest.row16(s, first + r)
        keep = np.int64(0xFFFF) if s.dst_valid[row] else np.int64(0)
        at = np.int64((r & 7) * COLUMNS)
        sixteen.accumulate(s.dst[row], keep, terms, at, np.int64(bias), c)
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
    elif five_bit:
        add_sums_by_row(s, FP16, first, rows, _I(bias))
    else:
        add_sums_by_row(s, BF16, first, rows, _I(bias))


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


# Accumulate, normalise, round stochastically: arithmetic.py for the modes of lanes.py.
#
# Only the last rounding, that of the sum, goes by chance.  A second entry, because few programs
# use it.

_MIDDLE = 256  # added to the bias


class _Results(Word):
    """What the second entry takes: the arguments of accumulate.add_sums and add_terms."""

    first = bits(11, 0)
    rows = bits(15, 12)
    wide = bits(16)
    five_bit = bits(17)
    terms = bits(18)
    add_dst = bits(19)
    bias = bits(28, 20)


@njit
def _terms(s: Any, f: Any, at: Any) -> Any:
    """(sign, exponent, magnitude) of both terms of result `at`."""
    if f.terms:
        sign, x = _U(s.term_sum[0, at]), _I(s.term_exponent[0, at])
        return sign, x, _U(s.term_magnitude[at]), _ZERO, _I(0), _ZERO
    bias = _I(f.bias - _MIDDLE)
    least = max(bias, _I(0))
    s0, x0, m0 = group(s.term_sum[0, at], s.term_exponent[0, at], bias, least)
    s1, x1, m1 = group(s.term_sum[1, at], s.term_exponent[1, at], bias, least)
    return s0, x0, m0, s1, x1, m1


@njit
def _total(s: Any, f: Any, at: Any, old: Any) -> Any:
    """Exponent and signed sum of a result; `old`: sign, exponent and magnitude in Dst."""
    s0, x0, m0, s1, x1, m1 = _terms(s, f, at)
    sign, xd, md = old
    x = max(max(x0, x1), max(xd, _I(0)))
    md = aligned(md, _ZERO, _I(x - xd))
    m0, m1 = aligned(m0, s0, _I(x - x0)), aligned(m1, s1, _I(x - x1))
    if not f.wide:
        md = cut(md, _ZERO)
        m0, m1 = cut(m0, s0), cut(m1, s1)
    total = plus(_I(md), m0, s0 != sign)
    return x, plus(total, m1, s1 != sign)


@njit
def _mantissa(s: Any, total: Any, right: Any) -> Any:
    """The magnitude of a sum shifted right by `right` (left when negative), rounded."""
    magnitude, n = np.int64(abs(total)), max(np.int64(right), np.int64(0))
    low = magnitude & ((np.int64(1) << n) - 1)
    m = (magnitude >> n) + (lanes.rounds_up(s, lanes.FPU, low, n) if n and magnitude else 0)
    return _U(m << max(np.int64(-right), np.int64(0)))


@njit
def _row_16(s: Any, f: Any, r: Any) -> None:
    c = FP16 if f.five_bit else BF16
    row = dest.row16(s, f.first + r)
    cells, keep = s.dst[row], _ALL if f.add_dst and s.dst_valid[row] else _ZERO
    for j in range(COLUMNS):
        old = _U(_U(cells[j]) & keep)
        sign, xd, md = taken_16(c, old)
        x, total = _total(s, f, r * COLUMNS + j, (sign, xd, md))
        shift = shift_of(_U(abs(total)))
        m = _mantissa(s, total, _I(c.point) - shift)
        cells[j] = assembled_16(c, sign, _I(x - shift), total, m, x)
    s.dst_valid[row] = 1


@njit
def _row_32(s: Any, f: Any, r: Any) -> None:
    row = dest.adj32((f.first + r) & (dest.ROWS - 1))
    high, low = s.dst[row], s.dst[row + LOW_HALF]
    keep = _ALL if f.add_dst and s.dst_valid[row] else _ZERO
    for j in range(COLUMNS):
        sign, xd, md = taken_32(_U(_U(high[j]) & keep), _U(_U(low[j]) & keep))
        x, total = _total(s, f, r * COLUMNS + j, (sign, xd, md))
        shift = shift_of(_U(abs(total)))
        m = _mantissa(s, total, -shift)
        new = assembled_32(sign, _I(x - shift), total, m, x)
        high[j], low[j] = np.uint16(_U(new >> _U(16))), np.uint16(_U(new & _U(0xFFFF)))
    s.dst_valid[row] = 1
    dest.written(s, row + LOW_HALF)


def _round(s: Any, t: Any, f: Any) -> Any:
    if not f.wide:
        dest.spoil(s, f.first, f.rows)
    for r in range(f.rows):
        if f.wide:
            _row_32(s, f, np.int64(r))
        else:
            _row_16(s, f, np.int64(r))
    return DONE


_entry = second_entry(FPU_STOCHASTIC, _round, _Results)
_ROWS, _WIDE, _FIVE = _Results.rows.lo, _Results.wide.lo, _Results.five_bit.lo
_TERMS, _ADD, _BIAS = _Results.terms.lo, _Results.add_dst.lo, _Results.bias.lo


@njit
def add(s: Any, t: Any, m: Any, first: Any, rows: Any, add_dst: Any, bias: Any) -> None:
    """Rows of results to Dst; `m`: wide, five_bit, and 1 for terms, 0 for sums of products."""
    wide, five_bit, terms = m
    word = (first & (dest.ROWS - 1)) | rows << _ROWS | wide << _WIDE | five_bit << _FIVE
    word |= terms << _TERMS | (1 if add_dst else 0) << _ADD | (bias + _MIDDLE) << _BIAS
    _entry(s, t, word)


@njit
def add_terms_stochastic(
    s: Any, t: Any, wide: Any, five_bit: Any, first: Any, add_dst: Any
) -> None:
    """accumulate.add_terms, stochastically where the configuration and the options say so."""
    if s.stochastic[0] and operands.stochastically(s, t) and lanes.rounding_modelled(s):
        add(s, t, (wide, five_bit, 1), first, np.int64(8), add_dst, np.int64(0))
    else:
        add_terms(s, wide, five_bit, first, add_dst)


# Sums of products of SrcB rows and SrcA columns, on prepared banks (see matrix/__init__.py).
#
# A sum runs over eight products.  Its exponent is the largest of theirs; every product is shifted
# to it, rounded half away from zero, and the sum is exact.  All of it fits 16 bits.  Source:
# MVMUL, Wormhole ISA; sums of products in ttsim's Tensix model.


@njit
def sums_by_row(s: Any, a: Any, row_a: Any, b: Any, row_b: Any, phase: Any, rows: Any) -> None:
    """Both sums of `rows` x 16 outputs to s.term_sum, their unbiased exponents to term_exponent.

    SrcA rows from `row_a` (multiple of 16) of bank `a`, SrcB rows from `row_b` of bank `b`; the
    second sum takes k = 8-15.
    """
    bank_a = (s.src_exponent[SRCA, a], s.src_slice[SRCA, a, phase & 1])
    bank_b = (s.src_exponent[SRCB, b], s.src_slice[SRCB, b, (phase >> 1) & 1])
    sixteen.sums(bank_a, bank_b, row_a, row_b, rows, (s.term_exponent, s.term_sum))


sums = sums_by_row if JIT else sixteen.plain_sums


# Element-wise operations on 8 x 16 cells of SrcA and SrcB: the term that goes to Dst.
#
# Source: ELWADD and ELWMUL, Wormhole ISA; ttsim's Tensix model.

_ELEMENT_ROWS = 8

_SIGN, _EXPONENT, _REST = _U(0x80000000), _U(0x7F800000), _U(0x7FFFFFFF)


class Blocks(NamedTuple):
    """Which cells are combined, and the bits of them that their formats have.

    `step` 0: the first row of SrcB for all rows; `column` 0: its column 0 for all columns.  `flip`:
    exclusive-or on SrcB cells; `smallest`: SrcB cells with a smaller exponent count as zero.
    """

    bank_a: int
    row_a: int
    bank_b: int
    row_b: int
    step: int
    column: int
    mask_a: np.uint32
    mask_b: np.uint32
    flip: np.uint32
    smallest: np.uint32


@njit(forceinline=True)
def _row_b(s: Any, k: Any, r: Any) -> Any:
    """Row of SrcB for output row `r`; a broadcast column is spread out in scratch."""
    row = s.src[SRCB, k.bank_b, (k.row_b + r * k.step) & 63]
    if k.column:
        return row
    spread = s.lane_tmp[0, :COLUMNS]
    for j in range(COLUMNS):
        spread[j] = row[0]
    return spread


@njit
def any_bits(s: Any, k: Any, bits: Any) -> Any:
    """Bits among `bits` that are set in any cell of the blocks, as int64."""
    found = _ZERO
    for r in range(_ELEMENT_ROWS):
        row_a, row_b = s.src[SRCA, k.bank_a, (k.row_a + r) & 63], _row_b(s, k, r)
        for j in range(COLUMNS):
            found = _U(found | _U(_U(row_a[j] | row_b[j]) & _U(bits)))
    return np.int64(found)


@njit
def products(s: Any, k: Any, phase: Any, bias: Any) -> None:
    """One product per cell: sign, exponent and magnitude of the term.

    `bias` is added to the sum of the exponents, and is the exponent of no product when positive.
    """
    shift_a = _U(1) if phase & 1 else _U(6)
    left_b, right_b = (_U(3), _ZERO) if phase & 2 else (_ZERO, _U(4))
    mask_b = _U(0x78) if phase & 2 else _U(0x7F)
    bias = _I(bias)
    least = max(bias, _I(0))
    for r in range(_ELEMENT_ROWS):
        row_a, row_b = s.src[SRCA, k.bank_a, (k.row_a + r) & 63], _row_b(s, k, r)
        for j in range(COLUMNS):
            a, b = _U(row_a[j] & k.mask_a), _U(row_b[j] & k.mask_b)
            x = _I(_I(_U(a >> _U(23)) & _U(255)) + _I(_U(b >> _U(23)) & _U(255)) + bias)
            ma = _U(_U(_U(_U(_U(a >> _U(13)) & _U(0x3FF)) | _U(0x400)) >> shift_a) & _U(31))
            mb = _U(_U(_U(_U(b >> _U(13)) & _U(0x3FF)) | _U(0x400)) << left_b)
            mb = _U(_U(mb >> right_b) & mask_b)
            some = (a & _EXPONENT) != _ZERO and (b & _EXPONENT) >= k.smallest and x > _I(0)
            s.term_sum[0, r * COLUMNS + j] = np.int16(_U(a ^ b) >> _U(31) if some else _ZERO)
            s.term_exponent[0, r * COLUMNS + j] = np.int16(x if some else least)
            s.term_magnitude[r * COLUMNS + j] = _U(_U(ma * mb) << _U(13)) if some else _ZERO


@njit(forceinline=True)
def _element_mantissa(v: Any) -> Any:
    """11-bit mantissa of a cell; 0 only for the cell 0."""
    return _U(_U(_U(v >> _U(13)) & _U(0x3FF)) | _U(0x400)) if v != _ZERO else _ZERO


@njit(forceinline=True)
def _narrowed(mantissa: Any, distance: Any) -> Any:
    """A mantissa shifted right by `distance` >= 0, half up; 0 from 12 on."""
    d = _U(min(distance, _U(12)) & _U(15))
    half = _U(_U(_U(1) << d) >> _U(1))
    return _U(_U(mantissa + half) >> d) if d < _U(12) else _ZERO


@njit
def element_sums(s: Any, k: Any, offset: Any, offset_zero: Any) -> None:
    """The sum of both cells: sign, exponent and magnitude of the term.

    Its exponent is that of the larger operand plus `offset`, or `offset_zero` when that is 0.
    """
    offset, offset_zero = _I(offset), _I(offset_zero)
    for r in range(_ELEMENT_ROWS):
        row_a, row_b = s.src[SRCA, k.bank_a, (k.row_a + r) & 63], _row_b(s, k, r)
        for j in range(COLUMNS):
            a, b = _U(row_a[j] & k.mask_a), _U(_U(row_b[j] ^ k.flip) & k.mask_b)
            a = a if (a & _EXPONENT) != _ZERO else _ZERO
            b = b if (b & _EXPONENT) >= k.smallest else _ZERO
            keep = _U(a & _REST) >= _U(b & _REST)
            p, q = a if keep else b, b if keep else a
            x = _U(_U(p >> _U(23)) & _U(255))
            m = _narrowed(_element_mantissa(q), _U(x - _U(_U(q >> _U(23)) & _U(255))))
            n = _I(_element_mantissa(p))
            n = _I(n - _I(m)) if _U(p ^ q) & _SIGN else _I(n + _I(m))
            s.term_sum[0, r * COLUMNS + j] = np.int16(p >> _U(31))
            exponent = _I(_I(x) + offset) if x != _ZERO else offset_zero
            s.term_exponent[0, r * COLUMNS + j] = np.int16(exponent)
            s.term_magnitude[r * COLUMNS + j] = _U(_I(n << _I(13)))


@njit(forceinline=True)
def _integer(v: Any, mask: Any, present: Any) -> Any:
    m = _I(_U(_U(v >> _U(13)) & mask))
    m = _I(-m) if v >> _U(31) else m
    return m if present else _I(0)


@njit
def integers(s: Any, k: Any, multiply: Any, mask_a: Any, mask_b: Any) -> None:
    """Product or sum of the masked magnitudes with their signs, as two's complement."""
    mask_a, mask_b = _U(mask_a), _U(mask_b)
    for r in range(_ELEMENT_ROWS):
        row_a, row_b = s.src[SRCA, k.bank_a, (k.row_a + r) & 63], _row_b(s, k, r)
        for j in range(COLUMNS):
            a, b = row_a[j], _U(row_b[j] ^ k.flip)
            va = _integer(a, mask_a, (a & _EXPONENT) != _ZERO)
            vb = _integer(b, mask_b, (b & _EXPONENT) >= k.smallest)
            s.term_magnitude[r * COLUMNS + j] = _U(_I(va * vb) if multiply else _I(va + vb))
