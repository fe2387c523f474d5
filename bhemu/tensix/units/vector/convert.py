"""Vector unit (SFPU): exponent, mantissa and sign."""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import lanes
from bhemu.tensix.insn import Instruction, bits
from bhemu.tensix.quirks import refuse
from bhemu.tensix.status import DONE, NCB, error

_U, _I = np.uint32, np.int32
_ZERO, _ONE = _U(0), _U(1)
_SIGN = _U(0x80000000)
_EXPONENT = _U(0x7F800000)
_FRACTION = _U(0x7FFFFF)
_HIDDEN = _U(0x800000)
_BIAS = 127

_SCALE = error(
    "VECTOR-DIVP2-IMMEDIATE",
    NCB,
    "SFPDIVP2 with immediate {0:#x}: only -128 to 127 (0xf80 to 0xfff, 0 to 0x7f) are defined",
)


@njit
def _merge(s: Any, c: Any, keep: Any, other: Any, take: Any) -> None:
    """Scratch value = the bits `keep` of LReg[c] and the bits `take` of LReg[other]."""
    x, y, out = s.lreg[c & 15], s.lreg[other & 15], s.lane_tmp[lanes.VALUE]
    mask_x, mask_y = _U(keep), _U(take)
    for lane in range(lanes.LANES):
        out[lane] = _U(_U(x[lane] & mask_x) | _U(y[lane] & mask_y))


@njit
def _insert(s: Any, c: Any, keep: Any, value: Any) -> None:
    """Scratch value = the bits `keep` of LReg[c] and the same `value` in every lane."""
    x, out = s.lreg[c & 15], s.lane_tmp[lanes.VALUE]
    mask, inserted = _U(keep), _U(value)
    for lane in range(lanes.LANES):
        out[lane] = _U(_U(x[lane] & mask) | inserted)


class SFPDIVP2(Instruction, opcode=0x76, unit="vector", stall="B8"):
    """Add to or replace the exponent (SFPDIVP2, Blackhole ISA)."""

    instr_mod1 = bits(3, 0, mode=True)
    lreg_dest = bits(7, 4)
    lreg_c = bits(11, 8)
    imm12_math = bits(23, 12)

    def execute(
        s: Any, t: Any, instr_mod1: Any, lreg_dest: Any, lreg_c: Any, imm12_math: Any
    ) -> Any:
        status = lanes.claim(s, t, lreg_dest)
        if status != lanes.GO:
            return status
        if instr_mod1 > 1:
            return refuse(s, lanes.MODE_RESERVED, instr_mod1)
        if 0x7F < imm12_math < 0xF80:
            return refuse(s, _SCALE, imm12_math)
        if instr_mod1 == 0:
            _insert(s, lreg_c, 0x807FFFFF, (imm12_math & 0xFF) << 23)
        else:
            x, out = s.lreg[lreg_c & 15], s.lane_tmp[lanes.VALUE]
            add = _U(imm12_math & 0xFF)
            for lane in range(lanes.LANES):
                field = _U(_U(_U(x[lane] >> _U(23)) + add) << _U(23))
                kept = _U(x[lane] & ~_EXPONENT)
                infinite = _U(x[lane] & _EXPONENT) == _EXPONENT
                out[lane] = x[lane] if infinite else _U(kept | _U(field & _EXPONENT))
        lanes.write(s, lreg_dest)
        return DONE


class SFPEXEXP(Instruction, opcode=0x77, unit="vector", stall="B8"):
    """Extract the exponent (SFPEXEXP, Blackhole ISA).

    Mode bit 0 keeps the bias, bit 1 sets the flags from the sign, bit 3 complements them.
    """

    instr_mod1 = bits(3, 0, mode=True)
    lreg_dest = bits(7, 4)
    lreg_c = bits(11, 8)

    def execute(s: Any, t: Any, instr_mod1: Any, lreg_dest: Any, lreg_c: Any) -> Any:
        status = lanes.claim(s, t, lreg_dest)
        if status != lanes.GO:
            return status
        if instr_mod1 & 4:
            return refuse(s, lanes.MODE_RESERVED, instr_mod1)
        x, out, flag = s.lreg[lreg_c & 15], s.lane_tmp[lanes.VALUE], s.lane_tmp[lanes.FLAG]
        bias = _I(0 if instr_mod1 & 1 else _BIAS)
        positive = _U(instr_mod1 >> 3)  # flag when the sign bit is clear
        for lane in range(lanes.LANES):
            value = _U(_I(_I(_U(x[lane] & _EXPONENT) >> _U(23)) - bias))
            out[lane] = value
            flag[lane] = _U(value >> _U(31)) ^ positive
        if instr_mod1 & 2 == 0:
            lanes.complement_flags(s)
        lanes.write(s, lreg_dest)
        if instr_mod1 & 10:
            lanes.write_result_flags(s, lreg_dest)
        return DONE


