"""Vector unit (SFPU): integer and bit operations."""

from typing import Any

import numpy as np

from bhemu.bits import choice
from bhemu.jit.subset import njit
from bhemu.tensix import lanes
from bhemu.tensix.insn import Instruction, bits
from bhemu.tensix.rules import DONE, NCB, UNSUPPORTED, error, refuse, undefined
from bhemu.tensix.spaces import CC, LANES, lreg
from bhemu.tensix.units.vector import sfpu

_U, _I = np.uint32, np.int32
_ZERO, _ONE = _U(0), _U(1)
_SIGN = _U(0x80000000)

_SHIFT_MODE = error("VECTOR-SHIFT-MODE", NCB, "SFPSHFT mode {mode}: only 0-3 (LReg[lreg_dest]) and 5, 7 (LReg[lreg_c] by the immediate) exist", "silicon ignores bit 3, and bit 2 without bit 0")  # fmt: skip
_NO_REGISTER = error("VECTOR-BITS-REGISTER", UNSUPPORTED, "imm12_math is {immediate}, which mode {mode} does not read", "set instr_mod1 to 1 to name the register in imm12_math, or leave it 0")  # fmt: skip


@njit(inline="always")
def _wrap(x: Any) -> Any:
    """Low 32 bits of an int64."""
    return _U(x & 0xFFFFFFFF)


@njit
def signed12(imm: Any) -> Any:
    """A 12-bit immediate as a signed integer."""
    return imm - ((imm & 0x800) << 1)


class SFPIADD(sfpu.SourceAndImmediate, opcode=0x79, facts=sfpu.NOTICES_VC):
    """Integer addition and subtraction (SFPIADD, Blackhole ISA)."""

    reads = (
        lreg("lreg_c")
        | lreg("lreg_dest").unless("instr_mod1 & 1")
        | CC.when("instr_mod1 > 11")
        | LANES
    )
    writes = lreg("lreg_dest") | CC.unless("instr_mod1 & 12 == 4")

    instr_mod1 = sfpu.SourceAndImmediate.instr_mod1.meaning("""
        [1:0] 0: LReg[lreg_c] + LReg[lreg_dest]
        [1:0] 1, 3: LReg[lreg_c] + imm12_math
        [1:0] 2: LReg[lreg_c] - LReg[lreg_dest]
        [3:2] 0: flags where the result is negative
        [3:2] 1: the flags stay
        [3:2] 2: flags where the result is not negative
        [3:2] 3: the flags are complemented""")

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = lanes.claim(s, t, f.lreg_dest)
        if status != lanes.GO:
            return status
        # Scratch value = c plus or minus a second operand, scratch flag = its sign test.
        x, y, mod = s.lreg[f.lreg_c & 15], s.lreg[f.lreg_dest & 15], f.instr_mod1
        out, flag = s.lane_tmp[lanes.VALUE], s.lane_tmp[lanes.FLAG]
        if mod & 1:
            second = signed12(f.imm12_math)
            for lane in range(lanes.LANES):
                out[lane] = _wrap(np.int64(x[lane]) + second)
        elif mod & 2:
            for lane in range(lanes.LANES):
                out[lane] = _wrap(np.int64(x[lane]) - np.int64(y[lane]))
        else:
            for lane in range(lanes.LANES):
                out[lane] = _wrap(np.int64(x[lane]) + np.int64(y[lane]))
        positive = _ONE if mod & 8 else _ZERO  # flag when the sign bit is clear
        for lane in range(lanes.LANES):
            flag[lane] = _U(out[lane] >> _U(31)) ^ positive
        lanes.write(s, f.lreg_dest)
        if f.instr_mod1 >= 12:
            lanes.complement_flags(s)
        if f.instr_mod1 & 8 or f.instr_mod1 & 4 == 0:
            lanes.write_result_flags(s, f.lreg_dest)
        return DONE


