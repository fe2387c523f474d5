"""Vector unit (SFPU): register and lane movement."""

from typing import Any

import numpy as np

from bhemu.bits import number
from bhemu.jit.subset import njit
from bhemu.tensix import lanes, rules, spaces, unspecified
from bhemu.tensix.insn import Instruction, bits
from bhemu.tensix.spaces import LANES, lreg
from bhemu.tensix.units.vector import sfpu
from bhemu.tensix.units.vector.integer import shift, signed12

_U = np.uint32
_ZERO, _ONE = _U(0), _U(1)

_MOV_MODE = rules.error("VECTOR-MOV-MODE", rules.NCB, "SFPMOV mode {mode:#x} sets bit 2, which is reserved", "leave bit 2 of instr_mod1 0; silicon ignores it")  # fmt: skip
_SWAP_MODE = rules.error("VECTOR-SWAP-MODE", rules.NCB, "SFPSWAP mode {mode} is outside the contract (0-9)", "silicon does what mode 9 does")  # fmt: skip
_SWAP_OTHER = rules.error("VECTOR-MACRO-SWAP-OTHER", rules.MISSING, "SFPSWAP scheduled with the loaded LReg as VC and LReg[{reg}] of the template beside it: what becomes of LReg[{reg}], or of the pair that it selects with ENABLE_DEST_INDEX, is not told", "set bit 7 of the sequence byte, or name a constant (8 to 15) as lreg_dest of the template")  # fmt: skip
_SHIFT_SOURCE = rules.error("VECTOR-SHIFT2-SOURCE", rules.UNSUPPORTED, "SFPSHFT2 mode 5 shifts LReg[imm12_math], and imm12_math is {immediate}", "name LReg[0] to LReg[15]")  # fmt: skip

# Scratch rows besides lanes.VALUE and lanes.FLAG
_FIRST = 2
# Registers of SFPCONFIG, and what SFPMOV reads instead of 9
_MISC, RANDOM, _LANE_CONFIG = 8, 9, 15
# Lanes as marks of both causes
_ROW_MARKS = 0xFF << 32 | 0xFF
_FIRST_LANES = 0x01010101 << 32 | 0x01010101
_FIRST_THREE_ROWS = 0xFFFFFF << 32 | 0xFFFFFF


@njit
def _save(s: Any, reg: Any, row: Any) -> None:
    """Scratch row = LReg[reg]."""
    x, out = s.lreg[reg & 15], s.lane_tmp[row]
    for lane in range(lanes.LANES):
        out[lane] = x[lane]


@njit
def _special(s: Any, register: Any) -> None:
    """Scratch value = the configuration register that SFPCONFIG would write, or the random state.

    10 to 14 read as 0.
    """
    if register == RANDOM:
        # Scratch value = random state of each lane; the enabled lanes step.
        for lane in range(lanes.LANES):
            s.lane_tmp[lanes.VALUE, lane] = s.prng[lane]
            if lanes.enabled(s, lane):
                s.prng[lane] = _U(lanes.next_random(np.int64(s.prng[lane])))
        return
    out, value = s.lane_tmp[lanes.VALUE], _ZERO
    if register < 4:
        value = s.macro_template[register & 3]
    elif register < 8:
        value = s.macro_sequence[register & 3]
    elif register == _MISC:
        value = s.macro_misc[0]
    for lane in range(lanes.LANES):
        out[lane] = s.lane_config[lane] if register == _LANE_CONFIG else value


class SFPMOV(sfpu.OneSource, opcode=0x7C, facts=sfpu.NOTICES_VC, macro=sfpu.NO_IMMEDIATE):
    """Copy a register (SFPMOV, Blackhole ISA)."""

    reads = (
        lreg("lreg_c").unless("instr_mod1 & 8")
        | sfpu.SPECIAL.when("instr_mod1 & 8")
        | LANES.unless("instr_mod1 & 11 == 2 and lreg_dest < 12")
        | spaces.LANE_CONFIG
    )
    writes = lreg("lreg_dest") | spaces.RANDOM.when("instr_mod1 & 8 and lreg_c == 9")

    instr_mod1 = sfpu.OneSource.instr_mod1.meaning("""
        0: as it is
        1, 3: with the sign flipped
        2: as it is, in all lanes
        8-11: the register of SFPCONFIG that lreg_c names; 9: random""")

    def execute(s: Any, t: Any, f: Any) -> Any:
        instr_mod1 = f.instr_mod1
        status = lanes.claim(s, t, f.lreg_dest)
        if status != lanes.GO:
            return status
        if instr_mod1 & 4:
            status = rules.undefined(s, _MOV_MODE, mode=instr_mod1)
            if status:
                return status
            instr_mod1 &= ~4
        if instr_mod1 & 8:
            _special(s, f.lreg_c)
        else:
            flip = _U(0x80000000 if instr_mod1 & 1 else 0)
            x, out = s.lreg[f.lreg_c & 15], s.lane_tmp[lanes.VALUE]
            for lane in range(lanes.LANES):
                out[lane] = x[lane] ^ flip
        if instr_mod1 == 2:
            s.lane_tmp[lanes.FLAG, :] = _ONE
            lanes.write_where(s, lanes.target(s, f.lreg_dest), lanes.VALUE)
        else:
            lanes.write(s, f.lreg_dest)
        return rules.DONE


