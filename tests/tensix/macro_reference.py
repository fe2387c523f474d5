"""Literal scheduler of SFPLOADMACRO on Python integers, one cycle at a time.

It follows the functional model of the ISA page line by line, on top of the literal model of the
instructions; MAD instructions and SFPSWAP take two cycles (SFPMAD, SFPSWAP).  Production kernels
decide twice: a byte that schedules nothing, and the operands of SFPSWAP (docs/models.md).
"""

import pickle
from dataclasses import dataclass, field

from sfpu_formats import LANES
from sfpu_reference import Model

from bhemu.tensix.insn import instructions
from bhemu.tensix.state import State

BONUS = 16
SIMPLE, MAD, ROUND, STORE = range(4)
EXECUTES = {
    SIMPLE: """SFPABS SFPAND SFPARECIP SFPCAST SFPCOMPC SFPCONFIG SFPDIVP2 SFPENCC SFPEXEXP SFPEXMAN
    SFPGT SFPIADD SFPLE SFPLZ SFPMOV SFPNOP SFPNOT SFPOR SFPPOPC SFPPUSHC SFPSETCC SFPSETEXP
    SFPSETMAN SFPSETSGN SFPSHFT SFPSWAP SFPTRANSP SFPXOR""".split(),
    MAD: "SFPADD SFPADDI SFPLUT SFPLUTFP32 SFPMAD SFPMUL SFPMULI SFPMUL24 SFPNOP".split(),
    ROUND: "SFPNOP SFPSHFT2 SFP_STOCH_RND".split(),
    STORE: ["SFPSTORE"],
}
WITH_VB = "SFPMAD SFPADD SFPMUL SFPMUL24 SFPAND SFPOR SFPSHFT2 SFP_STOCH_RND".split()
WITHOUT_VC = "SFPADDI SFPMULI SFPLUT SFPLUTFP32".split()


@dataclass
class Insn:
    """A parsed instruction; None for an operand it does not have."""

    name: str
    mod: int = 0
    imm: int = 0
    va: int = 0
    vb: int | None = None
    vc: int | None = None
    vd: int = 0
    rnd: int = 0
    address: int = 0


def parse(word: int) -> Insn:
    name = instructions()[word >> 24].__name__
    n = [word >> lo & 15 for lo in range(0, 24, 4)]
    if name in ("SFPSTORE", "SFPLUT"):
        return Insn(name, mod=n[4], vd=n[5])
    if name in ("SFPADDI", "SFPMULI"):
        return Insn(name, mod=n[0], vd=n[1], imm=word >> 8 & 0xFFFF)
    insn = Insn(name, mod=n[0], vd=n[1], vc=n[2], va=n[4], imm=word >> 12 & 0xFFF)
    if name in WITH_VB:
        insn.vb = n[3]
    if name == "SFP_STOCH_RND":
        insn.imm, insn.rnd = word >> 16 & 31, word >> 21 & 3
    if name == "SFPSETCC":
        insn.imm = 0
    return insn


@dataclass
class Scheduled:
    unit: int
    insn: Insn
    delay: int
    instructions: bool  # WaitForElapsedInstructions


@dataclass
class Write:
    reg: int
    lane: int
    value: int
    left: int


