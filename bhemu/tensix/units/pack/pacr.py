"""PACR: its stages in every mode, what they write to L1, and the fast path for whole rows."""

from typing import Any

import numpy as np

from bhemu.bits import Word, bits
from bhemu.jit.intrinsics import flat
from bhemu.jit.subset import njit
from bhemu.memmap import L1_SIZE
from bhemu.tensix import config, dest, formats, spaces, state
from bhemu.tensix import config_fields as cf
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.formats import BF16, FP16, FP32, INT8, INT32, flush_32
from bhemu.tensix.insn import PACK_ACCUMULATE, PACK_STAGES, Instruction, second_entry
from bhemu.tensix.rules import DONE, MISSING, UB, UNIMPLEMENTED, error, note_rule, refuse
from bhemu.tensix.state import THREADS, l1_halves, l1_words, weights
from bhemu.tensix.units.pack import addresses, conversion, modes
from bhemu.tensix.units.pack.conversion import exponent_at, relu, threshold, to_output
from bhemu.tensix.units.pack.modes import (
    READ_CONFIG,
    UNKNOWN,
    PackWord,
    formats_refused,
    intermediate,
    late_by_chance,
)

# Writing a PACR's datums to L1; where the next PACR goes on, and padding at the end of a tile.


@njit(forceinline=True)  # one caller
def store(s: Any, m: Any, n: Any, place: Any, values: Any) -> None:
    """Write values[0:n] (uint32 output datums) to the Place."""
    size, at = formats.datum_bits(m.out), place.data
    if formats.is_bfp(m.out):
        chance = late_by_chance(s, m)
        for group in range(n >> 4):
            start = at + 2 * size * group
            block = values[16 * group : 16 * group + 16]
            data = s.l1[start : start + 2 * size]
            if chance:
                shared = conversion.assemble_by_chance(s, size, block, data)
            else:
                shared = conversion.assemble(size, block, data)
            s.l1[place.exponent + group] = np.uint8(shared)
    elif size == 32:
        words = l1_words(s)[at >> 2 : (at >> 2) + n]
        for i in range(n):
            words[i] = values[i]
    elif size == 16:
        halves = l1_halves(s)[at >> 1 : (at >> 1) + n]
        for i in range(n):
            halves[i] = np.uint16(values[i])
    else:
        for i in range(n):
            s.l1[at + i] = np.uint8(values[i])


@njit
def advance(s: Any, m: Any, n: Any, place: Any, last: Any) -> None:
    """Go on after the n datums; `last` fills up to 16 bytes with zeros and ends the tile."""
    s.pack_data[0] = place.data + (n * formats.datum_bits(m.out) >> 3)
    s.pack_exp[0] = place.exponent + (n >> 4)
    s.pack_open[0] = 1 - last
    state.written(s, place.data, s.pack_data[0] - place.data + 15)
    state.written(s, place.exponent, (n >> 4) + 15)
    if last:
        s.l1[s.pack_data[0] : (s.pack_data[0] + 15) & ~15] = np.uint8(0)
        if formats.is_bfp(m.out):
            s.l1[s.pack_exp[0] : (s.pack_exp[0] + 15) & ~15] = np.uint8(0)


# L1 accumulation: add an output datum to the one that is in L1, for fp32, bf16, fp16 and int32.
#
# The first three are added as s e8 m23 patterns, rounded to nearest even once.  What differs is
# what they make of exponents 0 and 255 and of results out of range; fp16 has an error in the
# silicon that is kept.  int32 is sign and magnitude, and saturates; a sum of zero is +0, which the
# text leaves open.  Source: Packer L1 accumulation, ttsim's Tensix model; of int32 L1, Wormhole
# ISA.

u32 = np.uint32


class _Datums(Word):
    """What the second entry takes: where in L1, how many, which format."""

    address = bits(20, 0)
    count = bits(27, 21)
    format = bits(31, 28)


_COUNT_AT, _FORMAT_AT = _Datums.count.lo, _Datums.format.lo
assert L1_SIZE <= 1 << _COUNT_AT

