"""A literal, slow model of PACR: one datum at a time, on Python integers.

Written from the text: PACR and L1 accumulation (Blackhole ISA), with the tables of intermediate
formats, conversions and bfp assembly of ttsim's Tensix model.  L1 accumulation uses the host's
IEEE arithmetic, as an oracle independent of the integer adder under test.  Longer than 400 lines
because it is one model, read beside one page of the text.
"""

import struct
from dataclasses import dataclass, field
from typing import Any

from unpack_model import put, put_thread

from bhemu.tensix import config_fields as cf
from bhemu.tensix import thread_fields as tf

BITS = {0: 32, 1: 16, 2: 8, 4: 32, 5: 16, 6: 8, 7: 4, 8: 32, 9: 16, 10: 8, 14: 8, 15: 2}
BITS |= {3: 4, 11: 2}
BFP = (6, 7, 15)
BFP_A = (2, 3, 11)
FLOATS = (0, 1, 5, 10, *BFP, *BFP_A)
# (Read_32b_data, intermediate, output): early and late conversions of the text that fit together.
PAIRS = [
    *((0, f, o) for f in (1, 2, 4, 5, 6) for o in (*FLOATS, 4)),
    *((1, f, o) for f in (4, 5, 6) for o in (*FLOATS, 4)),
    *((1, 0, o) for o in FLOATS),
    *((1, f, f) for f in (8, 9, 14)),
    (0, 9, 9),
]
ROUNDED = [(0, 1, 10), (1, 1, 1), (1, 1, 10)]  # with Round_10b_mant
RAW = [(0, 1, 1), (0, 5, 0), (0, 5, 5), (0, 9, 9), (0, 10, 10), (0, 14, 14)]  # with Read_int8
RAW += [*((1, 0, o) for o in FLOATS), (1, 5, 0), (1, 5, 5), *((1, f, f) for f in (8, 9, 14))]


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


def intermediate(p: "Pack", cell: int) -> int:
    """Step A: a Dst cell as the intermediate format."""
    f, wide = p.fmt, p.wide
    if f == 9:
        return cell >> 16 if wide else cell
    if p.raw and not wide:
        v = dec_bf16(cell) if f == 5 else dec_fp16(cell)
        return {14: v >> 15 << 7, 10: v & 0xFF00}.get(f, v)
    if wide:
        v = dec_bf16(cell >> 16) << 16 | cell & 0xFFFF
        return raw_32(p, v) if p.raw else from_32(f, v, p.unsigned)
    if f == 1 and p.round_fp16:
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
    return v << 3 if f == 4 else v + 1 & ~1 if f == 6 else v


def raw_32(p: "Pack", v: int) -> int:
    """Read_int8 from a 32-bit cell: bits as they are."""
    if p.fmt == 14:
        return v & 0xFF if p.unsigned else v >> 31 << 7 | v & 0x7F
    return v >> 16 if p.fmt == 5 else v


def from_32(f: int, v: int, unsigned: int) -> int:
    if f in (0, 8):
        return v
    if f == 14:
        if unsigned:
            return 0 if v >> 31 else min(v, 255)
        return v >> 31 << 7 | min(v & 0x7FFFFFFF, 127)
    if v & 0x7FFFFFFF > 0x7F800000:
        v = v & 0x80000000 | 0x7F800000
    if f in (1, 4):
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
    if f == 4 or (f == 1 and wide):
        sign, threshold = 0x40000, threshold << 3
    elif f in (0, 8):
        sign, threshold, down = 1 << 31, threshold << 16, 13
    elif f == 14:
        sign = 0x80
    if v & sign:
        v = 0
    if mode == 2 and v <= threshold:
        return 0
    if mode == 3 and v >> down > threshold >> down:
        return threshold
    return v


def settle(wide: int, f: int, v: int) -> int:
    """The intermediate fp16 of 32-bit Dst has 8 exponent bits up to the ReLU."""
    return narrow(v >> 18, v >> 10 & 255, v & 1023) if f == 1 and wide else v


def exponent(f: int, v: int) -> int:
    """Of a settled intermediate pattern (ExponentThresholding, ExponentHistogram)."""
    if f in (0, 8):
        return v >> 23 & 255
    if f == 9:
        return v & 255
    return v >> 10 & 255 if f == 4 else v >> 7 & 255 if f in (5, 6) else v >> 10 & 31


