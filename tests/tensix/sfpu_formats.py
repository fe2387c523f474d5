"""Literal arithmetic and conversions of the vector unit on Python integers, one value at a time.

They follow the text of the arithmetic contract and the ISA pages named.
"""

import numpy as np

M32, SIGN, MAGNITUDE = 0xFFFFFFFF, 1 << 31, 0x7FFFFFFF
NAN, INF = 0x7FC00000, 0x7F800000
LANES = range(32)


def signed(x: int) -> int:
    return x - (1 << 32) if x & SIGN else x


def exponent(x: int) -> int:
    return x >> 23 & 255


def fraction(x: int) -> int:
    return x & 0x7FFFFF


def key(x: int) -> int:
    """Order of sign-magnitude patterns."""
    return signed(x ^ MAGNITUDE) if x & SIGN else x


def step(state: int) -> int:
    return state >> 1 | (1 - (state & 0x80200003).bit_count() % 2) << 31


# Fused multiply-add


def shift_in(m: int, d: int, width: int) -> int:
    if d >= width:
        return 0
    kept = m >> d
    return kept | (kept << d != m) if kept else 0


def fma_special(x: int, y: int, z: int, ps: int) -> int:
    nan = any(exponent(v) == 255 and fraction(v) for v in (x, y, z))
    nan |= exponent(x) == 255 and not exponent(y)
    nan |= exponent(y) == 255 and not exponent(x)
    if exponent(z) == 255 and not nan:
        infinite = exponent(x) == 255 or exponent(y) == 255
        return NAN if infinite and z >> 31 != ps else z
    return NAN if nan else ps << 31 | INF


def fma_round(r: int, top: int, rs: int) -> int:
    n = r.bit_length() - 27
    top += n
    if top >= 255:
        return rs << 31 | INF
    if top <= 0:
        n, top = n + 1, 0
    if n <= 0:
        r <<= -n
    else:
        r = r >> n | (r & (n | 1) != 0)
    o = (top << 23) + (r >> 3 & 0x7FFFFF)
    o += (r & 7) + (o & 1) > 4
    return rs << 31 | (o if o >> 23 else 0)


def fma(x: int, y: int, z: int) -> int:
    xm, ym, zm = ((1 << 23 | fraction(v)) if exponent(v) else 0 for v in (x, y, z))
    ps, zs = (x ^ y) >> 31, z >> 31
    p = 8 * xm * ym
    pm, pe, ze, zm = (
        p >> 23 | (p & 0x7FFFFF != 0),
        exponent(x) + exponent(y) - 127,
        exponent(z),
        8 * zm,
    )
    if 255 in (exponent(x), exponent(y), ze) or pe >= 255:
        return fma_special(x, y, z, ps)
    if pm == 0 or pe < 0:
        return z if zm else (zs & ps) << 31
    top = max(pe, ze)
    pm, zm = shift_in(pm, top - pe, 64), shift_in(zm, top - ze, 32)
    r = pm + zm if ps == zs else abs(pm - zm)
    return fma_round(r, top, ps if pm >= zm else zs) if r else (zs & ps) << 31


# Conversions


def stochastic(mode: int, x: int, bits: int, by: int) -> int:
    """SFPSTOCHRND_FloatFloat, _FloatInt and _IntInt with 23 random bits."""
    if mode < 2:
        if exponent(x) in (0, 255):
            return x & 0xFF800000 if exponent(x) else 0
        size = 16 if mode == 1 else 13
        low = x & (1 << size) - 1
        return x - low + (1 << size) * (low >= bits >> 23 - size) & M32
    limit = {2: 255, 3: 127, 4: 255, 5: 127, 6: 65535, 7: 32767}[mode]
    sign, e = x & SIGN if mode & 1 else 0, exponent(x) - 127
    if mode in (4, 5):
        m = (x & MAGNITUDE) << 23 >> by
    elif e < -1:
        return 0
    elif e >= 16:
        return sign + limit
    else:
        m = 1 << 23 | fraction(x)
        m = m << e if e >= 0 else m >> -e
    m = min((m >> 23) + ((m & 0x7FFFFF) >= bits), limit)
    return m + (sign if m else 0)


def float_stochastic(x: int, random: int) -> int:
    """SFPCAST_IntFloat, mode SM32_TO_FP32_RNS."""
    m = x & MAGNITUDE
    zeros = 32 - m.bit_length() if m else 157
    norm = m << (zeros & 31) & M32
    d = (x & SIGN) + ((157 - zeros) << 23) + (norm >> 8)
    return d + ((norm & 0xFE) > (random >> 9 & 0xFE)) & M32


def float_of_integer(x: int) -> int:
    """Sign-magnitude integer to fp32, nearest even."""
    m, e = x & MAGNITUDE, 127
    if m == 0:
        return x
    drop = m.bit_length() - 24
    if drop > 0:
        q, rest = m >> drop, m & (1 << drop) - 1
        half = 1 << drop - 1
        q += rest > half or (rest == half and q & 1)
    else:
        q = m << -drop
    return x & SIGN | ((e + 22 + drop) << 23) + q


def reciprocal(x: int) -> int:
    sign, x = x & SIGN, x & MAGNITUDE
    if x < 1 << 23:
        return sign | INF
    if x >= 253 << 23:
        return sign
    i = x >> 16 & 127
    top = round((2 / (1 + (i + 0.5) / 128) - 1) * 128)
    return sign | 253 - exponent(x) << 23 | top << 16


def table8(b: int) -> int:
    return 0 if b == 0xFF else b >> 7 << 31 | 127 - (b >> 4 & 7) << 23 | (b & 15) << 19


def table16(h: int) -> int:
    e = h >> 10 & 31
    return h >> 15 << 31 | (0 if e == 31 else e + 112) << 23 | (h & 0x3FF) << 13


def f32(x: int) -> float:
    return float(np.uint32(x).view(np.float32))


def shifted(x: int, by: int, arithmetic: bool) -> int:
    if by >= 0:
        return x << (by & 31) & M32
    return (signed(x) if arithmetic else x) >> (-by & 31) & M32
