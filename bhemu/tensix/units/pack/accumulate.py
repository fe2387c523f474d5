"""L1 accumulation: add an output datum to the one that is in L1, for fp32, bf16 and fp16.

All three are added as s e8 m23 patterns, rounded to nearest even once.  What differs is what they
make of exponents 0 and 255 and of results out of range; fp16 has an error in the silicon that is
kept.  Source: Packer L1 accumulation, ttsim's Tensix model.
"""

from typing import Any

import numpy as np

from bhemu.tensix.cold import ACCUMULATE, cold
from bhemu.tensix.formats import BF16, FP16, FP32, flush_32
from bhemu.tensix.subset import njit
from bhemu.tensix.units.pack import geometry, modes
from bhemu.tensix.words import l1_halves, l1_words

_SIGN = 0x80000000
_INF = 0x7F800000
_NAN = 0x7FC00000
_GUARD = 30  # bits kept below the mantissa; what lies further down cannot turn a rounding


@njit
def _bit_length(v: Any) -> Any:
    n = np.int64(0)
    for step in (32, 16, 8, 4, 2, 1):
        if v >> step:
            v >>= step
            n += step
    return n + v


@njit
def _sum(x: Any, y: Any, drop: Any) -> Any:
    """(sign bit, exponent before rounding, rounded exponent and mantissa) of x + y.

    Patterns s e8 m23 with any exponent but 0 an ordinary one; the rounded field is (e << 23 | m)
    with the low `drop` mantissa bits rounded off and may carry into e.  Zero: exponent -1000.
    """
    if x & 0x7FFFFFFF < y & 0x7FFFFFFF:
        x, y = y, x
    if x & _INF == 0:
        return x & y & _SIGN, np.int64(-1000), np.int64(0)
    big = (x & 0x7FFFFF | 0x800000) << _GUARD
    small = (y & 0x7FFFFF | 0x800000) << _GUARD if y & _INF else np.int64(0)
    gap = min((x >> 23 & 0xFF) - (y >> 23 & 0xFF), 60)
    small >>= gap
    total = big - small if (x ^ y) & _SIGN else big + small
    if total == 0:
        return np.int64(0), np.int64(-1000), np.int64(0)
    length = _bit_length(total)
    e = (x >> 23 & 0xFF) + length - (24 + _GUARD)
    down = length - 24 + drop  # positive: cancellation of neighbours keeps the guard bits
    rounded = (total + (1 << (down - 1)) - 1 + (total >> down & 1)) >> down
    return x & _SIGN, e, (e << 23) + ((rounded << drop) - 0x800000)


@njit
def _add_fp32(old: Any, new: Any) -> Any:
    x, y = flush_32(old), flush_32(new)
    if x & 0x7FFFFFFF > _INF or y & 0x7FFFFFFF > _INF:
        return _NAN
    if x & _INF == _INF:
        return _NAN if y & _INF == _INF and x != y else x
    if y & _INF == _INF:
        return y
    sign, e, field = _sum(x, y, np.int64(0))
    if e < 0 or field < 0x800000:
        return sign
    return sign | min(field, _INF)


@njit
def _add_bf16(old: Any, new: Any) -> Any:
    # A NaN in L1 acts as the largest number, a new NaN as one with exponent 255.
    x, y = flush_32(old << 16), flush_32(new << 16)
    if y & 0x7FFFFFFF == _INF:
        return 0x7FC0 if x & 0x7FFFFFFF == _INF and x != y else y >> 16
    if x & _INF == _INF:
        return (x & _SIGN | _INF) >> 16
    sign, e, field = _sum(x, y, np.int64(16))
    if e <= 0:
        return sign >> 16
    return (sign | (_INF if e >= 255 else field)) >> 16


@njit
def _add_fp16(old: Any, new: Any) -> Any:
    # Exponent 0 is zero.  Cancellation of large numbers and underflow give the largest magnitude,
    # as in the silicon.
    x, y = (old & 0x8000) << 16, (new & 0x8000) << 16
    if old & 0x7C00:
        x |= ((old & 0x7FFF) << 13) + (112 << 23)
    if new & 0x7C00:
        y |= ((new & 0x7FFF) << 13) + (112 << 23)
    sign, e, field = _sum(x, y, np.int64(13))
    sign >>= 16
    if e == -1000:
        return sign | (0x7FFF if old >> 10 & 31 >= 30 else 0)
    if e <= 112:
        return sign | (0x7FFF if e < 112 else 0)
    return sign | min((field - (112 << 23)) >> 13, 0x7FFF)


@njit
def add(fmt: Any, old: Any, new: Any) -> Any:
    """The datum (int64) of `old` in L1 plus `new` in format FP32, BF16 or FP16."""
    if fmt == BF16:
        return _add_bf16(old, new)
    if fmt == FP16:
        return _add_fp16(old, new)
    return _add_fp32(old, new)


def _accumulate(s: Any, t: Any, n: Any) -> Any:
    # Adds what is in L1 to the first n datums of s.pack_tmp, before they are stored there.
    m = modes.mode_of(s, t)
    at = geometry.place_of(s, t, m).data
    values = s.pack_tmp
    for i in range(n):
        if m.out == FP32:
            old = np.int64(l1_words(s)[(at >> 2) + i])
        else:
            old = np.int64(l1_halves(s)[(at >> 1) + i])
        values[i] = np.uint32(add(m.out, old, np.int64(values[i])))
    return np.int64(0)


accumulate = cold(ACCUMULATE, _accumulate)