def output(f: int, out: int, v: int, e4m3: int) -> int:
    """Step C, from a settled pattern; bfp outputs as s e m7 with 8 or 5 bits of exponent."""
    if f in (8, 9, 14):
        return v
    if f == 10:
        return v >> 8
    if f in (1, 2):
        s, e, m = v >> 15, v >> 10 & 31, v & 1023
        wide = s << 31 | (e + 112 << 23 if e else 0) | m << 13  # denormals are not rebiased
        if out in (0, 4):
            return wide
        if out == 1:
            return v
    else:
        wide = v << 13 if f == 4 else v << 16 if f in (5, 6) else v
        if out in (0, 4):
            return wide
        if f in (5, 6) and (out == 5 or out in BFP):
            return v
    if out == 5 or out in BFP:  # exponents of 8 bits: truncated, denormals are zero
        return wide >> 16 if wide & 0x7F800000 else 0
    half = v if f in (1, 2) else narrow(wide >> 31, wide >> 23 & 255, wide >> 13 & 1023)
    s, e, m = half >> 15, half >> 10 & 31, half & 1023
    if out == 1:
        return half
    if out in BFP_A:
        return s << 15 | e << 7 | m >> 3
    if e4m3:
        if e <= 8:
            return s << 7
        return s << 7 | (0x7F if e >= 24 else e - 8 << 3 | m >> 7)
    return s << 7 | e << 2 | m >> 8


def assemble(values: list[int], bits: int) -> tuple[int, list[int]]:
    """Shared exponent and datums of 16 patterns s[15] e[14:7] m7."""
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


def add_int32(old: int, new: int) -> int:
    a, b = ((v & 0x7FFFFFFF) * (-1 if v >> 31 else 1) for v in (old, new))
    total = max(min(a + b, 0x7FFFFFFF), -0x7FFFFFFF)
    return abs(total) | (0x80000000 if total < 0 else 0)


ADD = {0: add_fp32, 1: add_fp16, 5: add_bf16, 8: add_int32}


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
    raw: int = 0
    dstacc: int = -1  # ALU_FORMAT_SPEC_REG2_Dstacc, -1: as fmt
    e4m3: int = 0
    least: int = -1  # Exp_threshold, -1: off
    downsample: int = 0
    minus_infinity: int = 0
    strides: tuple[int, int, int] = (32, 64, 0)  # channel 0 Y, Z, W, bytes
    xstride: int = 0
    stride1: int = 0  # channel 1 Y
    strides1: tuple[int, int] = (0, 0)  # channel 1 Z, W
    base1: int = 0
    base0: int = 0
    header: int = 1  # 16 bytes before a tile; Sub_l1_tile_header_size drops them
    limit: int = 0
    fifo: int = 0  # Pack_limit_address and Pack_fifo_size, in units of 32 bytes
    offset: int = 0
    address: int = 0x5000
    exponents: int = 16  # Exp_section_size
    reads: int = 16
    masks: tuple[int, ...] = (0xFFFF, 0)
    select: int = 0
    sets: tuple[int, int] = (0, 0)  # TILE_ROW_SET_MAPPING words
    mapping2: int = 0  # the third of them
    n: int = 16
    thread: int = 0
    bank: int = 0

    def program(self, s: Any) -> None:
        """Write the configuration."""
        b = self.bank
        put_thread(s, self.thread, tf.CFG_STATE_ID_StateID, b)
        put(s, cf.ALU_FORMAT_SPEC_REG2_Dstacc, self.fmt if self.dstacc < 0 else self.dstacc, b)
        put(s, cf.PCK_DEST_RD_CTRL_Read_int8, self.raw, b)
        put(s, cf.THCON_SEC0_REG1_Downsample_mask, self.downsample, b)
        put(s, cf.THCON_SEC0_REG1_Exp_threshold_en, int(self.least >= 0), b)
        put(s, cf.THCON_SEC0_REG1_Exp_threshold, max(self.least, 0), b)
        put(s, cf.PCK_EDGE_MODE_mode, self.minus_infinity, b)
        put(s, cf.PCK0_ADDR_CTRL_XY_REG_0_Xstride, self.xstride, b)
        put(s, cf.PCK0_ADDR_CTRL_ZW_REG_1_Zstride, self.strides1[0], b)
        put(s, cf.PCK0_ADDR_CTRL_ZW_REG_1_Wstride, self.strides1[1], b)
        put(s, cf.PCK0_ADDR_BASE_REG_0_Base, self.base0, b)
        put(s, cf.PCK0_ADDR_BASE_REG_1_Base, self.base1, b)
        put(s, cf.THCON_SEC0_REG1_Disable_zero_compress, 1, b)
        put(s, cf.THCON_SEC0_REG1_Sub_l1_tile_header_size, 1 - self.header, b)
        put(s, cf.THCON_SEC0_REG9_Pack_0_2_limit_address, self.limit, b)
        put(s, cf.THCON_SEC0_REG9_Pack_0_2_fifo_size, self.fifo, b)
        put(s, cf.THCON_SEC0_REG1_In_data_format, self.fmt, b)
        put(s, cf.THCON_SEC0_REG1_Out_data_format, self.out, b)
        put(s, cf.PCK_DEST_RD_CTRL_Read_32b_data, self.wide, b)
        put(s, cf.PCK_DEST_RD_CTRL_Round_10b_mant, self.round_fp16, b)
        put(s, cf.PCK_DEST_RD_CTRL_Read_unsigned, self.unsigned, b)
        put(s, cf.THCON_SEC0_REG1_Pac_LF8_4b_exp, self.e4m3, b)
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
        for i, mask in enumerate(self.masks):
            put(s, getattr(cf, f"PCK_EDGE_OFFSET_SEC{i}_mask"), mask, b)
        put(s, cf.PCK_EDGE_TILE_ROW_SET_SELECT_select, self.select, b)
        for i, word in enumerate((*self.sets, self.mapping2)):
            s.cfg[b, cf.TILE_ROW_SET_MAPPING_0_row_set_mapping_0.word + i] = word