_MAXIMUM_IN = np.array(sfpu.GREATER, np.uint32)
_PRODUCTION_MODE = 15
_EXCHANGE_BIT = lanes.EXCHANGE_SRCB_SRCC.bit_length() - 1


@njit
def _choose(s: Any, mod: Any, d: Any, c: Any) -> None:
    """Scratch flag = 1 in the lanes whose values change places."""
    x, y, flag = s.lreg[c & 15], s.lreg[d & 15], s.lane_tmp[lanes.FLAG]
    flags, on = s.cc, lanes.unmasked(s)
    if mod == 0:
        for lane in range(lanes.LANES):
            flag[lane] = _U(flags[lane] | on)
        return
    inverted, config = _MAXIMUM_IN[min(mod, 9)], s.lane_config
    for lane in range(lanes.LANES):
        less = _ONE if lanes.order(x[lane]) < lanes.order(y[lane]) else _ZERO
        exchange = _U(config[lane] >> _U(_EXCHANGE_BIT))
        swap = _U(less ^ _U(_U(_U(inverted >> _U(lane)) ^ exchange) & _ONE))
        flag[lane] = _U(swap & _U(flags[lane] | on))


@njit
def _exchange(s: Any, d: Any, c: Any, writable: Any) -> None:
    """Exchange LReg[d] and LReg[c] where the scratch flag is set; from `writable` on they stay."""
    _save(s, d, _FIRST)
    _save(s, c, _FIRST + 1)
    if c < writable:
        lanes.write_where(s, c, _FIRST)
    if d < writable:
        lanes.write_where(s, d, _FIRST + 1)


@njit
def _exchange_marks(s: Any, k: Any, here: Any, perhaps: Any, causes: Any) -> None:
    """As `_exchange` does with values; `k`: two LRegs, and from which number on they stay."""
    x, y = unspecified.of(s, k[0]), unspecified.of(s, k[1])
    if k[1] < k[2]:
        lanes.write_marks(s, k[1], x | causes, here, perhaps)
    if k[0] < k[2]:
        lanes.write_marks(s, k[0], y | causes, here, perhaps)


class SFPSWAP(sfpu.SourceC, opcode=0x92, facts=sfpu.Sfpu(notices="VD VC"), macro=sfpu.NO_IMMEDIATE):
    """Swap, or minimum and maximum (SFPSWAP, Blackhole ISA).

    With LaneConfig.ENABLE_DEST_INDEX LReg[4] to LReg[7] are swapped as LReg[0] to LReg[3] are.
    Scheduled, lreg_dest names VB: the loaded LReg or, where that is VC, the template's.
    """

    reads = lreg("lreg_dest") | lreg("lreg_src_c") | sfpu.PAIRED | spaces.LANE_CONFIG | LANES
    writes = lreg("lreg_dest") | lreg("lreg_src_c") | sfpu.PAIRED

    instr_mod1 = sfpu.SourceC.instr_mod1.meaning(sfpu.SWAPPED)

    def execute(s: Any, t: Any, f: Any) -> Any:
        instr_mod1 = f.instr_mod1
        loaded = lanes.target(s, f.lreg_dest)
        if loaded >= lanes.TEMPLATES:
            return lanes.claim(s, t, f.lreg_dest)
        if loaded != f.lreg_dest and (
            f.lreg_dest < lanes.WRITABLE or s.lane_config[0] & _U(lanes.ENABLE_DEST_INDEX) != _ZERO
        ):
            return rules.refuse(s, _SWAP_OTHER, reg=f.lreg_dest)
        if instr_mod1 > 9:
            if instr_mod1 == _PRODUCTION_MODE:  # conversions to uint16 of production kernels
                status = rules.undefined_unless_llk(s, _SWAP_MODE, mode=instr_mod1)
            else:
                status = rules.undefined(s, _SWAP_MODE, mode=instr_mod1)
            if status:
                return status
            instr_mod1 = np.int64(9)
        _choose(s, instr_mod1, f.lreg_dest, f.lreg_src_c)
        if s.lane_config[0] & _U(lanes.ENABLE_DEST_INDEX):
            _exchange(s, f.lreg_dest, f.lreg_src_c, 4)
            _exchange(s, 4 + (f.lreg_dest & 3), 4 + (f.lreg_src_c & 3), lanes.WRITABLE)
        else:
            _exchange(s, f.lreg_dest, f.lreg_src_c, lanes.WRITABLE)
        return rules.DONE

    def moves(s: Any, t: Any, f: Any) -> Any:
        """Exchanged values take their marks along; what a mark may have exchanged has both."""
        d, c, mod = f.lreg_dest, f.lreg_src_c, min(f.instr_mod1, np.int64(9))
        _choose(s, mod, d, c)
        compared = unspecified.of(s, d) | unspecified.of(s, c) if mod else np.int64(0)
        causes = compared | unspecified.of_flags(s)
        unsure = unspecified.spread(unspecified.of_flags(s))
        unsure |= unspecified.spread(compared) & unspecified.enabled(s)
        here = unspecified.both(unspecified.lanes_of(s.lane_tmp[lanes.FLAG])) & ~unsure
        if s.lane_config[0] & _U(lanes.ENABLE_DEST_INDEX):
            _exchange_marks(s, (d, c, 4), here, unsure, causes)
            pair = 4 + (d & 3), 4 + (c & 3), lanes.WRITABLE
            _exchange_marks(s, pair, here, unsure, causes)
        else:
            _exchange_marks(s, (d, c, lanes.WRITABLE), here, unsure, causes)
        return rules.DONE


