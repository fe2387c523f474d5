"""Conversions of the packer: to the intermediate format, ReLU, threshold, to the output format."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bhemu.jit.intrinsics import flat
from bhemu.jit.subset import njit
from bhemu.tensix import config, dest, formats, lanes
from bhemu.tensix import config_fields as cf
from bhemu.tensix.dest import LOW_HALF, adj32, halves, row16
from bhemu.tensix.formats import BF16, BFP8, BFP8A, FP8, FP16, FP32, INT8, INT32, TF32, UINT16
from bhemu.tensix.rules import UNIMPLEMENTED, error, note_rule
from bhemu.tensix.units.matrix.matmul import MVMUL
from bhemu.tensix.units.pack.addresses import row_of
from bhemu.tensix.units.pack.modes import early_by_chance, lower_counts

# Early conversion: Dst cells, read and rounded to the intermediate format.
#
# `values` are the uint32 datums of one PACR, 16 of each row.  16-bit datums of Dst are read into
# the upper half of the word, so that one rounding loop serves both widths.  Denormals become +0;
# NaN becomes Inf where the format has one; Read_int8 keeps both.

u32 = np.uint32
_MAGNITUDE = 0x7FFFFFFF
_INF = 0x7F800000


class Cells(NamedTuple):
    """Two groups of bits of a 16-bit cell, their places in a pattern, and what the lower half of a
    32-bit cell contributes."""

    low: int
    low_by: int
    high: int
    high_by: int
    lower: int


_BF16_CELLS = Cells(0xFF, 23, 0x7F00, 8, 0)
_FP16_CELLS = Cells(0x1F, 26, 0x7FE0, 11, 0)
_32_CELLS = Cells(0xFF, 23, 0x7F00, 8, 0xFFFF)
_CELLS_AS_THEY_ARE = Cells(0x7FFF, 16, 0, 0, 0)


class Rounding(NamedTuple):
    """Magnitudes above `limit` become `cap`, below `floor` zero; then `half` is added, the pattern
    moved `down` and `up`, and results with a magnitude below `least` are cleared."""

    limit: int
    cap: int
    floor: int
    half: int
    down: int
    up: int
    least: int


_EXACT = Rounding(_MAGNITUDE, 0, 0, 0, 0, 0, 0)
_RAW = Rounding(_MAGNITUDE, 0, 0, 0, 16, 0, 0)
_TO_BF16 = Rounding(_INF, _INF, 0, 0x8000, 16, 0, 0x80)
_TO_M6 = Rounding(_INF, _INF, 0, 0x10000, 17, 1, 0x80)
_TO_TF32 = Rounding(_INF, _INF, 0, 0x1000, 13, 0, 0x400)
_BF16_TO_M6 = Rounding(_INF, _INF, 0x800000, 0x10000, 17, 1, 0)
_FROM_FP16 = Rounding(_MAGNITUDE, 0, 0, 0, 16, 0, 0x400)
_FP16_TO_M6 = Rounding(0x7FF70000, 0x7FF00000, 0, 0x80000, 20, 4, 0x400)
_TO_E5M2 = Rounding(_MAGNITUDE, 0, 0, 0, 24, 8, 0)
_RAW_KINDS, _BF16_TO_FP16 = 32, 64  # rows of _READING


def _reading() -> npt.NDArray[np.int64]:
    # One row of Cells and Rounding for each intermediate format: 16 of 16-bit Dst, 16 of 32-bit
    # Dst, the same again with Read_int8, and bf16 cells that become fp16.
    rows = [(*_BF16_CELLS, *_EXACT)] * 16 + [(*_32_CELLS, *_EXACT)] * 16
    rows[BF16] = (*_BF16_CELLS, *_TO_BF16)
    rows[BFP8] = (*_BF16_CELLS, *_BF16_TO_M6)
    rows[TF32] = (*_BF16_CELLS, *_TO_TF32)
    rows[FP16] = (*_FP16_CELLS, *_FROM_FP16)
    rows[BFP8A] = (*_FP16_CELLS, *_FP16_TO_M6)
    rows[UINT16] = rows[16 + UINT16] = (*_CELLS_AS_THEY_ARE, *_RAW)
    rows[16 + BF16] = (*_32_CELLS, *_TO_BF16)
    rows[16 + BFP8] = (*_32_CELLS, *_TO_M6)
    rows[16 + FP16] = rows[16 + TF32] = (*_32_CELLS, *_TO_TF32)
    raw = list(rows)
    raw[BF16], raw[16 + BF16] = (*_BF16_CELLS, *_RAW), (*_32_CELLS, *_RAW)
    raw[FP16], raw[FP8] = (*_FP16_CELLS, *_RAW), (*_FP16_CELLS, *_TO_E5M2)
    return np.array([*rows, *raw, (*_BF16_CELLS, *_EXACT)], np.int64)


_READING = _reading()


@njit(forceinline=True)
def _unshuffle(upper: Any, lower: Any, kind: Any, values: Any) -> None:
    p = _READING[kind]
    # Shifts below 32 bits, and known to be: else the compiler takes lanes of 64.
    low, low_by, high, high_by = u32(p[0]), u32(p[1] & 31), u32(p[2]), u32(p[3] & 31)
    kept, limit, cap, floor, half = u32(p[4]), u32(p[5]), u32(p[6]), u32(p[7]), u32(p[8])
    down, up, least = u32(p[9] & 31), u32(p[10] & 31), u32(p[11])
    in_place = u32(_MAGNITUDE >> (p[9] - p[10]))
    for i in range(values.size):
        c = u32(upper[i])
        sign = u32(u32(c & u32(0x8000)) << u32(16))
        first = u32(u32(c & low) << low_by)
        second = u32(u32(c & high) << high_by)
        third = u32(u32(lower[i]) & kept)
        magnitude = u32(u32(first | second) | third)
        capped = cap if magnitude > limit else magnitude
        v = u32(0) if magnitude < floor else u32(sign | capped)
        v = u32(u32(u32(v + half) >> down) << up)
        values[i] = u32(0) if u32(v & in_place) < least else v


@njit
def _unshuffle_by_chance(s: Any, cells: Any, kind: Any, values: Any) -> None:
    """As `_unshuffle` of rows in scratch, but rounded stochastically (lanes.py)."""
    upper, lower = cells
    p = _READING[kind]
    limit, cap, floor, down, back, least = p[5], p[6], p[7], p[9], p[10], p[11]
    for i in range(values.size):
        c = np.int64(upper[i])
        v = ((c & p[0]) << p[1]) | ((c & p[2]) << p[3]) | (np.int64(lower[i]) & p[4])
        v = cap if v > limit else v
        kept = v >> down
        if down and v != limit:
            kept += lanes.rounds_up(s, lanes.EARLY, v & ((1 << down) - 1), down)
        if kept << down > limit:  # the largest number does not grow
            kept = v >> down
        kept = np.int64(0) if v < floor or kept << back < least else kept << back
        sign = (c & 0x8000) << 16 >> (down - back)
        values[i] = u32(kept | sign if kept or least == floor == 0 else 0)


@njit(forceinline=True)
def _flags(s: Any, m: Any, rows: Any, values: Any) -> Any:
    # Clears what rows that are not valid hold; all flags of rows that count.
    seen = np.int64(0)
    for r in range(rows.number):
        row = row_of(rows, r)
        at = adj32(row) if m.wide else row16(s, row)
        flag = s.dst_valid[at]
        seen |= flag
        if flag == 0:
            for c in range(16):
                values[16 * r + c] = u32(0)
        elif lower_counts(m):
            seen |= s.dst_valid[at + LOW_HALF]
    return seen


@njit(forceinline=True)  # one caller
def read(s: Any, m: Any, rows: Any, values: Any) -> Any:
    """Datums of the Rows in Mode `m`, rounded to the intermediate format; the rows' flags.

    For 32-bit datums the intermediate patterns of fp16 are tf32 (19 bits), those of int8 int32.
    """
    at = (adj32(rows.first) if m.wide else row16(s, rows.first)) * 16
    kind = 16 * m.wide + m.fmt
    if m.round_fp16 and m.wide == 0:
        kind = _BF16_TO_FP16
    elif m.raw and m.round_fp16 == 0:
        kind += _RAW_KINDS
    # Rows that follow each other in the storage are read where they are.
    together = rows.step == 1 and rows.mask & (rows.mask + 1) == 0
    apart = m.wide != 0 or halves(s)  # groups of eight rows lie apart
    together = together and (not apart or (rows.first & 7) + rows.number <= 8)
    chance = early_by_chance(s, m)
    together = together and not chance
    n = values.size
    if together and at <= dest.ROWS * 16 - 16 * LOW_HALF - n:
        store = flat(s.dst)
        below = at + 16 * LOW_HALF
        _unshuffle(store[at : at + n], store[below : below + n], kind, values)
    else:
        for r in range(rows.number):
            row = row_of(rows, r)
            row = adj32(row) if m.wide else row16(s, row)
            for c in range(16):
                s.pack_cells[0, 16 * r + c] = s.dst[row, c]
                s.pack_cells[1, 16 * r + c] = s.dst[(row + LOW_HALF) & 0x3FF, c]
        if chance:
            _unshuffle_by_chance(s, (s.pack_cells[0, :n], s.pack_cells[1, :n]), kind, values)
        else:
            _unshuffle(s.pack_cells[0, :n], s.pack_cells[1, :n], kind, values)
    if kind == _BF16_TO_FP16:
        to_fp16(values, np.int64(13))
    return _flags(s, m, rows, values)


@njit
def to_fp16(values: Any, down: Any) -> None:
    """s e8 m10, `down` bits up in the word, to fp16; exponent 0 is not flushed."""
    for i in range(values.size):
        v = u32(values[i] >> u32(down))
        em = max(u32(v & u32(0x3FFFF)), u32(112 << 10))
        em = min(u32(em - u32(112 << 10)), u32(0x7FFF))
        values[i] = u32(u32(u32(v >> u32(3)) & u32(0x8000)) | em)


@njit
def _to_int8(s: Any, m: Any, values: Any) -> None:
    # Sign and magnitude in 8 bits; unsigned takes negative numbers as zero.  With Read_int8 the low
    # bits of the magnitude; 16-bit Dst then has the sign only.
    unsigned = config.get(s, m.bank, cf.PCK_DEST_RD_CTRL_Read_unsigned)
    largest = 255 if unsigned else 127
    for i in range(values.size):
        v: Any = np.int64(values[i])
        if m.raw:
            low = v & largest if m.wide else np.int64(0)
            values[i] = u32(low if unsigned else low | (v >> 24 & 0x80))
            continue
        magnitude = min(v & _MAGNITUDE, largest)
        negative = 0 if unsigned else magnitude | 0x80
        values[i] = u32(negative if v >> 31 else magnitude)


@njit(forceinline=True)
def settle(s: Any, m: Any, values: Any) -> None:
    """The last step of the early conversion, for the formats whose ReLU sees more bits."""
    if m.fmt == INT8:
        _to_int8(s, m, values)
    elif m.fmt == FP16 and m.wide:
        to_fp16(values, np.int64(0))


# Late conversion: from the intermediate format to the output format.


@njit
def _widen(values: Any) -> None:
    # fp16 to fp32; exponent 0 keeps its mantissa and is not rebiased.
    for i in range(values.size):
        v = values[i]
        em = u32(v & u32(0x7FFF))
        em = u32(em + u32(112 << 10)) if em >= u32(0x400) else em
        values[i] = u32(u32(u32(v & u32(0x8000)) << u32(16)) | u32(em << u32(13)))


@njit
def _up(values: Any, by: Any) -> None:
    for i in range(values.size):
        values[i] = u32(values[i] << u32(by))


@njit
def _magnitude_down(values: Any, by: Any, sign: Any) -> None:
    # fp16 patterns with `by` mantissa bits cut off; the sign bit goes to `sign`.
    for i in range(values.size):
        v = values[i]
        values[i] = u32((v & u32(0x8000)) >> u32(15 - sign)) | u32((v & u32(0x7FFF)) >> u32(by))


@njit(forceinline=True)  # one caller
def to_output(s: Any, m: Any, values: Any) -> None:
    """Convert settled patterns to the output format; bfp outputs stay s e m7 patterns."""
    if m.fmt == INT8 or m.fmt == INT32 or m.fmt == UINT16:
        return
    five = m.fmt == FP16 or m.fmt == BFP8A or m.fmt == FP8
    narrow = (formats.FIVE_BIT >> m.out) & 1
    as_bf16 = m.out == BF16 or (formats.is_bfp(m.out) and not narrow)
    wide = not five
    if m.fmt == TF32:
        _up(values, 13)
    elif m.fmt == BF16 or m.fmt == BFP8:
        if as_bf16:
            wide = False
        else:
            _up(values, 16)
    elif five and not narrow:
        _widen(values)
        wide = True
    if wide and narrow:
        to_fp16(values, np.int64(13))
    elif wide and as_bf16:  # denormals become +0
        for i in range(values.size):
            values[i] = values[i] >> u32(16) if values[i] & u32(_INF) else u32(0)
    if m.out == FP8 and config.get(s, m.bank, cf.THCON_SEC0_REG1_Pac_LF8_4b_exp):
        # fp16 to e4m3: exponents up to 8 give zero, from 24 the largest magnitude.
        for i in range(values.size):
            v = values[i]
            em = u32(v & u32(0x7FFF))
            scaled = u32(u32(max(em, u32(8 << 10)) - u32(8 << 10)) >> u32(7))
            em = min(scaled, u32(0x7F)) if em >= u32(9 << 10) else u32(0)
            values[i] = u32(u32(u32(v >> u32(8)) & u32(0x80)) | em)
    elif m.out == FP8:
        _magnitude_down(values, 8, 7)
    elif narrow and m.out != FP16:
        _magnitude_down(values, 3, 15)


# Block floating point output: one exponent byte and sixteen 8-, 4- or 2-bit datums per group.


@njit
def assemble(bits: Any, values: Any, data: Any) -> Any:
    """Write the group of values[0:16] (uint32, s[15] e[14:7] m7) to data[0 : 2 * bits] (uint8).

    e is the exponent of 8 bits, or of 5 for bfp8a, bfp4a and bfp2a.  Returns the shared exponent,
    the largest of the 16; 255 counts as a number.  Magnitudes are
    rounded to 7 bits, half up, and truncated to bits - 1; a zero magnitude has no sign, because
    the sign alone means minus infinity.
    """
    shared = _shared(values)
    cut, sign_at = u32(8 - bits), u32(bits - 1)
    for j in range(16):
        v = values[j]
        e = u32(u32(v >> u32(7)) & u32(0xFF))
        d = min(u32(shared - e), u32(8))
        m = u32(u32(v & u32(0x7F)) | (u32(0x80) if e else u32(0)))
        m = u32(u32(m + u32(u32(1) << d)) >> u32(d + u32(1)))
        m = u32(min(m, u32(127)) >> cut)
        values[j] = u32(m | (u32(u32(v >> u32(15)) << sign_at) if m else u32(0)))
    _write(bits, values, data)
    return shared


@njit
def assemble_by_chance(s: Any, bits: Any, values: Any, data: Any) -> Any:
    """As `assemble`, but magnitudes are rounded to 7 bits stochastically (lanes.py)."""
    shared = _shared(values)
    for j in range(16):
        v = np.int64(values[j])
        e = v >> 7 & 0xFF
        d = min(np.int64(shared) - e, np.int64(15)) + 1
        m = v & 0x7F | (0x80 if e else 0)
        m = (m >> d) + lanes.rounds_up(s, lanes.LATE, m & ((1 << d) - 1), d)
        m = np.int64(min(m, 127)) >> (8 - bits)
        values[j] = u32(m | ((v >> 15 & 1) << (bits - 1) if m else 0))
    _write(bits, values, data)
    return shared


@njit
def _shared(values: Any) -> Any:
    shared = u32(0)
    for j in range(16):
        shared = max(shared, u32(u32(values[j] >> u32(7)) & u32(0xFF)))
    return shared


@njit
def _write(bits: Any, values: Any, data: Any) -> None:
    # The 16 datums of a group, the first of a byte lowest.
    if bits == 8:
        for j in range(16):
            data[j] = np.uint8(values[j])
    elif bits == 4:
        for k in range(8):
            data[k] = np.uint8(u32(values[2 * k] | u32(values[2 * k + 1] << u32(4))))
    else:
        for k in range(4):
            low = u32(values[4 * k] | u32(values[4 * k + 1] << u32(2)))
            high = u32(values[4 * k + 2] | u32(values[4 * k + 3] << u32(2)))
            data[k] = np.uint8(u32(low | u32(high << u32(4))))


# ReLU of the packer, on intermediate patterns.


@njit
def relu(s: Any, m: Any, values: Any) -> None:
    """ReLU on the intermediate patterns: 1 clears negatives, 2 also up to, 3 limits to, T."""
    t = config.get(s, m.bank, cf.STACC_RELU_ReluThreshold)
    sign, down = u32(0x8000), u32(0)
    if m.fmt == TF32 or (m.fmt == FP16 and m.wide):
        sign, t = u32(0x40000), t << 3
    elif m.fmt == FP32 or m.fmt == INT32:
        sign, t, down = u32(0x80000000), t << 16, u32(13)
    elif m.fmt == INT8:
        sign = u32(0x80)
    above = u32(t + 1 if m.relu == 2 else 0)
    threshold = u32(t)
    limit = u32(t >> np.int64(down) if m.relu == 3 else 0xFFFFFFFF)
    for i in range(values.size):
        v = values[i]
        v = u32(0) if (v & sign) or v < above else v
        values[i] = threshold if (v >> down) > limit else v


# Exponent threshold of the packer, on intermediate patterns.


@njit
def exponent_at(fmt: Any) -> Any:
    """(shift, mask) of the exponent in the patterns of an intermediate format, after `settle`."""
    if fmt == FP32 or fmt == INT32:
        return 23, 0xFF
    if fmt == UINT16:
        return 0, 0xFF
    if fmt == BF16 or fmt == BFP8:
        return 7, 0xFF
    return 10, 0xFF if fmt == TF32 else 0x1F


@njit
def threshold(s: Any, m: Any, values: Any) -> None:
    """Exponent threshold: datums with a smaller exponent become +0."""
    least = config.get(s, m.bank, cf.THCON_SEC0_REG1_Exp_threshold)
    shift, mask = exponent_at(m.fmt)
    for i in range(values.size):
        if (np.int64(values[i]) >> shift) & mask < least:
            values[i] = u32(0)


# Sums of fp16 in L1 for which a card has given NaN: a note, because no text says for which values.
#
# Reported from a P100A (boopdotpng/tenstorrent-docs,
# hardware/packer-l1-acc-float16-hardware-bug.md): 0x7FFF or 0xFFFF in place of ordinary sums,
# where a matmul is packed with Pack_L1_Acc in fp16 and two subblocks or more are packed between
# one addition to a place and the next.  Clean are one subblock, bf16, fp32, and sums without a
# matmul. A subblock is what is packed of one section of Dst: the next one begins where the
# packer's offset changes or its row goes back.  Two in a row that begin at the same place of L1
# are one subblock in two cycles.

# Places in s.pack_sum: 1 while fp16 is accumulated, then of the subblock that is being packed.
_OPEN, _ADDRESS, _OFFSET, _ROW, _MATMULS = range(5)
_MVMUL = MVMUL.opcode

_SUBBLOCKS = error("PACR-FP16-SUMS", UNIMPLEMENTED, "Pack_L1_Acc with fp16 after a matmul of two subblocks or more: a P100A has given NaN (0x7FFF, 0xFFFF) for some such sums, which is not modelled", "accumulate bf16 or fp32 in L1, or pack one subblock per block")  # fmt: skip


@njit
def note(s: Any, m: Any, rows: Any, address: Any) -> None:
    """Look at a PACR in Mode `m` of the Rows whose first datum goes to L1 `address`."""
    last = s.pack_sum
    if m.accumulate == 0 or m.out != FP16:
        last[_OPEN] = 0
        return
    offset = config.get(s, m.bank, cf.DEST_TARGET_REG_CFG_PACK_SEC0_Offset)
    begins = offset != last[_OFFSET] or rows.first <= last[_ROW]
    if last[_OPEN] == 0 or begins:
        matmuls = np.int64(0)
        for t in range(3):
            matmuls += s.op_count[t, _MVMUL]
        if last[_OPEN] and matmuls != last[_MATMULS] and address != last[_ADDRESS]:
            note_rule(s, _SUBBLOCKS)
        last[_OPEN], last[_ADDRESS], last[_OFFSET] = 1, address, offset
        last[_MATMULS] = matmuls
    last[_ROW] = rows.first