@njit
def shift(s: Any, source: Any, by: Any, arithmetic: Any) -> None:
    """Scratch value = LReg[source] shifted by the signed amounts `by`, (32,) uint32, modulo 32.

    Negative amounts shift right, with copies of the sign when `arithmetic` is not 0.
    """
    x, out = s.lreg[source & 15], s.lane_tmp[lanes.VALUE]
    keep = _SIGN if arithmetic else _ZERO
    for lane in range(lanes.LANES):
        left = _U(by[lane] & _U(31))
        right = _U(_U(_U(32) - left) & _U(31))
        fill = _U(_I(x[lane] & keep) >> _I(right))  # copies of the sign above the shifted bits
        down = _U(_U(x[lane] >> right) | fill)
        out[lane] = _U(x[lane] << left) if _U(by[lane] & _SIGN) == _ZERO else down


class SFPSHFT(sfpu.SourceAndImmediate, opcode=0x7A, facts=sfpu.NOTICES_VC):
    """Shift lanes by a register or immediate (SFPSHFT, Blackhole ISA)."""

    reads = (
        lreg("lreg_c").unless("instr_mod1 & 5 == 1")
        | lreg("lreg_dest").unless("instr_mod1 & 5 == 5")
        | LANES
    )
    writes = lreg("lreg_dest")

    instr_mod1 = sfpu.SourceAndImmediate.instr_mod1.meaning("""left; by a negative distance right
        0: LReg[lreg_dest] by LReg[lreg_c]
        1: LReg[lreg_dest] by imm12_math
        2: LReg[lreg_dest] by LReg[lreg_c], arithmetic
        3: LReg[lreg_dest] by imm12_math, arithmetic
        5: LReg[lreg_c] by imm12_math
        7: LReg[lreg_c] by imm12_math, arithmetic""")

    def execute(s: Any, t: Any, f: Any) -> Any:
        instr_mod1 = f.instr_mod1
        status = lanes.claim(s, t, f.lreg_dest)
        if status != lanes.GO:
            return status
        if instr_mod1 > 3 and instr_mod1 != 5 and instr_mod1 != 7:
            status = undefined(s, _SHIFT_MODE, mode=instr_mod1)
            if status:
                return status
            instr_mod1 &= 7
        if instr_mod1 & 1 == 0 and f.imm12_math:
            return refuse(s, lanes.IMMEDIATE, immediate=f.imm12_math, mode=instr_mod1)
        source = f.lreg_c if instr_mod1 & 5 == 5 else f.lreg_dest
        amounts = s.lreg[f.lreg_c & 15]
        if instr_mod1 & 1:
            amounts, same = s.lane_tmp[lanes.FLAG], _wrap(signed12(f.imm12_math))
            for lane in range(lanes.LANES):
                amounts[lane] = same
        shift(s, source, amounts, instr_mod1 & 2)
        lanes.write(s, f.lreg_dest)
        return DONE


@njit
def _combine(s: Any, t: Any, f: Any, both: Any) -> Any:
    """SFPAND (`both`) and SFPOR; mode 1 takes one operand from LReg[imm12_math]."""
    status = lanes.claim_mode(s, t, f, 0, 14)
    if status != lanes.GO:
        return status
    if f.instr_mod1 == 0 and f.imm12_math:
        return refuse(s, _NO_REGISTER, immediate=f.imm12_math, mode=f.instr_mod1)
    other = f.imm12_math if f.instr_mod1 else f.lreg_dest
    x, y, out = s.lreg[other & 15], s.lreg[f.lreg_c & 15], s.lane_tmp[lanes.VALUE]
    for lane in range(lanes.LANES):
        out[lane] = _U(x[lane] & y[lane]) if both else _U(x[lane] | y[lane])
    lanes.write(s, f.lreg_dest)
    return DONE


_OTHER = choice("with LReg[lreg_dest]", "with LReg[imm12_math]")


class SFPAND(sfpu.TwoSources, opcode=0x7E, facts=sfpu.LOGIC):
    """Bitwise and (SFPAND, Blackhole ISA)."""

    instr_mod1 = sfpu.TwoSources.instr_mod1.meaning(_OTHER)

    def execute(s: Any, t: Any, f: Any) -> Any:
        return _combine(s, t, f, True)


class SFPOR(sfpu.TwoSources, opcode=0x7F, facts=sfpu.LOGIC):
    """Bitwise or (SFPOR, Blackhole ISA)."""

    instr_mod1 = sfpu.TwoSources.instr_mod1.meaning(_OTHER)

    def execute(s: Any, t: Any, f: Any) -> Any:
        return _combine(s, t, f, False)


