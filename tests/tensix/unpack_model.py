"""A literal, slow model of UNPACR: one datum at a time, on Python integers.

Written from the text: UNPACR_Regular (Wormhole ISA) with Blackhole's rows of 32 datums, and the
conversion table of ttsim's Tensix model (FloatBitPatterns, Blackhole ISA).
"""

from dataclasses import dataclass, field
from typing import Any

from bhemu.tensix import config_fields as cf
from bhemu.tensix import thread_fields as tf

BITS = {0: 32, 1: 16, 4: 32, 5: 16, 6: 8, 7: 4, 8: 32, 9: 16, 10: 8, 14: 8, 15: 2}
BITS |= {2: 8, 3: 4, 11: 2}
BFP = (6, 7, 15)
BFP_A = (2, 3, 11)
WIDTH = {0: 4, 1: 2, 4: 4, 5: 2, 6: 1, 7: 1, 8: 4, 9: 2, 10: 1, 14: 1, 15: 1, 2: 1, 3: 1, 11: 1}


def put(s: Any, f: cf.Field, value: int, bank: int = 0) -> None:
    """Set a Config field, other bits of the word kept."""
    assert 0 <= value <= f.mask
    word = int(s.cfg[bank, f.word]) & ~(f.mask << f.shift)
    s.cfg[bank, f.word] = word | value << f.shift


def put_thread(s: Any, t: int, f: cf.Field, value: int) -> None:
    """Set a ThreadConfig field of thread `t`."""
    word = int(s.thread_cfg[t, f.word]) & ~(f.mask << f.shift)
    s.thread_cfg[t, f.word] = word | value << f.shift


def fp16_cell(v: int) -> int:
    return (v >> 15) << 31 | (v & 0x7FFF) << 13


def from_fp32(out: int, v: int) -> int:
    sign, e, m = v >> 31 << 31, v >> 23 & 255, v & 0x7FFFFF
    if out == 4:
        return v & 0xFFFFE000
    if out == 5:
        return v & 0xFFFF0000 if e else sign
    if e < 112:
        return sign
    if e > 143:
        return sign | 31 << 23 | 0x7FE000
    return sign | (e - 112) << 23 | m & 0x7FE000


def from_bfp(b: int, shared: int) -> int:
    """b: sign and magnitude, left-aligned in 8 bits."""
    magnitude = b << 1 & 255
    if magnitude == 0:
        return 0xFF80 << 16 if b & 0x80 else 0
    zeros = 8 - magnitude.bit_length()
    magnitude <<= zeros
    return ((b >> 7) << 15 | ((shared - zeros) % 256) << 7 | magnitude & 0x7E) << 16


def from_bfp_a(b: int, shared: int) -> int:
    """b as in from_bfp; the exponent has 5 bits (BFP8aToFP16)."""
    magnitude = b << 1 & 255
    if magnitude == 0:
        return fp16_cell(0xFC00) if b & 0x80 else 0
    zeros = 8 - magnitude.bit_length()
    assert 0 <= shared - zeros < 32, (b, shared)
    return fp16_cell((b >> 7) << 15 | shared - zeros << 10 | (magnitude << zeros & 0x7E) << 3)


def from_fp8(v: int, e4m3: bool) -> int:
    if not e4m3:
        return fp16_cell((v << 8) + 0xFF if v & 0x7F == 0x7F else v << 8)
    e, m = v >> 3 & 15, v & 7
    low = 0x7F if e == 15 and m == 7 else 0
    return fp16_cell((v >> 7) << 15 | (e + 8 if e else 0) << 10 | m << 7 | low)


def src_cell(
    fmt: int, out: int, v: int, shared: int = 0, e4m3: bool = False, unsigned: bool = False
) -> int:
    """The Src cell of raw datum `v`."""
    if fmt == 0:
        return from_fp32(out, v)
    if fmt == 1:
        return fp16_cell(v)
    if fmt == 5:
        return v << 16
    if fmt in BFP:
        return from_bfp(v << 8 - BITS[fmt], shared)
    if fmt in BFP_A:
        return from_bfp_a(v << 8 - BITS[fmt], shared)
    if fmt == 9:
        return ((v & 0x8000) | (v & 0xFF) << 7 | v >> 8 & 0x7F) << 16
    if fmt == 10:
        return from_fp8(v, e4m3)
    assert fmt == 14
    sign = 0 if unsigned else v & 0x80
    magnitude = v - sign
    return sign << 24 | (16 << 23 if magnitude else 0) | magnitude << 13


