"""Second literal model of the vector unit: its values on plain integers, one at a time.

Written from the text of the arithmetic contract (fused multiply-add, SFPU instructions, Dst cells)
and the restrictions of the instruction list alone; it shares nothing with the package or with
`sfpu_reference`, so that a misreading of the text shows as a difference between the two.
"""

import math
import struct
from dataclasses import dataclass
from typing import Any

SIGN, MAGNITUDE, M32 = 0x80000000, 0x7FFFFFFF, 0xFFFFFFFF
ONE, TWO, INF, NAN = 0x3F800000, 0x40000000, 0x7F800000, 0x7FC00000
FRACTION = 0x7FFFFF
CONSTANTS = (0x3F56594B, 0, ONE, 0xBF800000, 0x3B000000, 0xBF2CC4C7, 0xBEB08FF9)


def signed(v: int) -> int:
    return v - (1 << 32) if v & SIGN else v


def signed12(v: int) -> int:
    return v - 0x1000 if v & 0x800 else v


def exponent(v: int) -> int:
    return v >> 23 & 255


def key(v: int) -> int:
    """Order of sign-magnitude patterns: the low 31 bits of a negative one are inverted."""
    return signed(v ^ MAGNITUDE if v & SIGN else v)


def with_sign(magnitude: int, like: int) -> int:
    return like & SIGN | magnitude & MAGNITUDE


# Fused multiply-add


def _mantissa(v: int) -> int:
    return 0x800000 | v & FRACTION if exponent(v) else 0


def _is_nan(v: int) -> bool:
    return v & MAGNITUDE > INF


def _special(x: int, y: int, z: int) -> int:
    """Result when an exponent is 255 or the product overflows before the addition."""
    ps = (x ^ y) & SIGN
    x_inf, y_inf, z_inf = (v & MAGNITUDE == INF for v in (x, y, z))
    invalid = _is_nan(x) or _is_nan(y) or _is_nan(z)
    invalid = invalid or (x_inf and _mantissa(y) == 0) or (y_inf and _mantissa(x) == 0)
    if z_inf and 255 in (exponent(x), exponent(y)) and z & SIGN != ps:
        invalid = True
    if invalid:
        return NAN
    return z if z_inf else ps | INF


def _shifted(v: int, d: int, all_gone: int) -> int:
    """`v` shifted right by `d`; lost bits stick only to a value that is not zero."""
    if d >= all_gone:
        return 0
    kept = v >> d
    return kept | 1 if kept and v & ((1 << d) - 1) else kept


def _rounded(sign: int, r: int, R: int) -> int:
    """Normalise `r` (27 bits are 1.0 with three more bits) at exponent `R`; nearest even."""
    n = r.bit_length() - 27
    R += n
    if R >= 255:
        return sign | INF
    if R <= 0:
        n, R = n + 1, 0
    if n <= 0:
        r <<= -n
    else:
        r = r >> n | (1 if r & (n | 1) else 0)
    out = (R << 23) + (r >> 3 & FRACTION)
    if (r & 7) + (out & 1) > 4:
        out += 1
    return sign | out if out >> 23 else sign


def fma(x: int, y: int, z: int) -> int:
    """x * y + z as the vector unit computes it, from 32-bit patterns."""
    ps, zs = (x ^ y) & SIGN, z & SIGN
    product = 8 * _mantissa(x) * _mantissa(y)
    pm = product >> 23 | (1 if product & FRACTION else 0)
    pe, ze = exponent(x) + exponent(y) - 127, exponent(z)
    zm = 8 * _mantissa(z)
    if 255 in (exponent(x), exponent(y), ze) or pe >= 255:
        return _special(x, y, z)
    if pm == 0 or pe < 0:
        return z if zm else zs & ps
    R = max(pe, ze)
    pm, zm = _shifted(pm, R - pe, 64), _shifted(zm, R - ze, 32)
    sign = ps if pm >= zm else zs
    r = pm + zm if ps == zs else abs(pm - zm)
    return _rounded(sign, r, R) if r else zs & ps