class SFPNOT(Instruction, opcode=0x80, unit="vector", facts=sfpu.NOTICES_VC, macro=sfpu.NO_MODE):
    """Bitwise complement (SFPNOT, Blackhole ISA)."""

    reads = lreg("lreg_c") | LANES
    writes = lreg("lreg_dest")

    lreg_dest = bits(7, 4, sfpu.LREG)
    lreg_c = bits(11, 8, sfpu.LREG)

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = lanes.claim(s, t, f.lreg_dest)
        if status != lanes.GO:
            return status
        x, out = s.lreg[f.lreg_c & 15], s.lane_tmp[lanes.VALUE]
        for lane in range(lanes.LANES):
            out[lane] = _U(~x[lane])
        lanes.write(s, f.lreg_dest)
        return DONE


class SFPXOR(Instruction, opcode=0x8D, unit="vector", facts=sfpu.NOTICES_VD_VC, macro=sfpu.NO_MODE):
    """Bitwise exclusive-or (SFPXOR, Blackhole ISA)."""

    reads = lreg("lreg_c") | lreg("lreg_dest") | LANES
    writes = lreg("lreg_dest")

    lreg_dest = bits(7, 4, sfpu.LREG)
    lreg_c = bits(11, 8, sfpu.LREG)

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = lanes.claim(s, t, f.lreg_dest)
        if status != lanes.GO:
            return status
        x, y, out = s.lreg[f.lreg_dest & 15], s.lreg[f.lreg_c & 15], s.lane_tmp[lanes.VALUE]
        for lane in range(lanes.LANES):
            out[lane] = _U(x[lane] ^ y[lane])
        lanes.write(s, f.lreg_dest)
        return DONE


class SFPLZ(sfpu.OneSource, opcode=0x81, facts=sfpu.NOTICES_VC, macro=sfpu.NO_IMMEDIATE):
    """Count leading zeros (SFPLZ, Blackhole ISA)."""

    reads = lreg("lreg_c") | CC.when("instr_mod1 & 10 == 8") | LANES
    writes = lreg("lreg_dest") | CC.when("instr_mod1 & 10")

    instr_mod1 = sfpu.OneSource.instr_mod1.meaning(
        sfpu.with_flags(
            {0: "of all 32 bits", 4: "of the bits below the sign"}, "a bit is set", "none is set"
        )
    )

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = lanes.claim_mode(s, t, f, 1, 0)
        if status != lanes.GO:
            return status
        x, out, flag = s.lreg[f.lreg_c & 15], s.lane_tmp[lanes.VALUE], s.lane_tmp[lanes.FLAG]
        keep, zero = _U(0x7FFFFFFF if f.instr_mod1 & 4 else 0xFFFFFFFF), _U(f.instr_mod1 >> 3)
        for lane in range(lanes.LANES):
            value = _U(x[lane] & keep)
            out[lane] = lanes.leading_zeros(value)
            flag[lane] = _U(_ONE if value != _ZERO else _ZERO) ^ zero
        if f.instr_mod1 & 2 == 0:
            lanes.complement_flags(s)
        lanes.write(s, f.lreg_dest)
        if f.instr_mod1 & 10:
            lanes.write_result_flags(s, f.lreg_dest)
        return DONE


class SFPABS(sfpu.OneSource, opcode=0x7D, facts=sfpu.NOTICES_VC, macro=sfpu.NO_IMMEDIATE):
    """Absolute value (SFPABS, Blackhole ISA)."""

    instr_mod1 = sfpu.OneSource.instr_mod1.meaning(choice("of an integer", "of a float"))

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = lanes.claim_mode(s, t, f, 14, 0)
        if status != lanes.GO:
            return status
        x, out = s.lreg[f.lreg_c & 15], s.lane_tmp[lanes.VALUE]
        if f.instr_mod1:  # float: a negative NaN stays as it is
            for lane in range(lanes.LANES):
                out[lane] = _U(x[lane] & ~_SIGN) if x[lane] <= _U(0xFF800000) else x[lane]
        else:
            for lane in range(lanes.LANES):
                out[lane] = _wrap(-np.int64(x[lane])) if x[lane] >= _SIGN else x[lane]
        lanes.write(s, f.lreg_dest)
        return DONE