def dst_cell(v: int) -> int:
    """The 32-bit Dst cell of a pattern."""
    high = v >> 16
    return ((high & 0x8000) | (high & 0x7F) << 8 | high >> 7 & 0xFF) << 16 | v & 0xFFFF


def dst_cell_16(fmt: int, out: int, cell: int) -> int:
    """The 16-bit Dst cell of a Src cell: WriteDstBF16 or WriteDstFP16 of the same datum."""
    sign = cell >> 31 << 15
    if fmt in (1, 10, 14, *BFP_A) or (fmt, out) == (0, 1):
        low = cell >> 13 & 0x7FFF
        return sign | (low & 0x3FF) << 5 | low >> 10
    low = cell >> 16 & 0x7FFF
    return sign | (low & 0x7F) << 8 | low >> 7


@dataclass
class Unpack:
    """One UNPACR with everything it depends on."""

    u: int = 0
    k: int = 0
    fmt: int = 5
    out: int = 5
    to_dst: int = 0
    haloize: int = 0
    stride: int = 0  # 0: not tilized
    x: int = 256
    y: int = 1
    z: int = 4
    base: int = 0x4000
    offset: int = 0
    dest: int = 64
    add_dest: int = 0
    strides: tuple[int, int] = (0, 0)  # channel 1 Y and Z
    counters: tuple[int, int, int, int] = (0, 0, 0, 0)  # channel 0
    channel1: tuple[int, int] = (0, 0)  # channel 1 Y and Z
    w: tuple[int, int] = (0, 0)  # channel 1 W and its stride
    shift: int = 0  # columns, without a stride
    zeros: int = 0
    override: int = -1  # SRCA_SET_SetOvrdWithAddr, -1: as the target needs it
    count: int = 1024
    forced: int = -1
    e4m3: int = 0
    unsigned: int = 0
    addr_mode: int = 0
    set_dat_valid: int = 0
    thread: int = 0
    bank: int = 0
    fields: dict[str, int] = field(default_factory=dict)

    def section(self, name: str) -> cf.Field:
        found: cf.Field = getattr(cf, f"THCON_SEC{self.u}_{name}")
        return found

    def program(self, s: Any) -> None:
        """Write configuration and counters."""
        b, u, k, t = self.bank, self.u, self.k, self.thread
        put_thread(s, t, tf.CFG_STATE_ID_StateID, b)
        override = 1 - self.to_dst if self.override < 0 else self.override
        put_thread(s, t, tf.SRCA_SET_SetOvrdWithAddr, override)
        number = k - self.fields.get("cfg_context_id", 0)
        put_thread(s, t, getattr(tf, f"UNPACK_MISC_CFG_CfgContextOffset_{u}"), number % 8)
        first = self.section("REG0_TileDescriptor").word
        s.cfg[b, first] = self.fmt | (self.x << 16 if u else 0x77 << 16)
        s.cfg[b, first + 1] = self.y | (self.z if self.z > 1 else 0) << 16
        put(s, self.section("REG2_Out_data_format"), self.out, b)
        put(s, self.section(f"REG2_Disable_zero_compress_cntx{k}"), 1, b)
        put(s, self.section("REG2_Haloize_mode"), self.haloize, b)
        put(s, self.section("REG1_Unp_LF8_4b_exp"), self.e4m3, b)
        name = f"REG{3 + k // 4}_Base_cntx{k}_address" if k else "REG3_Base_address"
        put(s, self.section(name), self.base, b)
        name = f"REG7_Offset_cntx{k % 4}_address" if k % 4 else "REG7_Offset_address"
        put(s, self.section(name), self.offset, b)
        put(s, getattr(cf, f"ALU_FORMAT_SPEC_REG0_Src{'AB'[u]}Unsigned"), self.unsigned, b)
        put(s, getattr(cf, f"UNP{u}_ADDR_CTRL_XY_REG_1_Ystride"), self.strides[0], b)
        put(s, getattr(cf, f"UNP{u}_ADDR_CTRL_ZW_REG_1_Zstride"), self.strides[1], b)
        put(s, getattr(cf, f"UNP{u}_ADDR_CTRL_ZW_REG_1_Wstride"), self.w[1], b)
        for i in range(3 if self.stride else 0):
            put(s, self.section("REG2_Tileize_mode"), 1, b)
            part = self.stride >> 4 + 4 * i & 15
            put(s, self.section(f"REG2_Shift_amount_cntx{i}"), part, b)
        if self.forced >= 0:
            put(s, self.section("REG2_Force_shared_exp"), 1, b)
            put(s, getattr(cf, f"UNP{u}_FORCED_SHARED_EXP_shared_exp"), self.forced, b)
        if u == 0:
            self._program_unpacker_0(s)
        x = self.counters[0]
        s.adc[t, u, 0] = self.counters
        s.adc[t, u, 1] = (x + self.count - 1, *self.channel1, self.w[0])
        xy = self.fields.get("addr_cnt_context_id", 0)
        if xy in (1, 2) and xy != t:  # X and Y of another thread, Z and W of this one
            s.adc[xy, u, :, :2] = s.adc[t, u, :, :2]
            s.adc[t, u, 0, :2] = 0x123
            s.adc[t, u, 1, 0] = 0

    def _program_unpacker_0(self, s: Any) -> None:
        b, k = self.bank, self.k
        put(s, self.section(f"REG2_Unpack_if_sel_cntx{k}"), self.to_dst, b)
        put(s, self.section(f"REG5_Tile_x_dim_cntx{k % 4}"), self.x, b)
        put(s, self.section(f"REG5_Dest_cntx{k % 4}_address"), self.dest, b)
        put(s, cf.UNP0_ADD_DEST_ADDR_CNTR_add_dest_addr_cntr, self.add_dest, b)
        if self.shift:
            put(s, self.section(f"REG2_Shift_amount_cntx{k % 4}"), self.shift, b)

    def operands(self) -> dict[str, int]:
        """Fields of the instruction word."""
        word = {"last": 1, "ovrd_thread_id": 1, "unpack_block_selection": self.u}
        word |= {"addr_mode": self.addr_mode, "set_dat_valid": self.set_dat_valid}
        word["zero_write2"] = self.zeros
        return word | self.fields

    def datum(self, l1: bytes, i: int) -> tuple[int, int]:
        """(raw datum, shared exponent) number i."""
        x0, y0, z0, w0 = self.counters
        first = x0 + self.x * (y0 + self.y * (z0 + self.z * w0))
        base = data = (self.base + self.offset + 1) * 16 % 2**32
        bits, shared = BITS[self.fmt], 0
        if self.fmt in (*BFP, *BFP_A):
            if self.forced >= 0:
                shared = self.forced
            else:
                exponents = -(-self.x * self.y * self.z // 16)
                data += -(-exponents // 16) * 16
                shared = l1[(16 * base + first + i) // 16]
        row = 32 if bits > 8 else 16
        step = self.stride or bits * row // 8
        bit = 8 * data + first * bits + bits * (i % row) + 8 * step * (i // row)
        word = int.from_bytes(l1[bit // 8 : bit // 8 + 4], "little")
        return word >> bit % 8 & (1 << bits) - 1, shared

    def first_cell(self) -> int:
        """Target datum of datum 0."""
        y, z = self.channel1
        counted = y * self.strides[0] + z * self.strides[1] + self.w[0] * self.w[1]
        counted //= WIDTH[self.out]
        if self.u:
            return counted
        return self.dest + (counted if self.to_dst or self.add_dest else 0) - 64

    def expect(self, l1: bytes, src: Any, dst: Any, valid: Any) -> None:
        """Apply to arrays: src[64, 16] of the unpack bank, dst[1024, 16] and its valid flags."""
        for i in range(self.count):
            v, shared = (0, 0) if self.zeros else self.datum(l1, i)
            row, column = divmod(self.first_cell() + i, 16)
            unsigned, e4m3 = bool(self.unsigned), bool(self.e4m3)
            if self.to_dst and self.out in (0, 4, 8):
                at = (row & 0x1F8) << 1 | row & 0x207
                cell = dst_cell(v)
                dst[at, column], dst[at + 8, column] = cell >> 16, cell & 0xFFFF
                valid[at] = 1
                continue
            cell = 0 if self.zeros else src_cell(self.fmt, self.out, v, shared, e4m3, unsigned)
            if self.to_dst:
                dst[row, column] = dst_cell_16(self.fmt, self.out, cell)
                valid[row] = 1
                continue
            if row < 0 or column < self.shift:
                continue
            row, column = row % 64, column - self.shift
            if self.haloize and self.u == 0:
                row, column = row & ~15 | column, row & 15
            src[row, column] = cell
