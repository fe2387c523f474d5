"""Second literal model of the vector unit: what each instruction does to the lanes and to Dst.

Written from the same text as `vector_literal`; a method is called as its instruction.
"""

from dataclasses import dataclass, field
from types import SimpleNamespace as Fields

import vector_literal as v
from vector_literal import FRACTION, M32, MAGNITUDE, ONE, SIGN, Dst, exponent, fma, key, signed

LANES = range(32)


@dataclass
class Lane:
    """One lane: registers, flag, generator, LaneConfig."""

    lreg: list[int]
    cc: int = 1
    prng: int = 0
    config: int = 0

    def SFPLOADI(self, f: Fields) -> None:
        old, imm = self.lreg[f.lreg_ind], f.imm16
        self.lreg[f.lreg_ind] = {
            0: imm << 16,
            1: (imm >> 15) << 31 | ((imm & 0x7FFF) + 112 * 1024) << 13,
            2: imm,
            4: imm | 0xFFFF0000 if imm & 0x8000 else imm,
            8: imm << 16 | old & 0xFFFF,
            10: old & 0xFFFF0000 | imm,
        }[f.instr_mod0]

    # Floating point

    def SFPMAD(self, f: Fields) -> None:
        a, b, c = (self.lreg[i] for i in (f.lreg_src_a, f.lreg_src_b, f.lreg_src_c))
        a ^= SIGN if f.instr_mod1 & 1 else 0
        c ^= SIGN if f.instr_mod1 & 2 else 0
        self.lreg[f.lreg_dest] = fma(a, b, c)

    SFPADD = SFPMAD

    def SFPMUL(self, f: Fields) -> None:
        a, b = self.lreg[f.lreg_src_a], self.lreg[f.lreg_src_b]
        self.lreg[f.lreg_dest] = fma(a ^ (SIGN if f.instr_mod1 & 1 else 0), b, 0)

    def SFPMULI(self, f: Fields) -> None:
        self.lreg[f.lreg_dest] = fma(f.imm16_math << 16, self.lreg[f.lreg_dest], 0)

    def SFPADDI(self, f: Fields) -> None:
        self.lreg[f.lreg_dest] = fma(f.imm16_math << 16, ONE, self.lreg[f.lreg_dest])

    def SFPLUT(self, f: Fields) -> None:
        x = self.lreg[3]
        magnitude = x & MAGNITUDE
        entry = self.lreg[0 if magnitude < ONE else 1 if magnitude < v.TWO else 2]
        a, c = v.lut_byte(entry >> 8 & 255), v.lut_byte(entry & 255)
        self.lreg[f.lreg_ind] = x & SIGN | fma(a, magnitude, c) & MAGNITUDE

    def SFPLUTFP32(self, f: Fields) -> None:
        x = self.lreg[3] & MAGNITUDE
        i = 0 if x < ONE else 1 if x < v.TWO else 2
        low = x < (0x3F000000, 0x3FC00000, 0x40400000)[i]  # 0.5, 1.5, 3.0
        a, c = (self.lreg[r] & 0xFFFF if low else self.lreg[r] >> 16 for r in (i, 4 + i))
        self.lreg[f.lreg_dest] = fma(v.lut_half(a), x, v.lut_half(c))

    def SFPARECIP(self, f: Fields) -> None:
        self.lreg[f.lreg_dest] = v.reciprocal(self.lreg[f.lreg_c])

    # Fields of a float

    def SFPDIVP2(self, f: Fields) -> None:
        c, imm = self.lreg[f.lreg_c], f.imm12_math & 255
        e = exponent(c)
        new = (e if e == 255 else (e + imm) & 255) if f.instr_mod1 == 1 else imm
        self.lreg[f.lreg_dest] = c & ~(255 << 23) | new << 23

    def SFPEXEXP(self, f: Fields) -> None:
        d = exponent(self.lreg[f.lreg_c]) - (0 if f.instr_mod1 & 1 else 127)
        self.lreg[f.lreg_dest] = d & M32
        if f.instr_mod1 in (2, 10):
            self.cc = int(d < 0 if f.instr_mod1 == 2 else d >= 0)

    def SFPEXMAN(self, f: Fields) -> None:
        fraction = self.lreg[f.lreg_c] & FRACTION
        self.lreg[f.lreg_dest] = fraction if f.instr_mod1 else fraction + 0x800000

    def SFPSETEXP(self, f: Fields) -> None:
        c, d = self.lreg[f.lreg_c], self.lreg[f.lreg_dest]
        new = {0: d & 255, 1: f.imm12_math & 255, 2: exponent(d)}[f.instr_mod1]
        self.lreg[f.lreg_dest] = c & ~(255 << 23) | new << 23

    def SFPSETMAN(self, f: Fields) -> None:
        c, d = self.lreg[f.lreg_c], self.lreg[f.lreg_dest]
        new = f.imm12_math << 11 if f.instr_mod1 else d & FRACTION
        self.lreg[f.lreg_dest] = c & ~FRACTION | new

    def SFPSETSGN(self, f: Fields) -> None:
        c, d = self.lreg[f.lreg_c], self.lreg[f.lreg_dest]
        new = f.imm12_math << 31 if f.instr_mod1 else d & SIGN
        self.lreg[f.lreg_dest] = c & MAGNITUDE | new

    def SFPABS(self, f: Fields) -> None:
        c = self.lreg[f.lreg_c]
        if f.instr_mod1 == 1:
            self.lreg[f.lreg_dest] = c if c > 0xFF800000 else c & MAGNITUDE
        else:
            self.lreg[f.lreg_dest] = -c & M32 if c & SIGN else c

    # Integers

    def SFPIADD(self, f: Fields) -> None:
        c, d, mod = self.lreg[f.lreg_c], self.lreg[f.lreg_dest], f.instr_mod1
        if mod & 1:
            d = v.signed12(f.imm12_math)
        result = (c - d if mod & 2 else c + d) & M32
        self.lreg[f.lreg_dest] = result
        if mod & 8 or not mod & 4:
            self.cc = int((result < SIGN) == bool(mod & 8))

    def SFPMUL24(self, f: Fields) -> None:
        a, b = self.lreg[f.lreg_src_a], self.lreg[f.lreg_src_b]
        if f.instr_mod1 == 0:
            self.lreg[f.lreg_dest] = a * b & FRACTION
        else:
            self.lreg[f.lreg_dest] = (a & FRACTION) * (b & FRACTION) >> 23

    def SFPSHFT(self, f: Fields) -> None:
        c, d, mod = self.lreg[f.lreg_c], self.lreg[f.lreg_dest], f.instr_mod1
        amount = v.signed12(f.imm12_math) if mod & 1 else signed(c)
        source = c if mod & 4 else d
        if amount >= 0:
            result = source << (amount & 31)
        else:
            result = (signed(source) if mod & 2 else source) >> (-amount & 31)
        self.lreg[f.lreg_dest] = result & M32

    def SFPAND(self, f: Fields) -> None:
        other = f.imm12_math if f.instr_mod1 else f.lreg_dest
        self.lreg[f.lreg_dest] = self.lreg[other] & self.lreg[f.lreg_c]

    def SFPOR(self, f: Fields) -> None:
        other = f.imm12_math if f.instr_mod1 else f.lreg_dest
        self.lreg[f.lreg_dest] = self.lreg[other] | self.lreg[f.lreg_c]

    def SFPXOR(self, f: Fields) -> None:
        self.lreg[f.lreg_dest] ^= self.lreg[f.lreg_c]

    def SFPNOT(self, f: Fields) -> None:
        self.lreg[f.lreg_dest] = self.lreg[f.lreg_c] ^ M32

    def SFPLZ(self, f: Fields) -> None:
        c = self.lreg[f.lreg_c]
        source = c & MAGNITUDE if f.instr_mod1 & 4 else c
        self.lreg[f.lreg_dest] = 32 - source.bit_length()
        if f.instr_mod1 & 2:
            self.cc = int(source != 0)

    # Conversions

    def SFPCAST(self, f: Fields) -> None:
        convert = {0: v.cast_float, 3: v.cast_complement}[f.instr_mod1]
        self.lreg[f.lreg_dest] = convert(self.lreg[f.lreg_src_c])

    def SFP_STOCH_RND(self, f: Fields) -> None:
        c, mod = self.lreg[f.lreg_src_c], f.instr_mod1
        self.lreg[f.lreg_dest] = v.to_bf16(c) if mod == 1 else v.to_integer(c, mod)
        self.prng = v.prng_step(self.prng)

    # Comparisons and moves

    def SFPSETCC(self, f: Fields) -> None:
        c = signed(self.lreg[f.lreg_c])
        self.cc = int({0: c < 0, 2: c != 0, 4: c >= 0, 6: c == 0}[f.instr_mod1])

    def _compared(self, f: Fields, holds: bool) -> None:
        if f.instr_mod1 == 1:
            self.cc = int(holds)
        else:
            self.lreg[f.lreg_dest] = M32 if holds else 0

    def SFPGT(self, f: Fields) -> None:
        self._compared(f, key(self.lreg[f.lreg_dest]) > key(self.lreg[f.lreg_c]))

    def SFPLE(self, f: Fields) -> None:
        self._compared(f, key(self.lreg[f.lreg_dest]) <= key(self.lreg[f.lreg_c]))

    def SFPMOV(self, f: Fields) -> None:
        if f.instr_mod1 == 8:
            self.lreg[f.lreg_dest], self.prng = self.prng, v.prng_step(self.prng)
        else:
            self.lreg[f.lreg_dest] = self.lreg[f.lreg_c] ^ (SIGN if f.instr_mod1 == 1 else 0)

    def swap(self, f: Fields, index: int) -> None:
        c, d = f.lreg_src_c, f.lreg_dest
        least = {1: True, 2: index < 16, 3: not index & 8, 9: False}.get(f.instr_mod1)
        if least is not None:
            least ^= bool(self.config & 0x100)
            smaller = key(self.lreg[c]) < key(self.lreg[d])
            if smaller != least:
                return
        self._exchange(c, d)
        if self.config & 4:
            self._exchange(4 + c, 4 + d)

    def _exchange(self, c: int, d: int) -> None:
        """A constant register gives its value and keeps it."""
        values = self.lreg[d], self.lreg[c]
        for register, value in zip((c, d), values, strict=True):
            if register < 8:
                self.lreg[register] = value


