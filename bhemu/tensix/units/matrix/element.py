"""Element-wise operations on 8 x 16 cells of SrcA and SrcB: the term that goes to Dst.

Source: ELWADD and ELWMUL, Wormhole ISA; ttsim's Tensix model.
"""

from typing import Any, NamedTuple

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix.banks import SRCA, SRCB
from bhemu.tensix.dest import COLUMNS

_ROWS = 8

_U, _I = np.uint32, np.int32
_ZERO = _U(0)
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
    for r in range(_ROWS):
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
    for r in range(_ROWS):
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
def _mantissa(v: Any) -> Any:
    """11-bit mantissa of a cell; 0 only for the cell 0."""
    return _U(_U(_U(v >> _U(13)) & _U(0x3FF)) | _U(0x400)) if v != _ZERO else _ZERO


@njit(forceinline=True)
def _narrowed(mantissa: Any, distance: Any) -> Any:
    """A mantissa shifted right by `distance` >= 0, half up; 0 from 12 on."""
    d = _U(min(distance, _U(12)) & _U(15))
    half = _U(_U(_U(1) << d) >> _U(1))
    return _U(_U(mantissa + half) >> d) if d < _U(12) else _ZERO


@njit
def sums(s: Any, k: Any, offset: Any, offset_zero: Any) -> None:
    """The sum of both cells: sign, exponent and magnitude of the term.

    Its exponent is that of the larger operand plus `offset`, or `offset_zero` when that is 0.
    """
    offset, offset_zero = _I(offset), _I(offset_zero)
    for r in range(_ROWS):
        row_a, row_b = s.src[SRCA, k.bank_a, (k.row_a + r) & 63], _row_b(s, k, r)
        for j in range(COLUMNS):
            a, b = _U(row_a[j] & k.mask_a), _U(_U(row_b[j] ^ k.flip) & k.mask_b)
            a = a if (a & _EXPONENT) != _ZERO else _ZERO
            b = b if (b & _EXPONENT) >= k.smallest else _ZERO
            keep = _U(a & _REST) >= _U(b & _REST)
            p, q = a if keep else b, b if keep else a
            x = _U(_U(p >> _U(23)) & _U(255))
            m = _narrowed(_mantissa(q), _U(x - _U(_U(q >> _U(23)) & _U(255))))
            n = _I(_mantissa(p))
            n = _I(n - _I(m)) if _U(p ^ q) & _SIGN else _I(n + _I(m))
            s.term_sum[0, r * COLUMNS + j] = np.int16(p >> _U(31))
            s.term_exponent[0, r * COLUMNS + j] = np.int16(
                _I(_I(x) + offset) if x != _ZERO else offset_zero
            )
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
    for r in range(_ROWS):
        row_a, row_b = s.src[SRCA, k.bank_a, (k.row_a + r) & 63], _row_b(s, k, r)
        for j in range(COLUMNS):
            a, b = row_a[j], _U(row_b[j] ^ k.flip)
            va = _integer(a, mask_a, (a & _EXPONENT) != _ZERO)
            vb = _integer(b, mask_b, (b & _EXPONENT) >= k.smallest)
            s.term_magnitude[r * COLUMNS + j] = _U(_I(va * vb) if multiply else _I(va + vb))
