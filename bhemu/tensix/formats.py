"""Data formats: codes, sizes in L1, conversions that units share; multiply-add of 32-bit lanes.

Codes are the 4-bit values of the configuration's data format fields.  In L1 the 32-, 16- and 8-bit
formats are little-endian; block floating point (bfp) keeps one exponent byte per 16 datums in a
section of its own.  fp16 and fp8 have no Inf and no NaN: exponent 31 is an ordinary exponent.
Source: FloatBitPatterns, Blackhole ISA; unpacker and packer in ttsim's Tensix model.

The conversions take and give int64 or uint32 values alike, so that loops over datums can use them;
in compiled code the result must be stored or cast to uint32 to stay vectorised.
"""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit

FP32, FP16, BFP8A, BFP4A, TF32, BF16, BFP8, BFP4, INT32, UINT16, FP8, BFP2A = range(12)
INT8, BFP2 = 14, 15

_NAMED = "FP32 FP16 BFP8A BFP4A TF32 BF16 BFP8 BFP4 INT32 UINT16 FP8 BFP2A INT8 BFP2"
NAMES: dict[int, str] = {globals()[name]: name.lower() for name in _NAMED.split()}

CODES = ", ".join(f"{code} {name}" for code, name in NAMES.items())  # for the hints of rules

# Codes as a bit set: formats that share exponents.
_BFP = 1 << BFP8A | 1 << BFP4A | 1 << BFP8 | 1 << BFP4 | 1 << BFP2A | 1 << BFP2

# Floats with 5-bit exponents, and the formats whose register datums have such an exponent field.
FIVE_BIT = 1 << FP16 | 1 << FP8 | 1 << BFP8A | 1 << BFP4A | 1 << BFP2A
FIVE_BIT_DATUMS = FIVE_BIT | 1 << INT8

# Bias of 8-bit exponents minus bias of 5-bit exponents, at the exponent of a 10-bit mantissa.
_REBIAS = 112 << 10


@njit
def datum_bits(fmt: Any) -> Any:
    """Bits of one datum in L1 (32, 16, 8, 4, 2) of format code `fmt`."""
    if fmt & 3 == 3:
        return 2 if fmt & 8 else 4
    return 32 >> (fmt & 3)


@njit
def is_bfp(fmt: Any) -> Any:
    """1 when format code `fmt` shares one exponent among 16 datums, else 0."""
    return (_BFP >> fmt) & 1


@njit(inline="always")
def flush_32(v: Any) -> Any:
    """An s e8 m23 pattern with a denormal replaced by zero of the same sign."""
    return v if v & 0x7F800000 else v & 0x80000000


@njit(inline="always")
def fp32_to_fp16(v: Any) -> Any:
    """The fp16 pattern of an fp32 pattern, truncating."""
    return ((v >> 16) & 0x8000) | min(max(((v >> 13) & 0x3FFFF), _REBIAS) - _REBIAS, 0x7FFF)


@njit(inline="always")
def fp16_cell(v: Any) -> Any:
    """Src cell of an fp16 pattern; the 5-bit exponent is kept as it is."""
    return ((v & 0x8000) << 16) | ((v & 0x7FFF) << 13)


# The fused multiply-add of the vector unit, bit for bit, on 32-bit patterns.
#
# Neither an IEEE fma nor a multiplication followed by an addition: the product is cut to 24 + 3
# bits before the addition, bits lost in alignment vanish when nothing else of that operand
# remains, denormals are zeros on both sides, and a product that overflows is infinite before the
# addend is looked at.  Every step is a select, so that a loop over lanes becomes vector code; all
# quantities fit into 32 bits.  Source: SFPMAD, Blackhole ISA; Blackhole multiply-add model of
# ttsim.


_U = np.uint32
_I = np.int32

_ZERO, _ONE = _U(0), _U(1)
_SIGN = _U(0x80000000)
_INFINITY = _U(0x7F800000)
_NAN = _U(0x7FC00000)
_FRACTION = _U(0x7FFFFF)
_HIDDEN = _U(0x800000)
_E255 = _U(255)
ORDINARY = _U(253)  # see fma_within
FINITE = _U(0x7F000000)  # see sum_within
_POINT = _I(127 + 26)  # float32 exponent of a sum whose leading bit is bit 26, the normal place