@dataclass
class Unit:
    """32 lanes, condition stack, Dst; `base` is the address before the immediate is added."""

    lanes: list[Lane]
    dst: Dst
    cc_en: int = 1
    stack: list[tuple[int, list[int]]] = field(default_factory=list)
    base: int = 0
    fp32: int = 0  # ALU_ACC_CTRL_SFPU_Fp32_enabled
    srcb: int = 5  # ALU_FORMAT_SPEC_REG1_SrcB

    def execute(self, name: str, **fields: int) -> None:
        f = Fields(**fields)
        if hasattr(self, name):
            getattr(self, name)(f)
            return
        for i in self._enabled() if (name, fields.get("instr_mod1")) != ("SFPMOV", 2) else LANES:
            getattr(self.lanes[i], name)(f)

    def _enabled(self) -> list[int]:
        return [i for i in LANES if not self.cc_en or self.lanes[i].cc]

    def _mod(self, mod: int, store: bool) -> int:
        if mod:
            return mod
        if self.fp32:
            return 3
        return (
            1
            if self.srcb == 1
            else {0: 2, 5: 2, 6: 2, 7: 2, 9: 2, 15: 2 if store else -1}[self.srcb]
        )

    def _place(self, f: Fields, lane: int) -> tuple[int, int]:
        address = (self.base + f.dest_reg_addr) & 0x3FF
        return (address & ~3) + lane // 8, 2 * (lane & 7) + (address >> 1 & 1)

    def SFPLOAD(self, f: Fields) -> None:
        mod = self._mod(f.instr_mod0, False)
        for i in self._enabled() if f.lreg_ind < 8 else ():  # registers 8-11 keep their value
            lreg = self.lanes[i].lreg
            lreg[f.lreg_ind] = self.dst.load(mod, *self._place(f, i), lreg[f.lreg_ind])

    def SFPSTORE(self, f: Fields) -> None:
        mod = self._mod(f.instr_mod0, True)
        for i in self._enabled():
            self.dst.store(mod, *self._place(f, i), self.lanes[i].lreg[f.lreg_ind])

    def SFPENCC(self, f: Fields) -> None:
        for lane in self.lanes:
            lane.cc = f.imm12_math >> 1 if f.instr_mod1 == 10 else 1
        if f.instr_mod1 == 10:
            self.cc_en = f.imm12_math & 1

    def SFPPUSHC(self, f: Fields) -> None:
        self.stack.append((self.cc_en, [lane.cc for lane in self.lanes]))

    def SFPPOPC(self, f: Fields) -> None:
        self.cc_en, flags = self.stack.pop()
        for lane, flag in zip(self.lanes, flags, strict=True):
            lane.cc = flag

    def SFPCOMPC(self, f: Fields) -> None:
        top = self.stack[-1][1] if self.stack else [1] * 32
        for lane, flag in zip(self.lanes, top, strict=True):
            lane.cc = flag & (1 - lane.cc)

    def SFPSWAP(self, f: Fields) -> None:
        for i in self._enabled():
            self.lanes[i].swap(f, i)

    def SFPSHFT2(self, f: Fields) -> None:
        """Modes 3 and 4 move values between the lanes of a row of eight."""
        d, old = f.lreg_dest, [lane.lreg[f.lreg_src_c] for lane in self.lanes]
        for i in self._enabled():
            lreg, first = self.lanes[i].lreg, i & 7 == 0
            if f.instr_mod1 == 5:
                amount, source = signed(lreg[f.lreg_src_c]), lreg[f.imm12_math]
                left = source << (amount & 31) & M32
                lreg[d] = left if amount >= 0 else source >> (-amount & 31)
            elif f.instr_mod1 == 4 and first:
                lreg[d] = 0
            else:
                lreg[d] = old[i + 7 if first else i - 1]

    def SFPTRANSP(self, f: Fields) -> None:
        old, enabled = [list(lane.lreg) for lane in self.lanes], self._enabled()
        for lane in enabled:
            j, k = lane // 8, lane % 8
            for i in range(4):
                self.lanes[lane].lreg[i] = old[8 * i + k][j]
                self.lanes[lane].lreg[4 + i] = old[8 * i + k][4 + j]

    def SFPCONFIG(self, f: Fields) -> None:
        first = self.lanes[0].lreg[0]
        for lane in self.lanes:
            if 11 <= f.config_dest <= 14:
                lane.lreg[f.config_dest] = 0xBF800000 if f.instr_mod1 else first
            elif f.config_dest == 15:
                lane.config = f.imm16_math if f.instr_mod1 else first

    def SFPNOP(self, f: Fields) -> None:
        pass