# Conversions of values


def cast_float(v: int) -> int:
    """Sign-magnitude integer to fp32, nearest even."""
    magnitude = v & MAGNITUDE
    if magnitude == 0:
        return v
    length = magnitude.bit_length()
    if length <= 24:
        mantissa = magnitude << (24 - length)
    else:
        cut = length - 24
        mantissa, rest = magnitude >> cut, magnitude & ((1 << cut) - 1)
        half = 1 << (cut - 1)
        if rest > half or (rest == half and mantissa & 1):
            mantissa += 1
    return v & SIGN | ((126 + length) << 23) + (mantissa - 0x800000)


def cast_complement(v: int) -> int:
    """Sign-magnitude to two's complement, and back by the same rule."""
    return SIGN | -v & MAGNITUDE if v & SIGN else v


LIMITS = {2: 255, 3: 127, 6: 65535, 7: 32767}


def to_bf16(v: int) -> int:
    if exponent(v) == 0:
        return 0
    if exponent(v) == 255:
        return v & SIGN | INF
    return (v + 0x8000) & 0xFFFF0000


def to_integer(v: int, mod: int) -> int:
    """Magnitude rounded half up and clamped; the modes with a sign keep it unless zero."""
    e, mantissa = exponent(v) - 127, 0x800000 | v & FRACTION
    if e < -1:
        return 0
    magnitude = LIMITS[mod]
    if e < 16:
        magnitude = min(magnitude, ((mantissa << (e + 1)) + 0x800000) >> 24)
    return v & SIGN | magnitude if mod in (3, 7) and magnitude else magnitude


def reciprocal(v: int) -> int:
    """Table of 128 entries by the top seven mantissa bits."""
    x = v & MAGNITUDE
    if x < 0x00800000:
        return v & SIGN | INF
    if x >= 253 << 23:
        return v & SIGN
    odd = 257 + 2 * (x >> 16 & 127)  # 256 * (1 + (i + 0.5) / 128)
    entry = (2 * 65536 + odd) // (2 * odd) - 128  # 128 * (512 / odd - 1), rounded
    return v & SIGN | (253 - exponent(x)) << 23 | entry << 16


def exponential(x: int) -> int:
    """e**x of a magnitude: the bf16 below e**(x cut to bf16), with the lower half of x."""
    if x < 0x00800000:
        return ONE
    if x >= TWO:
        return 0x40800000 | x & 0xFFFF
    high = 0x3F81
    if x >= 0x3C800000:
        start = struct.unpack("<f", struct.pack("<I", x & 0xFFFF0000))[0]
        high = struct.unpack("<I", struct.pack("<f", math.exp(start)))[0] >> 16
    return high << 16 | x & 0xFFFF


def shift_add(p: int, z: int) -> int:
    """What SFPMUL24 adds to its product (Mul24ShiftAdd)."""
    e = exponent(z)
    if e == 0:
        return p
    top = max(129, e)
    by, grown = top - e & 31, (1 << 23) + (z & FRACTION) << 3
    p >>= top - 129 & 31
    m = grown >> by
    if m:
        p += m + (1 << 16 if (m << by) ^ grown > 0xFFFF else 0)
        p &= FRACTION
    return p


def bitwise(kind: int, old: int, new: int) -> int:
    """MOD1_BITWISE_OR, AND and XOR of SFPCONFIG."""
    return {0: new, 2: old | new, 4: old & new, 6: old ^ new}[kind]


def boolean(mod: int, a: int, b: int) -> int:
    """BooleanOp of SFPPUSHC and SFPPOPC."""
    return int(
        {
            1: b,
            2: not b,
            3: a and b,
            4: a or b,
            5: a and not b,
            6: a or not b,
            7: not a and b,
            8: not a or b,
            9: not a and not b,
            10: not a or not b,
            11: a != b,
            12: a == b,
        }[mod]
    )


