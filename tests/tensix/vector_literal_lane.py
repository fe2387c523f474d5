"""Second literal model of the vector unit: what each instruction does to one lane.

Written from the same text as `vector_literal`; a method is called as its instruction.
"""

from dataclasses import dataclass, field
from types import SimpleNamespace as Fields

import vector_literal as v
from vector_literal import FRACTION, M32, MAGNITUDE, ONE, SIGN, exponent, fma, key, signed


@dataclass
class Lane:
    """One lane: registers, flag, generator, LaneConfig."""

    lreg: list[int]
    cc: int = 1
    prng: int = 0
    config: int = 0
    used: int = 1  # UseLaneFlagsForLaneEnable
    special: dict[int, int] = field(default_factory=dict)  # what SFPMOV reads by number

    def put(self, indirect: int, dest: int, value: int) -> None:
        """Write LReg[dest], or with SFPMAD_MOD1_INDIRECT_VD the register that LReg[7] names."""
        dest = self.lreg[7] & 15 if indirect & 8 else dest
        if dest < 8:
            self.lreg[dest] = value

    def flags(self, new: int | None, complement: int) -> None:
        """LaneFlags = `new` unless None, then complemented."""
        self.cc = (self.cc if new is None else new) ^ (1 if complement else 0)

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
        va = self.lreg[7] & 15 if f.instr_mod1 & 4 else f.lreg_src_a
        a, b, c = (self.lreg[i] for i in (va, f.lreg_src_b, f.lreg_src_c))
        a ^= SIGN if f.instr_mod1 & 1 else 0
        c ^= SIGN if f.instr_mod1 & 2 else 0
        self.put(f.instr_mod1, f.lreg_dest, fma(a, b, c))

    SFPADD = SFPMUL = SFPMAD

    def SFPMULI(self, f: Fields) -> None:
        c = self.lreg[f.lreg_dest] ^ (SIGN if f.instr_mod1 & 2 else 0)
        self.put(f.instr_mod1, f.lreg_dest, fma(f.imm16_math << 16, c, 0))

    def SFPADDI(self, f: Fields) -> None:
        c = self.lreg[f.lreg_dest] ^ (SIGN if f.instr_mod1 & 2 else 0)
        self.put(f.instr_mod1, f.lreg_dest, fma(f.imm16_math << 16, ONE, c))

    def SFPLUT(self, f: Fields) -> None:
        x = self.lreg[3]
        magnitude = x & MAGNITUDE
        entry = self.lreg[0 if magnitude < ONE else 1 if magnitude < v.TWO else 2]
        a, c = v.lut_byte(entry >> 8 & 255), v.lut_byte(entry & 255)
        d = fma(a, magnitude, c)
        if f.instr_mod0 & 4:
            d = v.with_sign(d, x)
        self.put(f.instr_mod0, f.lreg_ind, d)

    def SFPLUTFP32(self, f: Fields) -> None:
        x, mod = self.lreg[3] & MAGNITUDE, f.instr_mod1
        i = 0 if x < ONE else 1 if x < v.TWO else 2
        if mod & 2 == 0:
            a, c = self.lreg[i], self.lreg[4 + i]
        elif mod & 8:
            a, c = v.lut_half(self.lreg[i] >> 16), v.lut_half(self.lreg[i] & 0xFFFF)
        else:
            low = x < (0x3F000000, 0x3FC00000, 0x40800000 if mod & 1 else 0x40400000)[i]
            a, c = (
                v.lut_half(self.lreg[r] & 0xFFFF if low else self.lreg[r] >> 16) for r in (i, 4 + i)
            )
        d = fma(a, x, c)
        self.put(mod, f.lreg_dest, v.with_sign(d, self.lreg[3]) if mod & 4 else d)

    def SFPARECIP(self, f: Fields) -> None:
        c = self.lreg[f.lreg_c]
        if f.instr_mod1 == 0:
            c = v.reciprocal(c)
        elif f.instr_mod1 == 1:
            c = v.reciprocal(c & MAGNITUDE) if self.lreg[f.imm12_math] & SIGN else c
        else:
            c = v.with_sign(v.exponential(c & MAGNITUDE), c)
        self.lreg[f.lreg_dest] = c

    # Fields of a float

    def SFPDIVP2(self, f: Fields) -> None:
        c, imm = self.lreg[f.lreg_c], f.imm12_math & 255
        e = exponent(c)
        new = (e if e == 255 else (e + imm) & 255) if f.instr_mod1 == 1 else imm
        self.lreg[f.lreg_dest] = c & ~(255 << 23) | new << 23

    def SFPEXEXP(self, f: Fields) -> None:
        d = exponent(self.lreg[f.lreg_c]) - (0 if f.instr_mod1 & 1 else 127)
        self.lreg[f.lreg_dest] = d & M32
        self.flags(int(d < 0) if f.instr_mod1 & 2 else None, f.instr_mod1 & 8)

    def SFPEXMAN(self, f: Fields) -> None:
        fraction = self.lreg[f.lreg_c] & FRACTION
        self.lreg[f.lreg_dest] = fraction if f.instr_mod1 else fraction + 0x800000

    def SFPSETEXP(self, f: Fields) -> None:
        c, d = self.lreg[f.lreg_c], self.lreg[f.lreg_dest]
        new = exponent(d) if f.instr_mod1 & 2 else d & 255
        new = f.imm12_math & 255 if f.instr_mod1 & 1 else new
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
            result = c + v.signed12(f.imm12_math)
        else:
            result = c - d if mod & 2 else c + d
        self.lreg[f.lreg_dest] = result & M32
        self.flags(None if mod & 4 else int(bool(result & SIGN)), mod & 8)

    def SFPMUL24(self, f: Fields) -> None:
        va = self.lreg[7] & 15 if f.instr_mod1 & 4 else f.lreg_src_a
        a, b, c = self.lreg[va], self.lreg[f.lreg_src_b], self.lreg[f.lreg_src_c]
        if f.instr_mod1 & 1:
            d = (a & FRACTION) * (b & FRACTION) >> 23
        else:
            d = a * b & FRACTION
        self.put(f.instr_mod1, f.lreg_dest, v.shift_add(d, c) if c else d)

    def SFPSHFT(self, f: Fields) -> None:
        c, d, mod = self.lreg[f.lreg_c], self.lreg[f.lreg_dest], f.instr_mod1 & 7
        mod &= 3 if mod in (4, 6) else 7  # NonContractualBehavior
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
        self.flags(int(source != 0) if f.instr_mod1 & 2 else None, f.instr_mod1 & 8)

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
        if not self.used or f.instr_mod1 & 8:
            self.cc = 0
        elif f.instr_mod1 & 1:
            self.cc = f.imm12_math
        else:
            self.cc = int({0: c < 0, 2: c != 0, 4: c >= 0, 6: c == 0}[f.instr_mod1])

    def compared(self, f: Fields, holds: bool, enabled: bool, top: int | None) -> int | None:
        """SFPGT and SFPLE: the lane's flag on the top of the stack afterwards."""
        if enabled and f.instr_mod1 & 8:
            self.lreg[f.lreg_dest] = M32 if holds else 0
        if enabled and f.instr_mod1 & 1:
            self.cc = int(holds)
        if top is None or not f.instr_mod1 & 2:
            return top
        return int(top or holds) if f.instr_mod1 & 4 else int(top and holds)

    def SFPMOV(self, f: Fields) -> None:
        if f.instr_mod1 & 8 and f.lreg_c == 9:
            self.lreg[f.lreg_dest], self.prng = self.prng, v.prng_step(self.prng)
        elif f.instr_mod1 & 8:
            self.lreg[f.lreg_dest] = self.special.get(f.lreg_c, 0)
        else:
            self.lreg[f.lreg_dest] = self.lreg[f.lreg_c] ^ (SIGN if f.instr_mod1 & 1 else 0)

    def swap(self, f: Fields, index: int) -> None:
        c, d = f.lreg_src_c, f.lreg_dest
        row = index // 8
        least = {
            1: True,
            2: row in (0, 1),
            3: row in (0, 2),
            4: row in (0, 3),
            **{5 + r: row == r for r in range(4)},
            **dict.fromkeys(range(9, 16), False),
        }.get(f.instr_mod1)
        if least is not None:
            least ^= bool(self.config & 0x100)
            smaller = key(self.lreg[c]) < key(self.lreg[d])
            if smaller != least:
                return
        self._exchange(c, d, 4 if self.config & 4 else 8)
        if self.config & 4:
            self._exchange(4 + (c & 3), 4 + (d & 3), 8)

    def _exchange(self, c: int, d: int, end: int) -> None:
        """A register from `end` on gives its value and keeps it."""
        values = self.lreg[d], self.lreg[c]
        for register, value in zip((c, d), values, strict=True):
            if register < end:
                self.lreg[register] = value