@dataclass
class Scheduler:
    """LReg 0-16, flags, Dst and what is scheduled; `cycle` executes one cycle."""

    model: Model
    template: list[int]
    sequence: list[int]
    misc: int
    scheduled: list[Scheduled] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    bonus: list[int] = field(default_factory=lambda: [0] * 32)

    @classmethod
    def of(cls, s: State) -> "Scheduler":
        template = [int(v) for v in s.macro_template]
        return cls(Model(s), template, [int(v) for v in s.macro_sequence], int(s.macro_misc[0]))

    def register(self, reg: int) -> list[int]:
        return self.bonus if reg == BONUS else self.model.reg[reg]

    # Dst through modes 4 (raw 32 bits) and 6 (raw 16 bits) only

    def cells(self, address: int, mode: int, lane: int) -> list[tuple[int, int]]:
        row, col = (address & 0x3FC) + lane // 8, 2 * (lane & 7) + (address >> 1 & 1)
        if mode == 6:
            return [(row, col)]
        high = (row & 0x1F8) << 1 | row & 0x207
        return [(high, col), (high + 8, col)]

    def load(self, reg: int, mode: int, address: int) -> None:
        for lane in self.model.on():
            cells = [self.model.dst[r][c] for r, c in self.cells(address, mode, lane)]
            if mode == 4:
                h = cells[0]
                cells[0] = h & 0x8000 | (h & 255) << 7 | h >> 8 & 127
            value = cells[0] if mode == 6 else cells[0] << 16 | cells[1]
            self.writes.append(Write(reg, lane, value, 1))

    def store(self, insn: Insn, dst: list[list[int]]) -> None:
        for lane in self.model.on():
            x = self.register(insn.vd)[lane]
            h = x >> 16
            high = h & 0x8000 | (h & 127) << 8 | h >> 7 & 255
            values = [x & 0xFFFF] if insn.mod == 6 else [high, x & 0xFFFF]
            for (r, c), v in zip(self.cells(insn.address, insn.mod, lane), values, strict=True):
                dst[r][c] = v

    def execute(self, insn: Insn, after: Model) -> None:
        """Stage what one simple, MAD or round instruction writes; flags and PRNG go to `after`."""
        if insn.name == "SFPNOP":
            return
        work: Model = pickle.loads(pickle.dumps(self.model))  # a deep copy, in C
        vb = insn.vd if insn.vb is None else insn.vb
        work.reg += [list(self.bonus), list(self.register(vb))]  # 16; 17: VB, becomes VD
        left = 2 if insn.name in EXECUTES[MAD] or insn.name == "SFPSWAP" else 1
        if insn.name == "SFPSWAP":
            vc = insn.vc or 0
            work.SFPSWAP(insn.mod, vb, vc)  # VD of its page; nothing writes the scheduled VD
            self.differences(work, [vb, vc], left)
        else:
            out = self.call(work, insn)
            indirect = insn.name == "SFPMAD" and insn.mod & 8 and insn.vd != BONUS
            for lane in self.model.on() if out else ():
                vd = self.model.reg[7][lane] & 15 if indirect else insn.vd
                if vd < 8 or vd == BONUS:
                    self.writes.append(Write(vd, lane, work.reg[out][lane], left))
        # SFPIADD, SFPEXEXP, SFPLZ: flags only "if (VD < 8)"
        keeps = insn.vd == BONUS and insn.name in ("SFPIADD", "SFPEXEXP", "SFPLZ")
        if insn.name in EXECUTES[SIMPLE] and not keeps:
            after.cc, after.cc_en, after.stack = work.cc, work.cc_en, work.stack
        if work.prng != self.model.prng:
            after.prng = work.prng

    def call(self, work: Model, insn: Insn) -> int:
        """Execute on the copy; returns the register with the result, 0 = none."""
        a, b, c = insn.va, insn.vb or 0, insn.vc or 0
        if insn.name in ("SFPMAD", "SFPADD", "SFPMUL", "SFPMUL24"):
            getattr(work, insn.name)(insn.mod & 7, 17, c, b, a)
        elif insn.name in ("SFPADDI", "SFPMULI"):
            work.reg[17] = list(self.register(c))
            getattr(work, insn.name)(insn.mod, 17, insn.imm)
        elif insn.name in ("SFPSETCC", "SFPENCC"):
            args = (
                [insn.mod, 0, c, insn.imm] if insn.name == "SFPSETCC" else [insn.mod, 0, insn.imm]
            )
            getattr(work, insn.name)(*args)
            return 0
        elif insn.name in ("SFPAND", "SFPOR"):
            work.reg[17] = list(self.register(b if insn.mod else insn.vd))
            getattr(work, insn.name)(0, 17, c, 0)
        elif insn.name == "SFP_STOCH_RND":
            work.SFP_STOCH_RND(insn.mod, 17, c, b, insn.imm, insn.rnd)
        elif insn.name == "SFPSHFT2":
            work.SFPSHFT2(insn.mod, 17, c, b)
        elif insn.name in ("SFPCAST", "SFPABS", "SFPLZ", "SFPMOV", "SFPEXMAN", "SFPEXEXP", "SFPGT"):
            getattr(work, insn.name)(insn.mod, 17, c)
        elif insn.name in ("SFPNOT", "SFPXOR"):
            getattr(work, insn.name)(17, c)
        else:  # SFPIADD SFPSHFT SFPDIVP2 SFPSETEXP SFPSETMAN SFPSETSGN SFPARECIP
            imm = insn.imm & 1 if insn.name == "SFPSETSGN" else insn.imm
            getattr(work, insn.name)(insn.mod, 17, c, imm)
        return 17

    def differences(self, work: Model, registers: list[int], left: int) -> None:
        for reg in {r for r in registers if r < 8}:
            for lane in LANES:
                if work.reg[reg][lane] != self.model.reg[reg][lane]:
                    self.writes.append(Write(reg, lane, work.reg[reg][lane], left))

    def cycle(self, word: int = 0) -> None:
        """One cycle with the regular vector word `word`, or with none."""
        due = [e for e in self.scheduled if e.delay == 0]
        self.scheduled = [e for e in self.scheduled if e.delay > 0]
        after, dst = pickle.loads(pickle.dumps(self.model)), [list(row) for row in self.model.dst]
        name = instructions()[word >> 24].__name__ if word else ""
        for entry in due:
            if entry.unit == STORE:
                self.store(entry.insn, dst)
            else:
                self.execute(entry.insn, after)
        if not any(name in EXECUTES[e.unit] and name != "SFPNOP" for e in due):
            self.regular(word, name, after, dst)
        if word or not any(e.instructions for e in self.scheduled):
            for e in self.scheduled:
                e.delay -= 1
        if name == "SFPLOADMACRO":
            self.macro(word)
        self.finish(after, dst)

    def regular(self, word: int, name: str, after: Model, dst: list[list[int]]) -> None:
        if name in ("SFPLOAD", "SFPLOADMACRO"):
            vd = word >> 20 & 15 if name == "SFPLOAD" else (word & 1) << 2 | word >> 20 & 3
            self.load(vd, word >> 16 & 15, word & 0x3FF)
        elif name == "SFPLOADI":
            for lane in self.model.on():
                self.writes.append(Write(word >> 20 & 15, lane, word & 0xFFFF, 1))
        elif name == "SFPSTORE":
            insn = parse(word)
            insn.address = word & 0x3FF
            self.store(insn, dst)
        elif name and name != "SFPNOP":
            self.execute(parse(word), after)

    def macro(self, word: int) -> None:
        macro, vd = word >> 22 & 3, (word & 1) << 2 | word >> 20 & 3
        for unit in range(4):
            bits = self.sequence[macro] >> 8 * unit & 0xFF
            delay, choice = bits >> 3 & 7, bits & 7
            if choice == 0:  # the text forgets before it looks at the choice; tt-llk needs it kept
                continue
            old = self.scheduled
            self.scheduled = [e for e in old if (e.unit, e.delay) != (unit, delay)]
            assert choice != 1
            insn = {2: Insn("SFPNOP"), 3: Insn("SFPSTORE")}.get(choice)
            insn = parse(self.template[choice - 4]) if insn is None else insn
            if insn.name not in EXECUTES[unit]:
                assert unit != STORE
                insn = Insn("SFPNOP")
            self.override(insn, unit, bits, vd, word)
            kind = bool(self.misc >> 8 + unit & 1)
            self.scheduled.append(Scheduled(unit, insn, delay, kind))

    def override(self, insn: Insn, unit: int, bits: int, vd: int, word: int) -> None:
        if unit == STORE:
            if bits & 0x40:
                insn.vd = BONUS
            elif not bits & 0x80:
                insn.vd = vd
            uses = self.misc >> 4 + (word >> 22 & 3) & 1
            insn.mod = word >> 16 & 15 if uses else self.misc & 15
            insn.address = word & 0x3FF
            return
        if insn.name in WITHOUT_VC:
            insn.vc = None
        if bits & 0x80:
            insn.vb = vd
            insn.vc = insn.vd if insn.vc is None else insn.vc
        else:
            insn.vc = vd
            insn.vb = insn.vd if insn.vb is None else insn.vb
        insn.vd = BONUS if bits & 0x40 else vd

    def finish(self, after: Model, dst: list[list[int]]) -> None:
        """Flags and Dst change, then complete writes become visible."""
        after.dst, after.reg = dst, self.model.reg
        self.model = after
        for w in self.writes:
            w.left -= 1
            if w.left == 0:
                self.register(w.reg)[w.lane] = w.value
        self.writes = [w for w in self.writes if w.left]

    def drain(self) -> None:
        """Cycles without a word, until nothing that counts cycles is left."""
        while self.writes or self.scheduled:
            if not self.writes and not any(e.delay == 0 for e in self.scheduled):
                if any(e.instructions for e in self.scheduled):
                    return
            self.cycle()