def lut_byte(b: int) -> int:
    if b == 0xFF:
        return 0
    return (b >> 7) << 31 | (127 - (b >> 4 & 7)) << 23 | (b & 15) << 19


def lut_half(h: int) -> int:
    e = h >> 10 & 31
    return (h >> 15) << 31 | (0 if e == 31 else e + 112) << 23 | (h & 0x3FF) << 13


def prng_step(v: int) -> int:
    return v >> 1 | (1 - bin(v & 0x80200003).count("1") % 2) << 31


# Cells of Dst


def enc_bf16(v: int) -> int:
    return v & 0x8000 | (v & 0x7F) << 8 | v >> 7 & 0xFF


def dec_bf16(c: int) -> int:
    return c & 0x8000 | (c & 0xFF) << 7 | c >> 8 & 0x7F


def enc_fp16(v: int) -> int:
    return v & 0x8000 | (v & 0x3FF) << 5 | v >> 10 & 31


def dec_fp16(c: int) -> int:
    return c & 0x8000 | (c & 31) << 10 | c >> 5 & 0x3FF


def fp16_of(v: int) -> int:
    """fp32 to fp16 as a store does it: truncated, no infinity, no denormals."""
    s, e = v >> 31 << 15, exponent(v) - 112
    if e <= 0:
        return s
    return s | 0x7FFF if e > 31 else s | e << 10 | v >> 13 & 0x3FF


def fp32_of(h: int) -> int:
    """fp16 to fp32 as a load does it."""
    e = h >> 10 & 31
    return (h >> 15) << 31 | (e + 112 if e else 0) << 23 | (h & 0x3FF) << 13


def flushed(v: int) -> int:
    return v if exponent(v) else v & SIGN


def high_row(row: int) -> int:
    return (row & 0x1F8) << 1 | row & 0x207


@dataclass
class Dst:
    """Dst cells by row and column, and the flags of the rows."""

    cell: Any
    valid: Any

    def read16(self, row: int, column: int) -> int:
        return int(self.cell[row][column]) if self.valid[row] else 0

    def write16(self, row: int, column: int, value: int) -> None:
        self.cell[row][column], self.valid[row] = value & 0xFFFF, 1

    def read32(self, row: int, column: int) -> int:
        a = high_row(row)
        high, low = int(self.cell[a][column]), int(self.cell[a + 8][column])
        return high << 16 | low if self.valid[a] else 0

    def write32(self, row: int, column: int, value: int) -> None:
        a = high_row(row)
        self.cell[a][column], self.cell[a + 8][column] = value >> 16, value & 0xFFFF
        self.valid[a] = 1

    def load(self, mod: int, row: int, column: int, old: int) -> int:
        if mod == 1:
            return fp32_of(dec_fp16(self.read16(row, column)))
        if mod == 2:
            return dec_bf16(self.read16(row, column)) << 16
        if mod in (3, 4, 12):
            v = self.read32(row, column)
            return dec_bf16(v >> 16) << 16 | v & 0xFFFF
        raw = self.read16(row, column)
        return {6: raw, 14: old & 0xFFFF0000 | raw, 15: raw << 16 | old & 0xFFFF}[mod]

    def store(self, mod: int, row: int, column: int, v: int) -> None:
        if mod in (3, 4, 12):
            v = flushed(v) if mod == 3 else v
            self.write32(row, column, enc_bf16(v >> 16) << 16 | v & 0xFFFF)
        elif mod == 7:
            self.write32(row, column, v)
        elif mod == 9:
            self.write32(row, column, (v & 0xFFFF) << 16 | v >> 16)
        else:
            half = {6: v, 14: v, 15: v >> 16}.get(mod, 0)
            if mod == 1:
                half = enc_fp16(fp16_of(v))
            elif mod == 2:
                half = enc_bf16(flushed(v) >> 16)
            self.write16(row, column, half)