_SIGN = 0x80000000
_LARGEST = 0x7FFFFFFF
_INF = 0x7F800000
_NAN = 0x7FC00000
_GUARD = 30  # bits kept below the mantissa; what lies further down cannot turn a rounding


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
    v = total
    n = np.int64(0)
    for step in (32, 16, 8, 4, 2, 1):
        if v >> step:
            v >>= step
            n += step
    length = n + v
    e = (x >> 23 & 0xFF) + length - (24 + _GUARD)
    down = length - 24 + drop  # positive: cancellation of neighbours keeps the guard bits
    rounded = (total + (1 << (down - 1)) - 1 + (total >> down & 1)) >> down
    return x & _SIGN, e, (e << 23) + ((rounded << drop) - 0x800000)


@njit
def _add_int32(old: Any, new: Any) -> Any:
    x, y = old & _LARGEST, new & _LARGEST
    total = (-x if old >> 31 else x) + (-y if new >> 31 else y)
    return min(abs(total), _LARGEST) | (_SIGN if total < 0 else 0)


@njit
def add(fmt: Any, old: Any, new: Any) -> Any:
    """The datum (int64) of `old` in L1 plus `new` in format FP32, BF16, FP16 or INT32."""
    if fmt == INT32:
        return _add_int32(old, new)
    if fmt == BF16:
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
    if fmt == FP16:
        # Exponent 0 is zero.  Cancellation of large numbers and underflow give the largest
        # magnitude, as in the silicon.
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
    x, y = flush_32(old), flush_32(new)
    if x & 0x7FFFFFFF > _INF or y & 0x7FFFFFFF > _INF:
        return _NAN
    if x & _INF == _INF:
        return _NAN if y & _INF == _INF and x != y else x
    if y & _INF == _INF:
        return y
    sign, _, field = _sum(x, y, np.int64(0))
    return sign if field < 0x800000 else sign | min(field, _INF)


@njit(forceinline=True)  # one caller
def _patterns_32(old: Any, new: Any, up: Any, x: Any, y: Any, large: Any) -> Any:
    # fp32, or bf16 (up 16), as fp32 patterns; those near Inf are `large`; whether there are any.
    # What is Inf in L1, or in bf16 NaN, stays Inf whatever is added but another Inf or NaN.
    some, kept = u32(0), u32(0xFFFFFFFF if up == 0 else _SIGN | _INF)
    by = u32(up & 31)  # so that the compiler knows that 32 bits are enough
    for i in range(new.size):
        a, b = u32(u32(old[i]) << by), u32(u32(new[i]) << by)
        e, f = u32(a & u32(_INF)), u32(b & u32(_INF))
        inf = u32(a & kept) if e == u32(_INF) else u32(0)
        inf = inf if f != u32(_INF) else u32(0)
        at_inf = u32(inf & u32(0x7FFFFFFF)) == u32(_INF)
        far = u32(1) if max(e, f) >= u32(254 << 23) else u32(0)
        low = u32(0) if far else u32(flush_32(a))
        large[i] = u32(0) if at_inf else far
        x[i] = inf if at_inf else low
        y[i] = u32(0) if far else u32(flush_32(b))
        some |= u32(0) if at_inf else far
    return some


@njit(forceinline=True)
def _to_even(v: Any, drop: Any) -> Any:
    odd = u32(u32(v >> u32(drop)) & u32(1))
    return u32(u32(v + u32(u32((1 << (drop - 1)) - 1) + odd)) >> u32(drop))


