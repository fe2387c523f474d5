"""Second literal model of the vector unit: what each instruction does to all lanes and to Dst.

Written from the same text as `vector_literal`; a method is called as its instruction.
"""

from dataclasses import dataclass, field
from types import SimpleNamespace as Fields

import vector_literal as v
from vector_literal import M32, Dst, key, signed
from vector_literal_lane import Lane

LANES = range(32)


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
        for lane in self.lanes:
            lane.used = self.cc_en
        for i in self._enabled() if (name, fields.get("instr_mod1")) != ("SFPMOV", 2) else LANES:
            getattr(self.lanes[i], name)(f)

    def _enabled(self) -> list[int]:
        return [i for i in LANES if not self.cc_en or self.lanes[i].cc]

    def _mod(self, mod: int, store: bool) -> int:
        if mod:
            return mod
        if self.fp32:
            return 3
        return 2 if self.srcb in (0, 4, 5, 6, 7, 8, 9, 15) else 1

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
        if f.instr_mod1 & 2:
            self.cc_en = f.imm12_math & 1
        elif f.instr_mod1 & 1:
            self.cc_en = 1 - self.cc_en
        for lane in self.lanes:
            lane.cc = f.imm12_math >> 1 if f.instr_mod1 & 8 else 1

    def SFPPUSHC(self, f: Fields) -> None:
        flags, mod = [lane.cc for lane in self.lanes], f.instr_mod1
        if mod == 0:
            self.stack.append((self.cc_en, flags))
            return
        _, top = self.stack.pop()
        if mod <= 12:
            top = [v.boolean(mod, a, b) for a, b in zip(top, flags, strict=True)]
        elif mod == 13:
            for lane in self.lanes:
                lane.cc = 1 - lane.cc
            top = [lane.cc for lane in self.lanes]
        else:
            top = [15 - mod] * 32
        self.stack.append((1 if mod >= 14 else self.cc_en, top))

    def SFPPOPC(self, f: Fields) -> None:
        enabled, top = self.stack[-1] if self.stack else (0, [0] * 32)
        mod, flags = f.instr_mod1, [lane.cc for lane in self.lanes]
        if mod == 0:
            self.stack.pop()
            flags = top
        elif mod <= 12:
            flags = [v.boolean(mod, a, b) for a, b in zip(flags, top, strict=True)]
        else:
            flags = [1 - a for a in flags] if mod == 13 else [15 - mod] * 32
        if mod != 13:
            self.cc_en = enabled if mod <= 12 else 1
        for lane, flag in zip(self.lanes, flags, strict=True):
            lane.cc = flag

    def SFPCOMPC(self, f: Fields) -> None:
        enabled, top = self.stack[-1] if self.stack else (1, [1] * 32)
        for lane, flag in zip(self.lanes, top, strict=True):
            lane.cc = flag & (1 - lane.cc) if enabled and self.cc_en else 0

    def _compare(self, f: Fields, greater: bool) -> None:
        enabled, top = self._enabled(), self.stack[-1][1] if self.stack else None
        for i, lane in enumerate(self.lanes):
            holds = (key(lane.lreg[f.lreg_dest]) > key(lane.lreg[f.lreg_c])) == greater
            flag = lane.compared(f, holds, i in enabled, None if top is None else top[i])
            if top is not None and flag is not None:
                top[i] = flag

    def SFPGT(self, f: Fields) -> None:
        self._compare(f, True)

    def SFPLE(self, f: Fields) -> None:
        self._compare(f, False)

    def SFPSWAP(self, f: Fields) -> None:
        for i in self._enabled():
            self.lanes[i].swap(f, i)

    def SFPSHFT2(self, f: Fields) -> None:
        """Modes 2 to 4 move values between the lanes of a row of eight, 1 between rows."""
        d, old = f.lreg_dest, [lane.lreg[f.lreg_src_c] for lane in self.lanes]
        zeroth = [lane.lreg[0] for lane in self.lanes]
        for i in self._enabled():
            lreg, first = self.lanes[i].lreg, i & 7 == 0
            if f.instr_mod1 < 3:
                above = zeroth[i + 8] if f.instr_mod1 == 1 and i < 24 else 0
                last = old[i + 7 if first else i - 1] if f.instr_mod1 == 2 else above
                lreg[0:4] = [lreg[1], lreg[2], lreg[3], last]
            elif f.instr_mod1 >= 5:
                amount, source = signed(lreg[f.lreg_src_c]), lreg[f.imm12_math & 15]
                amount = v.signed12(f.imm12_math) if f.instr_mod1 == 6 else amount
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
        """Lanes 0-7 give value and enable to the lanes below them."""
        row, mod, d = self.lanes[:8], f.instr_mod1, f.config_dest
        values, flags = [lane.lreg[0] for lane in row], [lane.cc for lane in row]
        for i, lane in enumerate(self.lanes):
            skipped = mod & 8 and not f.imm16_math >> 2 * (i & 7) & 1
            if skipped or (self.cc_en and not flags[i & 7]):
                continue
            value = f.imm16_math if mod & 1 and d >= 4 else values[i & 7]
            if 11 <= d <= 14:
                default = {11: 0xBF800000, 13: 0xBF2CC4C7, 14: 0xBEB08FF9}
                lane.lreg[d] = default[d] if mod & 1 else value
            elif d < 8:
                lane.special[d] = value
            elif d == 8:
                lane.special[8] = v.bitwise(mod & 6, lane.special[8], value) & 0xFFF
            elif d == 15:
                new = v.bitwise(mod & 6, lane.config, value) & 0x3FFFF
                lane.config = new | (lane.config & ~0xFFFF if mod & 1 else 0)

    def SFPNOP(self, f: Fields) -> None:
        pass