@njit(inline="always")
def _exponent(x: Any) -> Any:
    return _U(_U(x >> _U(23)) & _E255)


@njit(inline="always")
def _mantissa(x: Any) -> Any:
    """24-bit mantissa with the hidden bit; 0 for zeros and denormals."""
    return _U(_U(x & _FRACTION) | _HIDDEN) if _exponent(x) != _ZERO else _ZERO


@njit(inline="always")
def _product(xm: Any, ym: Any) -> Any:
    """48-bit product of two mantissas shifted right by 20, lost bits or-ed into bit 0."""
    xh, xl = _U(xm >> _U(12)), _U(xm & _U(0xFFF))
    yh, yl = _U(ym >> _U(12)), _U(ym & _U(0xFFF))
    low = _U(xl * yl)
    middle = _U(_U(xh * yl) + _U(xl * yh) + _U(low >> _U(12)))
    high = _U(_U(_U(xh * yh) << _U(4)) + _U(middle >> _U(8)))
    lost = _U(_U(middle & _U(0xFF)) | _U(low & _U(0xFFF)))
    return _U(high | _U(_U(lost + _U(0xFFF)) >> _U(12)))


@njit(inline="always")
def _any(x: Any) -> Any:
    """1 when `x` < 2**29 is not 0; a comparison would have to come back from a mask register."""
    return _U(_U(x + _U(0x1FFFFFFF)) >> _U(29))


@njit(inline="always")
def _align(m: Any, distance: Any) -> Any:
    """`m` shifted right by `distance` >= 0; lost bits set bit 0 only when something remains."""
    d = _U(min(_U(distance), _U(31)) & _U(31))
    kept = _U(m >> d)
    lost = _any(_U(m - _U(kept << d)))
    return _U(kept | _U(lost & _any(kept)))


@njit(inline="always")
def _leading(r: Any) -> Any:
    """How far the leading bit of `r` < 2**30, not 0, stands above bit 26."""
    # It alone decides the float's exponent: the bit below it is cleared first.
    leading = np.float32(_I(r & ~_U(r >> _ONE)))
    return _I(_I(leading.view(np.int32) >> _I(23)) - _POINT)


@njit(inline="always")
def _rounded(r: Any, n: Any, field: Any) -> Any:
    """`r` shifted right by `n`, rounded to nearest even, with the exponent `field` above it."""
    left = _U(_U(max(_I(-n), _I(0))) & _U(31))
    right = _U(_U(max(n, _I(0))) & _U(3))
    t = _U(_U(r << left) >> right)
    # A shift by 3 looks at bits 0 and 1 only; the highest lost bit is not sticky.
    lost = _U(r & _U(right | _U(right >> _ONE)))
    t = _U(t | _U(_U(lost | _U(lost >> _ONE)) & _ONE))
    out = _U(_U(field << _U(23)) + _U(_U(t >> _U(3)) & _FRACTION))
    return _U(out + _U(_U(_U(_U(t & _U(7)) + _U(out & _ONE)) + _U(3)) >> _U(3)))


@njit(inline="always")
def _pack(r: Any, exponent: Any, sign: Any) -> Any:
    """Normalise a non-zero sum `r` < 2**30 to bit 26, round to nearest even and assemble."""
    n = _leading(r)
    e = _I(exponent + n)
    tiny = e <= _I(0)
    n = _I(n + _I(1)) if tiny else n
    out = _rounded(r, n, _U(_I(0) if tiny else min(e, _I(254))))
    out = _ZERO if out < _HIDDEN else out
    return _U(sign | (_INFINITY if e >= _I(255) else out))


@njit(inline="always")
def _is_nan(x: Any, other_mantissa: Any) -> Any:
    """The factor `x` is NaN, or infinite and multiplied by zero."""
    bad = (_U(x & _FRACTION) != _ZERO) or (other_mantissa == _ZERO)
    return (_exponent(x) == _E255) and bad