@njit
def _sums(s: Any, fmt: Any, old: Any, out: Any) -> None:
    # The sum of two short mantissas in fp32 is exact, or too far from a tie of the target to turn
    # its rounding; one that is not normal in fp32 is exact.  So the host's adder does the work.
    n = out.size
    x, y, total = s.unpack_weight[:n], s.unpack_weight[n : 2 * n], s.unpack_weight[2 * n : 3 * n]
    large, some = s.unpack_tmp[:n], u32(0)
    if fmt == FP16:
        for i in range(out.size):
            a, b = u32(old[i]), out[i]
            e, f = u32(a & u32(0x7FFF)), u32(b & u32(0x7FFF))
            e = u32(u32(e << u32(13)) + u32(112 << 23)) if e >= u32(0x400) else u32(0)
            f = u32(u32(f << u32(13)) + u32(112 << 23)) if f >= u32(0x400) else u32(0)
            x[i] = u32(u32(u32(a & u32(0x8000)) << u32(16)) | e)
            y[i] = u32(u32(u32(b & u32(0x8000)) << u32(16)) | f)
    else:
        some = _patterns_32(old, out, np.int64(16 if fmt == BF16 else 0), x, y, large)
    a, b, sums = weights(s)[:n], weights(s)[n : 2 * n], weights(s)[2 * n : 3 * n]
    for i in range(n):
        sums[i] = a[i] + b[i]
    if fmt == FP16:
        for i in range(out.size):
            v = total[i]
            sign, magnitude = u32(u32(v >> u32(16)) & u32(0x8000)), u32(v & u32(0x7FFFFFFF))
            field = max(_to_even(magnitude, 13), u32(112 << 10))
            field = min(u32(field - u32(112 << 10)), u32(0x7FFF))
            big = u32(x[i] & u32(_INF)) >= u32(142 << 23)
            low = u32(0x7FFF) if magnitude < u32(112 << 23) else u32(0)
            low = (u32(0x7FFF) if big else u32(0)) if magnitude == u32(0) else low
            out[i] = u32(sign | (field if magnitude >= u32(113 << 23) else low))
    elif fmt == BF16:
        for i in range(out.size):
            v = u32(flush_32(total[i]))
            out[i] = out[i] if large[i] else _to_even(v, 16)
    else:
        for i in range(out.size):
            out[i] = out[i] if large[i] else u32(flush_32(total[i]))
    if some:
        for i in range(n):
            if large[i]:
                out[i] = u32(add(fmt, np.int64(old[i]), np.int64(out[i])))


def _accumulate(s: Any, t: Any, f: Any) -> Any:
    # Adds what is in L1 to the first datums of s.pack_tmp, before they are stored there.
    at, n, fmt = f.address, f.count, f.format
    out = s.pack_tmp[:n]
    if fmt == INT32:
        old = l1_words(s)[at >> 2 : (at >> 2) + n]
        for i in range(n):
            out[i] = u32(_add_int32(np.int64(old[i]), np.int64(out[i])))
    elif fmt == FP32:
        _sums(s, np.int64(FP32), l1_words(s)[at >> 2 : (at >> 2) + n], out)
    elif fmt == BF16:
        _sums(s, np.int64(BF16), l1_halves(s)[at >> 1 : (at >> 1) + n], out)
    else:
        _sums(s, np.int64(FP16), l1_halves(s)[at >> 1 : (at >> 1) + n], out)
    return DONE


_entry = second_entry(PACK_ACCUMULATE, _accumulate, _Datums)


@njit
def accumulate(s: Any, t: Any, fmt: Any, at: Any, n: Any) -> None:
    """Add the `n` (up to 64) datums of format `fmt` at L1 `at` to those of s.pack_tmp."""
    _entry(s, t, at | n << _COUNT_AT | fmt << _FORMAT_AT)


# Exponent statistics of the packer: a histogram, the largest exponent, and their reset.
#
# The silicon follows the largest exponent at all times.  Here both are followed only while
# ENABLE_ACC_STATS_Enable is set.  `pack_exponent[1]` counts the PACRs whose exponents were not
# looked at, `pack_exponent[2]` those of int8 that the histogram should have and whose bins are
# unspecified, so that a reader can tell whether the answer is whole.  Source: ExponentHistogram,
# CLREXPHIST, Wormhole ISA; Blackhole has one packer.


