"""A literal, slow model of PACR: one datum at a time, on Python integers.

Written from the text: PACR and L1 accumulation (Blackhole ISA), with the tables of intermediate
formats, conversions and bfp assembly of ttsim's Tensix model.  L1 accumulation uses the host's
IEEE arithmetic, as an oracle independent of the integer adder under test.
"""

import struct
from dataclasses import dataclass, field
from typing import Any

from unpack_model import put, put_thread

from bhemu.tensix import config_fields as cf
from bhemu.tensix import thread_fields as tf

BITS = {0: 32, 1: 16, 2: 8, 5: 16, 6: 8, 7: 4, 8: 32, 9: 16, 10: 8, 14: 8, 15: 2}
BFP = (6, 7, 15)
PAIRS = [
    *((0, f, o) for f, outs in {1: (0, 1, 5, 10), 2: (6,), 9: (9,)}.items() for o in outs),
    *((0, f, o) for f, outs in {5: (0, 5, 6, 7, 15), 6: (0, 5, 6, 7)}.items() for o in outs),
    *((1, f, o) for f, outs in {0: (0, 1, 6, 7, 15), 1: (1, 10), 6: (6, 7)}.items() for o in outs),
    *((1, f, f) for f in (5, 8, 9, 14)),
]


def dec_bf16(c: int) -> int:
    return (c & 0x8000) | (c & 255) << 7 | c >> 8 & 127


def dec_fp16(c: int) -> int:
    return (c & 0x8000) | (c & 31) << 10 | c >> 5 & 1023


def narrow(sign: int, e: int, m10: int) -> int:
    """s e8 m10 as fp16."""
    e -= 112
    if e < 0:
        return sign << 15
    return sign << 15 | (0x7FFF if e > 31 else e << 10 | m10)


def intermediate(wide: int, f: int, cell: int, round_fp16: int, unsigned: int) -> int:
    """Step A: a Dst cell as the intermediate format."""
    if f == 9:
        return cell >> 16 if wide else cell
    if wide:
        v = dec_bf16(cell >> 16) << 16 | cell & 0xFFFF
        return from_32(f, v, unsigned)
    if f == 1 and round_fp16:
        v = dec_bf16(cell)
        return narrow(v >> 15, v >> 7 & 255, (v & 127) << 3)
    if f in (1, 2):
        v = dec_fp16(cell)
        if f == 2:
            if v & 0x7FFF > 0x7FF7:
                v = v & 0x8000 | 0x7FF0
            v = v + 8 & ~15
        return v if v & 0x7C00 else 0
    v = dec_bf16(cell)
    if v & 0x7FFF > 0x7F80:
        v = v & 0x8000 | 0x7F80
    if v & 0x7FFF < 0x80:
        v = 0
    return v + 1 & ~1 if f == 6 else v


def from_32(f: int, v: int, unsigned: int) -> int:
    if f in (0, 8):
        return v
    if f == 14:
        if unsigned:
            return 0 if v >> 31 else min(v, 255)
        return v >> 31 << 7 | min(v & 0x7FFFFFFF, 127)
    if v & 0x7FFFFFFF > 0x7F800000:
        v = v & 0x80000000 | 0x7F800000
    if f == 1:
        v = v + 0x1000 >> 13
        return v if v & 0x3FC00 else 0
    v = v + 0x8000 >> 16 if f == 5 else (v >> 16) + 1 & ~1
    return v if v & 0x7F80 else 0


def relu(wide: int, f: int, v: int, mode: int, threshold: int) -> int:
    """Step B."""
    if mode == 0:
        return v
    down = 0
    sign = 0x8000
    if f == 1 and wide:
        sign, threshold = 0x40000, threshold << 3
    elif f in (0, 8):
        sign, threshold, down = 1 << 31, threshold << 16, 13
    if v & sign:
        v = 0
    if mode == 2 and v <= threshold:
        return 0
    if mode == 3 and v >> down > threshold >> down:
        return threshold
    return v


def output(wide: int, f: int, out: int, v: int) -> int:
    """Step C; bfp outputs as bf16 patterns."""
    if f == 1 and wide:
        v = narrow(v >> 18, v >> 10 & 255, v & 1023)
    s, e, m = v >> 15, v >> 10 & 31, v & 1023  # of fp16
    if (f, out) == (1, 0):
        return s << 31 | (e + 112 << 23 if e else 0) | m << 13
    if (f, out) in ((1, 5), (2, 6)):
        return s << 15 | e + 112 << 7 | m >> 3 if e else 0
    if (f, out) == (1, 10):
        if e <= 8:
            return s << 7
        return s << 7 | (0x7F if e >= 24 else e - 8 << 3 | m >> 7)
    if (f, out) == (0, 1):
        return narrow(v >> 31, v >> 23 & 255, v >> 13 & 1023)
    if f == 0 and out in BFP:
        return v >> 16 if v & 0x7F800000 else 0
    if f in (5, 6) and out == 0:
        return v << 16
    return v