@njit(inline="always")
def _special(x: Any, y: Any, z: Any, xm: Any, ym: Any) -> Any:
    """Result when an exponent is 255 or the product overflows."""
    product_sign = _U(_U(x ^ y) & _SIGN)
    infinite = (_exponent(x) == _E255) or (_exponent(y) == _E255)
    opposite = infinite and (_U(z & _SIGN) != product_sign)
    addend = _exponent(z) == _E255
    nan = _is_nan(x, ym) or _is_nan(y, xm)
    nan = nan or (addend and ((_U(z & _FRACTION) != _ZERO) or opposite))
    return _NAN if nan else (z if addend else _U(product_sign | _INFINITY))


@njit(inline="always")
def fma(x: Any, y: Any, z: Any) -> Any:
    """x * y + z; arguments and result are uint32 patterns of fp32 values.

    NaN results are 0x7FC00000, denormal inputs and results count as zero of the same sign.
    """
    xm, ym, zm = _mantissa(x), _mantissa(y), _U(_mantissa(z) << _U(3))
    ps, zs = _U(_U(x ^ y) & _SIGN), _U(z & _SIGN)
    pm = _product(xm, ym)
    ze = _I(_exponent(z))
    pe = _I(_I(_exponent(x)) + _I(_exponent(y)) - _I(127))
    e = max(pe, ze)
    p, a = _align(pm, _I(e - pe)), _align(zm, _I(e - ze))
    larger, smaller = max(p, a), min(p, a)
    r = _U(larger + smaller) if ps == zs else _U(larger - smaller)
    zero = _U(zs & ps)
    result = _pack(r, e, ps if p >= a else zs)
    result = zero if r == _ZERO else result
    alone = z if zm != _ZERO else zero
    result = alone if (pm == _ZERO) or (pe < _I(0)) else result
    special = (_exponent(x) == _E255) or (_exponent(y) == _E255) or (ze == _I(255))
    special = special or (pe >= _I(255))
    other = _special(x, y, z, xm, ym)
    return other if special else result


@njit(inline="always")
def fma_within(x: Any, y: Any, z: Any) -> Any:
    """As `fma`, with two numbers: where one of them is above ORDINARY the result means nothing.

    They are the largest exponent of all that goes in, and the exponent of the sum less 1.
    """
    xm, ym, zm = _mantissa(x), _mantissa(y), _U(_mantissa(z) << _U(3))
    ps, zs = _U(_U(x ^ y) & _SIGN), _U(z & _SIGN)
    pm = _product(xm, ym)
    xe, ye, ze = _I(_exponent(x)), _I(_exponent(y)), _I(_exponent(z))
    pe = _I(_I(xe + ye) - _I(127))
    e = max(pe, ze)
    p, a = _align(pm, _I(e - pe)), _align(zm, _I(e - ze))
    larger, smaller = max(p, a), min(p, a)
    r = _U(larger + smaller) if ps == zs else _U(larger - smaller)
    n = _leading(r)
    sum_exponent = _I(e + n)
    result = _U((ps if p >= a else zs) | _rounded(r, n, _U(sum_exponent)))
    zero = _U(zs & ps)
    result = zero if r == _ZERO else result
    dropped = (pm == _ZERO) or (pe < _I(0))
    result = (z if zm != _ZERO else zero) if dropped else result
    other = _U(_ZERO if dropped or (r == _ZERO) else _U(sum_exponent - _I(1)))
    return result, _U(max(e, max(xe, ye))), other


@njit(inline="always")
def _number(x: Any) -> Any:
    """`x`; a zero of its sign where it is denormal, infinite or NaN."""
    ordinary = _U(_U(x + _HIDDEN) & _U(0x7F000000)) != _ZERO
    return x if ordinary else _U(x & _SIGN)


@njit(inline="always")
def sum_within(x: Any, z: Any) -> Any:
    """As `fma` of x, 1.0 and z, with a number: above FINITE the result means nothing.

    Nothing is cut from a product with 1.0, and three bits more are enough to round a sum: it is the
    processor's own but for denormals.
    """
    a, b = _U(_number(x)), _U(_number(z))  # numba: names with one definition
    total = np.float32(a.view(np.float32) + b.view(np.float32)).view(np.uint32)
    result = total if _exponent(total) != _ZERO else _U(total & _SIGN)
    return result, max(max(_U(x & _INFINITY), _U(z & _INFINITY)), _U(total & _INFINITY))