@njit
def enabled(s: Any) -> Any:
    """Not 0 when any thread has ENABLE_ACC_STATS_Enable."""
    f = tf.ENABLE_ACC_STATS_Enable
    return config.thread(s, 0, f) | config.thread(s, 1, f) | config.thread(s, 2, f)


@njit(forceinline=True)  # one caller
def update(s: Any, m: Any, rows: Any, values: Any) -> None:
    """Count the exponents of intermediate values[0 : 16 * rows], after ReLU."""
    counted = enabled(s)
    if m.fmt == INT8 or not counted:
        s.pack_exponent[1] += 1
        s.pack_exponent[2] += 1 if counted else 0
        return
    shift, mask = exponent_at(m.fmt)
    for k in range(rows.number):
        for i in range(rows.columns):
            exponent = (np.int64(values[16 * k + rows.column + i]) >> shift) & mask
            if s.pack_histogram[exponent & 31] < 255:
                s.pack_histogram[exponent & 31] += np.uint8(1)
            s.pack_exponent[0] = max(s.pack_exponent[0], exponent)


class CLREXPHIST(Instruction, opcode=0x21, unit="matrix", oracle=False, uncertain=True):
    """Clear the exponent histogram of the packer (CLREXPHIST, Wormhole ISA)."""

    writes = spaces.EXPONENTS

    def execute(s: Any, t: Any, f: Any) -> Any:
        s.pack_histogram[:] = np.uint8(0)
        s.pack_exponent[:] = 0
        return DONE


# PACR stage by stage, in every mode: all formats, conversions and row selections.

_WITHOUT_OVERRIDE = UNKNOWN | PackWord.addr_cnt_context.mask
_STRIDED_MASKS = 1 << 0 | 1 << 1 | 1 << 3

_FIELDS = error("PACR-FIELDS", MISSING, "PACR with ctxt_ctrl, row_pad_zero or cfg_context set, or addr_cnt_context without ovrd_thread_id ({bits:#x})", "there is no specification of them; they must be 0")  # fmt: skip
_ADC_CONTEXT = error("PACR-ADC-CONTEXT", UB, "PACR with addr_cnt_context 3: there are counters of 3 threads")  # fmt: skip
_SELECTION = error("PACR-INTERFACES", MISSING, "PACR with read_intf_sel={read_intf_sel} and dst_access_mode=1 is not modelled", "strided reads are specified for interfaces 0 (all), 1 and 3 only")  # fmt: skip
_STRIDED = error("PACR-STRIDED", UNIMPLEMENTED, "PACR with dst_access_mode 1 while DEST_ACCESS_CFG_swizzle_32b is {swizzle} and remap_addrs {remap}", "strided reads are modelled with both of them set")  # fmt: skip

_COMPRESSION = error("PACR-COMPRESSION", UNIMPLEMENTED, "THCON_SEC0_REG1_Disable_zero_compress is 0: silicon compresses what it packs; it was packed plain, as the golden model does", "set THCON_SEC0_REG1_Disable_zero_compress")  # fmt: skip