@njit
def _enabled_flags(s: Any) -> None:
    """Scratch flag = 1 in the enabled lanes."""
    flag, flags, on = s.lane_tmp[lanes.FLAG], s.cc, lanes.unmasked(s)
    for lane in range(lanes.LANES):
        flag[lane] = _U(flags[lane] | on)


class SFPTRANSP(
    Instruction,
    opcode=0x8C,
    unit="vector",
    facts=sfpu.Sfpu(form=sfpu.Form.NONE, implied=0xFF),
    macro=sfpu.ALL_BUT_TARGET,
):
    """Transpose four registers within lane columns (SFPTRANSP, Blackhole ISA)."""

    reads = lreg(0, 8) | LANES
    writes = lreg(0, 8)

    lreg_dest = bits(7, 4, sfpu.NO_TARGET)

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = lanes.claim_none(s, t, f.lreg_dest)
        if status != lanes.GO:
            return status
        _enabled_flags(s)
        for group in range(2):
            for i in range(4):
                for j in range(4):
                    for k in range(8):
                        s.lane_tmp[_FIRST + i, 8 * j + k] = s.lreg[4 * group + j, 8 * i + k]
            for i in range(4):
                lanes.write_where(s, 4 * group + i, _FIRST + i)
        return rules.DONE

    def moves(s: Any, t: Any, f: Any) -> Any:
        old = (
            *(unspecified.of(s, 0), unspecified.of(s, 1), unspecified.of(s, 2)),
            *(unspecified.of(s, 3), unspecified.of(s, 4), unspecified.of(s, 5)),
            *(unspecified.of(s, 6), unspecified.of(s, 7)),
        )
        for reg in range(8):
            new, shift = np.int64(0), 8 * (reg & 3)  # row j of this comes from LReg j of the group
            for j in range(4):
                new |= ((old[(reg & 4) + j] >> shift) & _ROW_MARKS) << (8 * j)
            lanes.mark(s, np.int64(reg), new)
        return rules.DONE


@njit
def _rotate(s: Any, reg: Any, around: Any) -> None:
    """Scratch value = LReg[reg] one lane up within each 8; the first gets the last, or 0."""
    x, out = s.lreg[reg & 15], s.lane_tmp[lanes.VALUE]
    for lane in range(1, lanes.LANES):
        out[lane] = x[lane - 1]
    for j in range(4):
        out[8 * j] = x[8 * j + 7] if around else _ZERO


@njit
def _rotated(marks: Any, around: Any) -> Any:
    """Marks as `_rotate` moves values."""
    kept = (marks << 1) & ~_FIRST_LANES
    return kept | ((marks >> 7) & _FIRST_LANES) if around else kept