class SFPEXMAN(Instruction, opcode=0x78, unit="vector", stall="B8"):
    """Extract the mantissa (SFPEXMAN, Blackhole ISA)."""

    instr_mod1 = bits(3, 0, mode=True)
    lreg_dest = bits(7, 4)
    lreg_c = bits(11, 8)

    def execute(s: Any, t: Any, instr_mod1: Any, lreg_dest: Any, lreg_c: Any) -> Any:
        status = lanes.claim(s, t, lreg_dest)
        if status != lanes.GO:
            return status
        if instr_mod1 > 1:
            return refuse(s, lanes.MODE_RESERVED, instr_mod1)
        _insert(s, lreg_c, 0x7FFFFF, 0 if instr_mod1 else 0x800000)
        lanes.write(s, lreg_dest)
        return DONE


class SFPSETEXP(Instruction, opcode=0x82, unit="vector", stall="B8"):
    """Replace the exponent (SFPSETEXP, Blackhole ISA)."""

    instr_mod1 = bits(3, 0, mode=True)
    lreg_dest = bits(7, 4)
    lreg_c = bits(11, 8)
    imm12_math = bits(19, 12)

    def execute(
        s: Any, t: Any, instr_mod1: Any, lreg_dest: Any, lreg_c: Any, imm12_math: Any
    ) -> Any:
        status = lanes.claim(s, t, lreg_dest)
        if status != lanes.GO:
            return status
        if instr_mod1 > 3:
            return refuse(s, lanes.MODE_UNNAMED, instr_mod1)
        if instr_mod1 & 1 == 0 and imm12_math:
            return refuse(s, lanes.IMMEDIATE, imm12_math, instr_mod1)
        if instr_mod1 & 1:  # the immediate, whatever bit 1 says
            _insert(s, lreg_c, 0x807FFFFF, imm12_math << 23)
        elif instr_mod1 == 2:
            _merge(s, lreg_c, 0x807FFFFF, lreg_dest, 0x7F800000)
        else:
            x, y, out = s.lreg[lreg_c & 15], s.lreg[lreg_dest & 15], s.lane_tmp[lanes.VALUE]
            for lane in range(lanes.LANES):
                field = _U(_U(y[lane] << _U(23)) & _EXPONENT)
                out[lane] = _U(_U(x[lane] & ~_EXPONENT) | field)
        lanes.write(s, lreg_dest)
        return DONE


class SFPSETMAN(Instruction, opcode=0x83, unit="vector", stall="B8"):
    """Replace the mantissa (SFPSETMAN, Wormhole ISA; an immediate has no golden)."""

    instr_mod1 = bits(3, 0, mode=True)
    lreg_dest = bits(7, 4)
    lreg_c = bits(11, 8)
    imm12_math = bits(23, 12)

    def execute(
        s: Any, t: Any, instr_mod1: Any, lreg_dest: Any, lreg_c: Any, imm12_math: Any
    ) -> Any:
        status = lanes.claim(s, t, lreg_dest)
        if status != lanes.GO:
            return status
        if instr_mod1 > 1:
            return refuse(s, lanes.MODE_UNNAMED, instr_mod1)
        if instr_mod1 == 0 and imm12_math:
            return refuse(s, lanes.IMMEDIATE, imm12_math, instr_mod1)
        if instr_mod1:
            _insert(s, lreg_c, 0xFF800000, imm12_math << 11)
        else:
            _merge(s, lreg_c, 0xFF800000, lreg_dest, 0x7FFFFF)
        lanes.write(s, lreg_dest)
        return DONE


class SFPSETSGN(Instruction, opcode=0x89, unit="vector", stall="B8"):
    """Replace the sign (SFPSETSGN, Blackhole ISA)."""

    instr_mod1 = bits(3, 0, mode=True)
    lreg_dest = bits(7, 4)
    lreg_c = bits(11, 8)
    imm12_math = bits(12)

    def execute(
        s: Any, t: Any, instr_mod1: Any, lreg_dest: Any, lreg_c: Any, imm12_math: Any
    ) -> Any:
        status = lanes.claim(s, t, lreg_dest)
        if status != lanes.GO:
            return status
        if instr_mod1 > 1:
            return refuse(s, lanes.MODE_RESERVED, instr_mod1)
        if instr_mod1 == 0 and imm12_math:
            return refuse(s, lanes.IMMEDIATE, imm12_math, instr_mod1)
        if instr_mod1:
            _insert(s, lreg_c, 0x7FFFFFFF, imm12_math << 31)
        else:
            _merge(s, lreg_c, 0x7FFFFFFF, lreg_dest, 0x80000000)
        lanes.write(s, lreg_dest)
        return DONE