@njit(forceinline=True)  # one caller
def _pack(s: Any, t: Any, a: Any, m: Any, f: Any) -> Any:
    rows = addresses.rows_of(s, a, m, f.read_intf_sel, f.dst_access_mode)
    zeros = f.zero_write
    status = formats_refused(s, m) or modes.stages_refused(s, m)
    status = status or addresses.rows_refused(s, a, m, rows)
    if status == 0 and not zeros and addresses.masked(s, m.bank):
        status = addresses.refused(s, m, rows)
    if status:
        return status
    place = addresses.place_of(s, a, m)
    status = addresses.place_refused(s, m, addresses.count_of(s, m, rows), place)
    if status:
        return status
    values = s.pack_tmp[: 16 * rows.number]
    if zeros:  # zero_write reads zeros instead of Dst, past masks and statistics
        for i in range(values.size):
            values[i] = np.uint32(0)
    elif conversion.read(s, m, rows, values) > 1:  # rows that nothing has written
        status = addresses.unwritten_rows_refused(s, m, rows, s.unpack_tmp[: values.size])
        if status:
            return status
    if modes.compresses(s, m.bank):
        note_rule(s, _COMPRESSION)
    if not zeros:
        if addresses.masked(s, m.bank):
            addresses.clear(s, m, rows, values)
        if m.fmt == INT8:
            conversion.settle(s, m, values)
        if m.relu:
            relu(s, m, values)
        if m.fmt != INT8:
            conversion.settle(s, m, values)
        update(s, m, rows, values)
        if config.get(s, m.bank, cf.THCON_SEC0_REG1_Exp_threshold_en):
            threshold(s, m, values)
        to_output(s, m, values)
    n = addresses.chosen(s, m, rows, values)
    conversion.note(s, m, rows, place.data)
    if m.accumulate:
        accumulate(s, t, m.out, place.data, n)
    store(s, m, n, place, values)
    addresses.advance(s, m.bank, rows.number, rows.columns)
    advance(s, m, n, place, f.last)
    return DONE


def _stage_by_stage(s: Any, t: Any, f: Any) -> Any:
    m = modes.mode_of(s, t)
    unspecified = f.word & (UNKNOWN if f.ovrd_thread_id else _WITHOUT_OVERRIDE)
    if unspecified:
        return refuse(s, _FIELDS, bits=unspecified)
    if f.addr_cnt_context == 3:
        return _ADC_CONTEXT
    if f.dst_access_mode:
        if (_STRIDED_MASKS >> f.read_intf_sel) & 1 == 0:
            return refuse(s, _SELECTION, read_intf_sel=f.read_intf_sel)
        swizzle = config.get(s, m.bank, cf.DEST_ACCESS_CFG_swizzle_32b)
        remap = config.get(s, m.bank, cf.DEST_ACCESS_CFG_remap_addrs)
        if not swizzle & remap:
            return refuse(s, _STRIDED, swizzle=swizzle, remap=remap)
    status = modes.zero_refused(s, m)
    if status:
        return status
    a = f.addr_cnt_context if f.ovrd_thread_id else t
    if f.flush:  # no datum, but the tile ends
        if s.pack_open[0]:
            place = addresses.Place(s.pack_data[0], s.pack_exp[0])
            advance(s, m, np.int64(0), place, np.int64(1))
    else:
        status = _pack(s, t, a, m, f)
    if status == DONE:
        addresses.count_on(s, t, a, f.addr_mode)
    return status


stage_by_stage = second_entry(PACK_STAGES, _stage_by_stage, PackWord)


# PACR of four whole Dst rows straight to L1: bf16 or fp32 as it is, or fp32 rounded to bf16.
#
# This gives what the two conversions give, in one loop instead of three.  Every operation is cast
# to uint32: without the casts the compiler uses lanes of 64 bits, at a third of the speed.

_DATUMS = 64


@njit(inline="always")
def _decoded(c: Any) -> Any:
    # dest.dec_bf16 in 32 bits: from its 64 the compiler makes a loop of wider vectors
    high = u32(u32(c & u32(0x8000)) | u32(u32(c & u32(0xFF)) << u32(7)))
    return u32(high | u32(u32(c >> u32(8)) & u32(0x7F)))


@njit
def _bf16(cells: Any, out: Any) -> None:
    for i in range(_DATUMS):
        v = _decoded(u32(cells[i]))
        m = u32(v & u32(0x7FFF))
        v = u32(u32(v & u32(0x8000)) | u32(0x7F80)) if m > u32(0x7F80) else v
        out[i] = np.uint16(u32(0) if m < u32(0x80) else v)