class SFPSHFT2(
    sfpu.SourceC, opcode=0x94, facts=sfpu.Sfpu(sfpu.ROUND, sfpu.Form.THREE, notices="VD VC")
):
    """Move lanes between registers or positions (SFPSHFT2, Blackhole ISA)."""

    reads = (
        lreg("lreg_src_c").when("1 < instr_mod1 < 6")
        | lreg("imm12_math & 15").when("instr_mod1 > 4")
        | lreg(1, 3).when("instr_mod1 < 3")
        | lreg(0).when("instr_mod1 == 1")
        | LANES
    )
    writes = lreg("lreg_dest").unless("instr_mod1 < 3") | lreg(0, 4).when("instr_mod1 < 3")

    instr_mod1 = sfpu.SourceC.instr_mod1.meaning("""
    0: LReg[0..2] = LReg[1..3], LReg[3] = 0
    1: LReg[0..2] = LReg[1..3], LReg[3] = LReg[0] of the lane eight further on
    2: LReg[0..2] = LReg[1..3], LReg[3] = LReg[lreg_src_c] as in mode 3
    3: one lane up, around within eight
    4: one lane up within eight, 0 into the first
    5: LReg[imm12_math] shifted by LReg[lreg_src_c]
    6: LReg[imm12_math & 15] shifted by imm12_math""")
    imm12_math = bits(23, 12, number("modes 5 and 6: LReg, distance"))

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.instr_mod1 > 2 or lanes.target(s, f.lreg_dest) >= lanes.TEMPLATES:
            status = lanes.claim(s, t, f.lreg_dest)
            if status != lanes.GO:
                return status
        if f.instr_mod1 > 6:
            return rules.refuse(s, lanes.MODE_UNDEFINED, mode=f.instr_mod1)
        if f.instr_mod1 == 5 and f.imm12_math > 15:
            return rules.refuse(s, _SHIFT_SOURCE, immediate=f.imm12_math)
        if f.instr_mod1 < 5 and f.imm12_math:
            return rules.refuse(s, lanes.IMMEDIATE, immediate=f.imm12_math, mode=f.instr_mod1)
        if f.instr_mod1 < 3:
            # LReg[0] to LReg[2] = LReg[1] to LReg[3]; LReg[3] = by mode.
            last = s.lane_tmp[lanes.VALUE]
            if f.instr_mod1 == 2:
                _rotate(s, f.lreg_src_c, True)
            else:
                first = s.lreg[0]
                for lane in range(lanes.LANES):
                    taken = f.instr_mod1 == 1 and lane < lanes.LANES - 8
                    last[lane] = first[lane + 8] if taken else _ZERO
            for register in range(1, 4):
                _save(s, np.int64(register), _FIRST + register)
            _enabled_flags(s)
            for register in range(3):
                lanes.write_where(s, np.int64(register), _FIRST + 1 + register)
            lanes.write_where(s, np.int64(3), lanes.VALUE)
            return rules.DONE
        if f.instr_mod1 == 5:
            shift(s, f.imm12_math & 15, s.lreg[f.lreg_src_c & 15], 0)
        elif f.instr_mod1 == 6:
            # SFPSHFT2 mode 6; the low bits of the immediate name the source too, unless scheduled.
            amounts = s.lane_tmp[lanes.FLAG]
            amounts[:] = _U(signed12(f.imm12_math) & 0xFFFFFFFF)
            shift(s, f.lreg_src_c if s.macro_dest[0] else f.imm12_math & 15, amounts, 0)
        else:
            _rotate(s, f.lreg_src_c, f.instr_mod1 == 3)
        return lanes.write(s, f.lreg_dest)

    def moves(s: Any, t: Any, f: Any) -> Any:
        c, mod = unspecified.of(s, f.lreg_src_c), f.instr_mod1
        if mod < 3:
            last = (unspecified.of(s, 0) >> 8) & _FIRST_THREE_ROWS if mod == 1 else np.int64(0)
            last = _rotated(c, True) if mod == 2 else last
            old = unspecified.of(s, 1), unspecified.of(s, 2), unspecified.of(s, 3)
            for reg in range(3):
                lanes.mark(s, np.int64(reg), old[reg])
            lanes.mark(s, np.int64(3), last)
            return rules.DONE
        if mod < 5:
            c = _rotated(c, mod == 3)
        elif mod == 5:
            c |= unspecified.of(s, f.imm12_math & 15)
        elif s.macro_dest[0] == 0:
            c = unspecified.of(s, f.imm12_math & 15)
        lanes.mark(s, lanes.target(s, f.lreg_dest), c)
        return rules.DONE


class SFPNOP(Instruction, opcode=0x8F, unit="vector", facts=sfpu.Sfpu(sfpu.LOAD, sfpu.Form.NONE)):
    """Occupy the vector unit for one slot (SFPNOP, Blackhole ISA)."""

    def execute(s: Any, t: Any, f: Any) -> Any:
        return rules.DONE