@dataclass
class Packer:
    """Position within a tile, statistics, and L1 as it should become."""

    l1: bytearray
    open: bool = False
    data: int = 0
    exponent: int = 0
    x: int = 0
    y: int = 0
    histogram: list[int] = field(default_factory=lambda: [0] * 32)
    largest: int = 0

    def first_row(self, p: Pack, counters: Any) -> int:
        """First Dst row."""
        size = max(BITS[p.fmt] // 8, 1)
        at = p.base0 + sum(int(counters[0][i + 1]) * p.strides[i] for i in range(3))
        return (at // size // 16 + p.offset) % 1024

    def crosses(self, p: Pack, counters: Any, select: int) -> bool:
        """Whether the interfaces leave their aligned group of four rows."""
        return (select or 15) << self.first_row(p, counters) % 4 > 15

    def pacr(
        self, s: Any, p: Pack, counters: Any, select: int, n: int, strided: int, last: int
    ) -> None:
        """One PACR; counters[channel][X Y Z W], n datums of each row."""
        self.begin(p, counters)
        rows = [i for i in range(4) if (select or 15) >> i & 1]
        if strided:
            rows = [16 * k for k in range(len(rows))]
        first, x0 = self.first_row(p, counters), int(counters[0][0])
        mask = p.downsample or 0xFFFF
        values = [
            v
            for row in rows
            for i in range(n)
            for v in [self.datum(s, p, first + row, x0 + i)]
            if mask >> i & 1
        ]
        self.store(p, values)
        self.end(p, last)

    def zeros(self, p: Pack, counters: Any, n: int, last: int) -> None:
        """A PACR with zero_write that packs n datums."""
        self.begin(p, counters)
        self.store(p, [output(p.fmt, p.out, 0, p.e4m3)] * n)
        self.end(p, last)

    def begin(self, p: Pack, counters: Any) -> None:
        """The output address generator, at the start of a tile."""
        if self.open:
            return
        _, y, z, w = (int(v) for v in counters[1])
        offset = p.base1 + y * p.stride1 + z * p.strides1[0] + w * p.strides1[1]
        start = (p.address + p.header + (offset >> 4)) % 2**32
        if start > 2 * p.limit + 1:
            start -= 2 * p.fifo
        self.exponent = start * 16 % 2**32
        self.data = (start + (p.exponents if BITS[p.out] <= 8 else 0)) * 16 % 2**32
        self.x = self.y = 0

    def end(self, p: Pack, last: int) -> None:
        self.open = not last
        if last:
            self.pad(p)

    def datum(self, s: Any, p: Pack, row: int, column: int) -> int:
        which = (*p.sets, p.mapping2, 0)[p.select & 3] >> 2 * (self.y & 15) & 3
        kept = p.masks[which] >> column & 1
        self.x += 1
        if self.x == 16:
            self.x, self.y = 0, self.y + 1
            if self.y == p.reads:
                self.y = 0
        at = (row & 0x1F8) << 1 | row & 0x207 if p.wide else row
        cell = int(s.dst[at, column])
        if p.wide:
            cell = cell << 16 | int(s.dst[at + 8, column])
        cell *= int(s.dst_valid[at])
        v = intermediate(p, cell) if kept else 0
        if not kept and p.minus_infinity:
            v = {0: 0xFF800000, 4: 0x7FC00}.get(p.fmt, 0xFF80)
        v = settle(p.wide, p.fmt, relu(p.wide, p.fmt, v, p.relu, p.threshold))
        if p.fmt != 14:
            e = exponent(p.fmt, v)
            self.histogram[e & 31] = min(self.histogram[e & 31] + 1, 255)
            self.largest = max(self.largest, e)
            v = 0 if e < p.least else v
        return output(p.fmt, p.out, v, p.e4m3)

    def store(self, p: Pack, values: list[int]) -> None:
        bits = BITS[p.out]
        if p.out in (*BFP, *BFP_A):
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
        for end in (self.data, self.exponent if p.out in (*BFP, *BFP_A) else 0):
            while end % 16:
                self.l1[end] = 0
                end += 1