@njit
def _fp32_to_bf16(upper: Any, lower: Any, out: Any) -> None:
    for i in range(_DATUMS):
        v = _decoded(u32(upper[i]))
        v = u32(u32(v << u32(16)) | u32(lower[i]))
        m = u32(v & u32(0x7FFFFFFF))
        v = u32(u32(v & u32(0x80000000)) | u32(0x7F800000)) if m > u32(0x7F800000) else v
        v = u32(u32(v + u32(0x8000)) >> u32(16))
        out[i] = np.uint16(u32(0) if u32(v & u32(0x7FFF)) < u32(0x80) else v)


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
    flags = s.dst_valid[at : at + 4]  # 1: valid and written
    if not (flags[0] == 1 and flags[1] == 1 and flags[2] == 1 and flags[3] == 1):
        return False
    if m.wide == 0:
        return True
    lower = s.dst_valid[at + dest.LOW_HALF : at + dest.LOW_HALF + 4]
    return (lower[0] | lower[1] | lower[2] | lower[3]) <= 1


@njit
def _pack_whole_rows(s: Any, m: Any, rows: Any, place: Any) -> None:
    """Pack the Rows to the Place in Mode `m`, for which `_suits` was true."""
    at = dest.adj32(rows.first) if m.wide else dest.row16(s, rows.first)
    store = flat(s.dst)
    upper = store[at * 16 : at * 16 + _DATUMS]
    if m.fmt == FP32:
        lower = store[(at + dest.LOW_HALF) * 16 : (at + dest.LOW_HALF) * 16 + _DATUMS]
        first = place.data >> 2
        out = l1_words(s)[first : first + _DATUMS]
        for i in range(_DATUMS):
            v = _decoded(u32(upper[i]))
            out[i] = u32(u32(v << u32(16)) | u32(lower[i]))
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
    rows = addresses.rows_of(s, t, m, 15, 0)
    if not _suits(s, m, rows) or rows.column or addresses.counts_partly(s, t, m):
        return False
    if modes.zero_fields(s, m.bank) or modes.compresses(s, m.bank):
        return False
    if intermediate(s, m.bank) != m.fmt:
        return False
    if addresses.masked(s, m.bank) or enabled(s) or modes.staged(s, m.bank):
        return False
    place = addresses.place_of(s, t, m)
    if addresses.place_refused(s, m, _DATUMS, place):
        return False
    _pack_whole_rows(s, m, rows, place)
    s.pack_exponent[1] += 1
    addresses.advance(s, m.bank, rows.number, rows.columns)
    advance(s, m, _DATUMS, place, last)
    addresses.count_on(s, t, t, addr_mode)
    return True


# Its own entry packs four whole rows; all other modes are compiled when a program first needs them.

_ANY = (PackWord.last, PackWord.concat, PackWord.read_intf_sel, PackWord.addr_mode)
_MUST_BE_ZERO = sum(field.mask for field in PackWord.fields if field not in _ANY)


class PACR(
    PackWord,
    Instruction,
    opcode=0x41,
    unit="pack",
    formats="pack",
    by_chance=(cf.ALU_ROUNDING_MODE_Gasket_srnd_en, cf.ALU_ROUNDING_MODE_Packer_srnd_en),
    second_entries=(PACK_STAGES, PACK_ACCUMULATE),
):
    """Pack datums from Dst to L1 (PACR, Blackhole ISA)."""

    reads = (spaces.ALL_DST | spaces.adc("4") | spaces.PACKER | spaces.EXPONENTS | READ_CONFIG) | (
        spaces.ALL_L1 | spaces.DEBUG | spaces.TDMA
    )
    writes = (spaces.ALL_L1 | spaces.adc("4") | spaces.PACKER | spaces.EXPONENTS) | (
        spaces.STOCHASTIC | spaces.TDMA
    )

    def advance(s: Any, t: Any, f: Any) -> Any:
        a = f.addr_cnt_context if f.ovrd_thread_id else t
        if a < THREADS:  # the packer refuses another one
            addresses.count_on(s, t, a, f.addr_mode)
        return DONE

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.word & _MUST_BE_ZERO == 0 and (f.read_intf_sel == 0 or f.read_intf_sel == 15):
            if pack_whole_rows(s, t, f.addr_mode, f.last):
                return DONE
        return stage_by_stage(s, t, f.word)