def assemble(values: list[int], bits: int) -> tuple[int, list[int]]:
    """Shared exponent and datums of 16 bf16 patterns."""
    shared = max(v >> 7 & 255 for v in values)
    datums = []
    for v in values:
        e, m = v >> 7 & 255, v & 127
        d = shared - e
        m = m + 128 if e else m
        m = 0 if d >= 8 else min((m + (1 << d)) >> d + 1, 127)
        m >>= 8 - bits
        datums.append(m | (v >> 15) << bits - 1 if m else 0)
    return shared, datums


def as_float(v: int) -> float:
    return float(struct.unpack("<f", struct.pack("<I", v))[0])


def flush(v: int) -> int:
    return v if v & 0x7F800000 else v & 0x80000000


def double_bits(x: float) -> int:
    return int(struct.unpack("<Q", struct.pack("<d", x))[0])


def to_even(v: int, bits: int) -> int:
    return v + (1 << bits - 1) - 1 + (v >> bits & 1) >> bits


def single(x: float) -> int:
    """A double that is a sum of two floats, as float pattern (to nearest even)."""
    try:
        return int(struct.unpack("<I", struct.pack("<f", x))[0])
    except OverflowError:
        return 0x7F800000 if x > 0 else 0xFF800000


def add_fp32(old: int, new: int) -> int:
    total = as_float(flush(old)) + as_float(flush(new))
    return 0x7FC00000 if total != total else flush(single(total))


def add_bf16(old: int, new: int) -> int:
    if {old, new} == {0x7F80, 0xFF80}:
        return 0x7FC0
    numbers = []
    for v, nan_exponent in ((old, None), (new, 128)):
        sign = -1.0 if v >> 15 else 1.0
        if v & 0x7FFF <= 0x7F80:
            numbers.append(as_float(flush(v << 16)))
        elif nan_exponent is None:
            numbers.append(sign * 1.7976931348623157e308)
        else:
            numbers.append(sign * 2.0**nan_exponent * (1 + (v & 127) / 128))
    bits = double_bits(numbers[0] + numbers[1])
    sign, e, m = bits >> 63 << 15, (bits >> 52 & 0x7FF) - 1023 + 127, bits & (1 << 52) - 1
    if e <= 0:
        return sign
    return sign | (0x7F80 if e >= 255 else (e << 7) + to_even(m, 45))


def add_fp16(old: int, new: int) -> int:
    a, b = (
        v >> 15 << 31 | ((v & 0x7FFF) + (112 << 10) << 13 if v & 0x7C00 else 0) for v in (old, new)
    )
    total = single(as_float(a) + as_float(b))
    sign = total >> 31 << 15
    if total & 0x7FFFFFFF == 0:
        return sign | (0x7FFF if old >> 10 & 31 >= 30 else 0)
    e = (total >> 23 & 255) - 112
    if e <= 0:
        return sign | (0x7FFF if e < 0 else 0)
    return sign | min((e << 10) + to_even(total & 0x7FFFFF, 13), 0x7FFF)


ADD = {0: add_fp32, 1: add_fp16, 5: add_bf16}


@dataclass
class Pack:
    """The configuration of a packer; `Packer` runs PACRs under it."""

    wide: int = 0
    fmt: int = 5
    out: int = 5
    round_fp16: int = 0
    unsigned: int = 0
    relu: int = 0
    threshold: int = 0
    accumulate: int = 0
    strides: tuple[int, int, int] = (32, 64, 0)  # channel 0 Y, Z, W, bytes
    stride1: int = 0  # channel 1 Y
    offset: int = 0
    address: int = 0x5000
    exponents: int = 16  # Exp_section_size
    reads: int = 16
    masks: tuple[int, int] = (0xFFFF, 0)
    select: int = 0
    sets: tuple[int, int] = (0, 0)  # TILE_ROW_SET_MAPPING words
    thread: int = 0
    bank: int = 0

    def program(self, s: Any) -> None:
        """Write the configuration."""
        b = self.bank
        put_thread(s, self.thread, tf.CFG_STATE_ID_StateID, b)
        put(s, cf.ALU_FORMAT_SPEC_REG2_Dstacc, self.fmt, b)
        put(s, cf.THCON_SEC0_REG1_In_data_format, self.fmt, b)
        put(s, cf.THCON_SEC0_REG1_Out_data_format, self.out, b)
        put(s, cf.PCK_DEST_RD_CTRL_Read_32b_data, self.wide, b)
        put(s, cf.PCK_DEST_RD_CTRL_Round_10b_mant, self.round_fp16, b)
        put(s, cf.PCK_DEST_RD_CTRL_Read_unsigned, self.unsigned, b)
        put(s, cf.THCON_SEC0_REG1_Pac_LF8_4b_exp, 1, b)
        put(s, cf.STACC_RELU_ApplyRelu, self.relu, b)
        put(s, cf.STACC_RELU_ReluThreshold, self.threshold, b)
        put(s, cf.THCON_SEC0_REG1_Pack_L1_Acc, self.accumulate, b)
        put(s, cf.PCK0_ADDR_CTRL_XY_REG_0_Ystride, self.strides[0], b)
        put(s, cf.PCK0_ADDR_CTRL_ZW_REG_0_Zstride, self.strides[1], b)
        put(s, cf.PCK0_ADDR_CTRL_ZW_REG_0_Wstride, self.strides[2], b)
        put(s, cf.PCK0_ADDR_CTRL_XY_REG_1_Ystride, self.stride1, b)
        put(s, cf.DEST_TARGET_REG_CFG_PACK_SEC0_Offset, self.offset, b)
        put(s, cf.THCON_SEC0_REG1_L1_Dest_addr, self.address, b)
        put(s, cf.THCON_SEC0_REG1_Exp_section_size, self.exponents, b)
        put(s, cf.PACK_COUNTERS_SEC0_pack_reads_per_xy_plane, self.reads, b)
        put(s, cf.PCK_EDGE_OFFSET_SEC0_mask, self.masks[0], b)
        put(s, cf.PCK_EDGE_OFFSET_SEC1_mask, self.masks[1], b)
        put(s, cf.PCK_EDGE_TILE_ROW_SET_SELECT_select, self.select, b)
        for i in range(2):
            s.cfg[b, cf.TILE_ROW_SET_MAPPING_0_row_set_mapping_0.word + i] = self.sets[i]


