"""PACR of four whole Dst rows straight to L1: bf16 or fp32 as it is, or fp32 rounded to bf16.

This gives what the two conversions give, in one loop instead of three.  Every operation is cast to
uint32: without the casts the compiler uses lanes of 64 bits, at a third of the speed.
"""

from typing import Any

import numpy as np

from bhemu.jit.flat import flat
from bhemu.jit.subset import njit
from bhemu.tensix import dest
from bhemu.tensix.formats import BF16, FP32
from bhemu.tensix.units.pack import (
    counters,
    edge_mask,
    histogram,
    input_address,
    modes,
    output,
    output_address,
)
from bhemu.tensix.units.pack.formats import intermediate
from bhemu.tensix.words import l1_halves, l1_words

u32 = np.uint32
_DATUMS = 64


@njit
def _bf16(cells: Any, out: Any) -> None:
    for i in range(_DATUMS):
        c = u32(cells[i])
        high = u32(u32(c & u32(0x8000)) | u32(u32(c & u32(0xFF)) << u32(7)))
        v = u32(high | u32(u32(c >> u32(8)) & u32(0x7F)))
        m = u32(v & u32(0x7FFF))
        v = u32(u32(v & u32(0x8000)) | u32(0x7F80)) if m > u32(0x7F80) else v
        out[i] = np.uint16(u32(0) if m < u32(0x80) else v)


@njit
def _fp32(upper: Any, lower: Any, out: Any) -> None:
    for i in range(_DATUMS):
        c = u32(upper[i])
        high = u32(u32(c & u32(0x8000)) | u32(u32(c & u32(0xFF)) << u32(7)))
        v = u32(high | u32(u32(c >> u32(8)) & u32(0x7F)))
        out[i] = u32(u32(v << u32(16)) | u32(lower[i]))


@njit
def _fp32_to_bf16(upper: Any, lower: Any, out: Any) -> None:
    for i in range(_DATUMS):
        c = u32(upper[i])
        high = u32(u32(c & u32(0x8000)) | u32(u32(c & u32(0xFF)) << u32(7)))
        v = u32(high | u32(u32(c >> u32(8)) & u32(0x7F)))
        v = u32(u32(v << u32(16)) | u32(lower[i]))
        m = u32(v & u32(0x7FFFFFFF))
        v = u32(u32(v & u32(0x80000000)) | u32(0x7F800000)) if m > u32(0x7F800000) else v
        v = u32(u32(v + u32(0x8000)) >> u32(16))
        out[i] = np.uint16(u32(0) if u32(v & u32(0x7FFF)) < u32(0x80) else v)


@njit(forceinline=True)
def _written(s: Any, at: Any) -> Any:
    flags = s.dst_valid[at : at + 4]  # 1: valid and written
    return flags[0] == 1 and flags[1] == 1 and flags[2] == 1 and flags[3] == 1


@njit(forceinline=True)
def _lower_written(s: Any, at: Any) -> Any:
    flags = s.dst_valid[at : at + 4]
    return (flags[0] | flags[1] | flags[2] | flags[3]) <= 1


@njit
def _suits(s: Any, m: Any, rows: Any) -> Any:
    """True when `_pack` can do the Rows in Mode `m`: four whole valid rows in one piece."""
    if m.fmt != m.out or m.relu | m.accumulate | m.raw | m.round_fp16:
        return False
    at = dest.adj32(rows.first) if m.wide else dest.row16(s, rows.first)
    if m.wide:
        if not (m.fmt == BF16 or m.fmt == FP32):
            return False
    elif m.fmt != BF16:
        return False
    if rows.first & 3 or rows.mask != 15 or rows.step != 1 or rows.columns != 16:
        return False
    return _written(s, at) and (m.wide == 0 or _lower_written(s, at + dest.LOW_HALF))


@njit
def _pack(s: Any, m: Any, rows: Any, place: Any) -> None:
    """Pack the Rows to the Place in Mode `m`, for which `_suits` was true."""
    at = dest.adj32(rows.first) if m.wide else dest.row16(s, rows.first)
    store = flat(s.dst)
    upper = store[at * 16 : at * 16 + _DATUMS]
    if m.fmt == FP32:
        lower = store[(at + dest.LOW_HALF) * 16 : (at + dest.LOW_HALF) * 16 + _DATUMS]
        first = place.data >> 2
        _fp32(upper, lower, l1_words(s)[first : first + _DATUMS])
        return
    first = place.data >> 1
    out = l1_halves(s)[first : first + _DATUMS]
    if m.wide:
        lower = store[(at + dest.LOW_HALF) * 16 : (at + dest.LOW_HALF) * 16 + _DATUMS]
        _fp32_to_bf16(upper, lower, out)
    else:
        _bf16(upper, out)


@njit(forceinline=True)  # one caller
def pack_whole_rows(s: Any, t: Any, addr_mode: Any, last: Any) -> Any:
    """True when a PACR of all interfaces was such a one and is done; else nothing has happened."""
    m = modes.mode_of(s, t)
    rows = input_address.rows_of(s, t, m, 15, 0)
    if not _suits(s, m, rows) or rows.column or input_address.counts_partly(s, t, m):
        return False
    if modes.zero_fields(s, m.bank) or modes.compresses(s, m.bank):
        return False
    if intermediate(s, m.bank) != m.fmt:
        return False
    if edge_mask.masked(s, m.bank) or histogram.enabled(s) or modes.staged(s, m.bank):
        return False
    place = output_address.place_of(s, t, m)
    if output_address.place_refused(s, m, _DATUMS, place):
        return False
    _pack(s, m, rows, place)
    s.pack_exponent[1] += 1
    edge_mask.advance(s, m.bank, rows.number, rows.columns)
    output.advance(s, m, _DATUMS, place, last)
    counters.count_on(s, t, t, addr_mode)
    return True