ROWS = {0: (0, 1, 2, 3), 1: (0,), 3: (0, 1), 5: (0, 2), 10: (1, 3)}


@dataclass
class Packer:
    """Position within a tile, and L1 as it should become."""

    l1: bytearray
    open: bool = False
    data: int = 0
    exponent: int = 0
    x: int = 0
    y: int = 0
    written: int = field(default=0)

    def pacr(
        self, s: Any, p: Pack, counters: Any, select: int, n: int, strided: int, last: int
    ) -> None:
        """One PACR; counters[channel][X Y Z W], n datums of each row."""
        size = max(BITS[p.fmt] // 8, 1)
        first = sum(int(counters[0][i + 1]) * p.strides[i] for i in range(3)) // size // 16
        first = (first + p.offset) % 1024
        if not self.open:
            start = p.address + 1 + (int(counters[1][1]) * p.stride1 >> 4)
            self.exponent = start * 16 % 2**32
            self.data = (start + (p.exponents if BITS[p.out] <= 8 else 0)) * 16 % 2**32
            self.x = self.y = 0
        rows = [16 * i if strided else offset for i, offset in enumerate(ROWS[select])]
        values = [
            self.datum(s, p, first + rows[i // n], i % n, i % 16) for i in range(n * len(rows))
        ]
        self.store(p, values)
        self.open = not last
        if last:
            self.pad(p)

    def datum(self, s: Any, p: Pack, row: int, column: int, i: int) -> int:
        which = p.sets[p.select & 3] >> 2 * (self.y & 15) & 3
        kept = p.masks[which] >> i & 1
        self.x += 1
        if self.x == 16:
            self.x, self.y = 0, self.y + 1
            if self.y == p.reads:
                self.y = 0
        if not kept:
            return 0
        at = (row & 0x1F8) << 1 | row & 0x207 if p.wide else row
        cell = int(s.dst[at, column])
        if p.wide:
            cell = cell << 16 | int(s.dst[at + 8, column])
        cell *= int(s.dst_valid[at])
        v = intermediate(p.wide, p.fmt, cell, p.round_fp16, p.unsigned)
        v = relu(p.wide, p.fmt, v, p.relu, p.threshold)
        return output(p.wide, p.fmt, p.out, v)

    def store(self, p: Pack, values: list[int]) -> None:
        bits = BITS[p.out]
        if p.out in BFP:
            for group in range(0, len(values), 16):
                shared, datums = assemble(values[group : group + 16], bits)
                self.l1[self.exponent] = shared
                self.exponent += 1
                packed = sum(datum << bits * i for i, datum in enumerate(datums))
                self.l1[self.data : self.data + 2 * bits] = packed.to_bytes(2 * bits, "little")
                self.data += 2 * bits
            return
        for v in values:
            end = self.data + bits // 8
            if p.accumulate:
                v = ADD[p.out](int.from_bytes(self.l1[self.data : end], "little"), v)
            self.l1[self.data : end] = v.to_bytes(bits // 8, "little")
            self.data = end
        self.exponent += len(values) // 16

    def pad(self, p: Pack) -> None:
        for end in (self.data, self.exponent if p.out in BFP else 0):
            while end % 16:
                self.l1[end] = 0
                end += 1
