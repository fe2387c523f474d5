"""Vector unit (SFPU): exponent, mantissa and sign."""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.operand import choice, number
from bhemu.tensix import lanes
from bhemu.tensix.insn import Instruction, bits
from bhemu.tensix.quirks import refuse
from bhemu.tensix.status import DONE, NCB, error
from bhemu.tensix.units.vector import doubts, sfpu
from bhemu.tensix.units.vector.fields import NO_IMMEDIATE, OneSource, SourceAndImmediate
from bhemu.tensix.units.vector.fp32 import BIAS, EXPONENT

_U, _I = np.uint32, np.int32
_ZERO, _ONE = _U(0), _U(1)

_SCALE = error(
    "VECTOR-DIVP2-IMMEDIATE",
    NCB,
    "SFPDIVP2 with immediate {immediate:#x}: only -128 to 127 (0xf80 to 0xfff, 0 to 0x7f) are "
    "defined",
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


class SFPDIVP2(SourceAndImmediate, Instruction, opcode=0x76, unit="vector", facts=sfpu.READS_VC):
    """Add to or replace the exponent (SFPDIVP2, Blackhole ISA)."""

    instr_mod1 = SourceAndImmediate.instr_mod1.meaning(
        choice({0: "exponent = imm12_math", 1: "exponent + imm12_math"})
    )

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = lanes.claim_mode(s, t, f, 14, 0)
        if status != lanes.GO:
            return status
        if 0x7F < f.imm12_math < 0xF80:
            return refuse(s, _SCALE, immediate=f.imm12_math)
        if f.instr_mod1 == 0:
            _insert(s, f.lreg_c, 0x807FFFFF, (f.imm12_math & 0xFF) << 23)
        else:
            x, out = s.lreg[f.lreg_c & 15], s.lane_tmp[lanes.VALUE]
            add = _U(f.imm12_math & 0xFF)
            for lane in range(lanes.LANES):
                field = _U(_U(_U(x[lane] >> _U(23)) + add) << _U(23))
                kept = _U(x[lane] & ~EXPONENT)
                infinite = _U(x[lane] & EXPONENT) == EXPONENT
                out[lane] = x[lane] if infinite else _U(kept | _U(field & EXPONENT))
        lanes.write(s, f.lreg_dest)
        return DONE

    def doubts(s: Any, t: Any, f: Any) -> Any:
        return doubts.result(s, f.lreg_dest, doubts.of(s, f.lreg_c))


class SFPEXEXP(
    OneSource, Instruction, opcode=0x77, unit="vector", facts=sfpu.READS_VC, macro=NO_IMMEDIATE
):
    """Extract the exponent (SFPEXEXP, Blackhole ISA)."""

    instr_mod1 = OneSource.instr_mod1.meaning(
        choice(
            {
                bias + flag: f"{what}; {then}"
                for bias, what in ((0, "without the bias"), (1, "with the bias"))
                for flag, then in (
                    (0, "the flags stay"),
                    (2, "flags where it is negative"),
                    (8, "the flags are complemented"),
                    (10, "flags where it is not negative"),
                )
            }
        )
    )

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = lanes.claim_mode(s, t, f, 4, 0)
        if status != lanes.GO:
            return status
        x, out, flag = s.lreg[f.lreg_c & 15], s.lane_tmp[lanes.VALUE], s.lane_tmp[lanes.FLAG]
        bias = _I(0 if f.instr_mod1 & 1 else BIAS)
        positive = _U(f.instr_mod1 >> 3)  # flag when the sign bit is clear
        for lane in range(lanes.LANES):
            value = _U(_I(_I(_U(x[lane] & EXPONENT) >> _U(23)) - bias))
            out[lane] = value
            flag[lane] = _U(value >> _U(31)) ^ positive
        if f.instr_mod1 & 2 == 0:
            lanes.complement_flags(s)
        lanes.write(s, f.lreg_dest)
        if f.instr_mod1 & 10:
            lanes.write_result_flags(s, f.lreg_dest)
        return DONE

    def doubts(s: Any, t: Any, f: Any) -> Any:
        mod = f.instr_mod1
        return doubts.result_and_flags(
            s, f.lreg_dest, doubts.of(s, f.lreg_c), mod & 10, mod & 2 == 0
        )


class SFPEXMAN(
    OneSource, Instruction, opcode=0x78, unit="vector", facts=sfpu.READS_VC, macro=NO_IMMEDIATE
):
    """Extract the mantissa (SFPEXMAN, Blackhole ISA)."""

    instr_mod1 = OneSource.instr_mod1.meaning(
        choice({0: "with the hidden bit", 1: "without the hidden bit"})
    )

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = lanes.claim_mode(s, t, f, 14, 0)
        if status != lanes.GO:
            return status
        _insert(s, f.lreg_c, 0x7FFFFF, 0 if f.instr_mod1 else 0x800000)
        lanes.write(s, f.lreg_dest)
        return DONE

    def doubts(s: Any, t: Any, f: Any) -> Any:
        return doubts.result(s, f.lreg_dest, doubts.of(s, f.lreg_c))


class SFPSETEXP(OneSource, Instruction, opcode=0x82, unit="vector", facts=sfpu.READS_VD_VC):
    """Replace the exponent (SFPSETEXP, Blackhole ISA)."""

    instr_mod1 = OneSource.instr_mod1.meaning(
        choice(
            {
                0: "from the low bits of LReg[lreg_dest]",
                2: "from the exponent of LReg[lreg_dest]",
                **dict.fromkeys((1, 3), "imm12_math"),
            }
        )
    )

    imm12_math = bits(19, 12, number("exponent with its bias"))

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = lanes.claim_mode(s, t, f, 0, 12)
        if status != lanes.GO:
            return status
        if f.instr_mod1 & 1 == 0 and f.imm12_math:
            return refuse(s, lanes.IMMEDIATE, immediate=f.imm12_math, mode=f.instr_mod1)
        if f.instr_mod1 & 1:  # the immediate, whatever bit 1 says
            _insert(s, f.lreg_c, 0x807FFFFF, f.imm12_math << 23)
        elif f.instr_mod1 == 2:
            _merge(s, f.lreg_c, 0x807FFFFF, f.lreg_dest, 0x7F800000)
        else:
            x, y, out = s.lreg[f.lreg_c & 15], s.lreg[f.lreg_dest & 15], s.lane_tmp[lanes.VALUE]
            for lane in range(lanes.LANES):
                field = _U(_U(y[lane] << _U(23)) & EXPONENT)
                out[lane] = _U(_U(x[lane] & ~EXPONENT) | field)
        lanes.write(s, f.lreg_dest)
        return DONE

    def doubts(s: Any, t: Any, f: Any) -> Any:
        replaced = np.int64(0) if f.instr_mod1 & 1 else doubts.of(s, f.lreg_dest)
        return doubts.result(s, f.lreg_dest, doubts.of(s, f.lreg_c) | replaced)


@njit
def _replace(s: Any, f: Any, part: Any, immediate: Any) -> Any:
    """SFPSETMAN and SFPSETSGN: the bits `part` from LReg[lreg_dest], in mode 1 from `immediate`."""
    if f.instr_mod1 == 0 and f.imm12_math:
        return refuse(s, lanes.IMMEDIATE, immediate=f.imm12_math, mode=f.instr_mod1)
    if f.instr_mod1:
        _insert(s, f.lreg_c, part ^ 0xFFFFFFFF, immediate)
    else:
        _merge(s, f.lreg_c, part ^ 0xFFFFFFFF, f.lreg_dest, part)
    lanes.write(s, f.lreg_dest)
    return DONE


@njit
def _doubts_of_replacing(s: Any, f: Any) -> Any:
    part = np.int64(0) if f.instr_mod1 else doubts.of(s, f.lreg_dest)
    return doubts.result(s, f.lreg_dest, doubts.of(s, f.lreg_c) | part)


class SFPSETMAN(
    SourceAndImmediate, Instruction, opcode=0x83, unit="vector", facts=sfpu.READS_VD_VC
):
    """Replace the mantissa (SFPSETMAN, Wormhole ISA; an immediate has no golden)."""

    instr_mod1 = SourceAndImmediate.instr_mod1.meaning(
        choice({0: "from the mantissa of LReg[lreg_dest]", 1: "imm12_math, as its high bits"})
    )

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = lanes.claim_mode(s, t, f, 0, 14)
        if status != lanes.GO:
            return status
        return _replace(s, f, 0x7FFFFF, f.imm12_math << 11)

    def doubts(s: Any, t: Any, f: Any) -> Any:
        return _doubts_of_replacing(s, f)


class SFPSETSGN(OneSource, Instruction, opcode=0x89, unit="vector", facts=sfpu.READS_VD_VC):
    """Replace the sign (SFPSETSGN, Blackhole ISA)."""

    instr_mod1 = OneSource.instr_mod1.meaning(
        choice({0: "from the sign of LReg[lreg_dest]", 1: "imm12_math"})
    )

    imm12_math = bits(12, 12, number("sign"))

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = lanes.claim_mode(s, t, f, 14, 0)
        if status != lanes.GO:
            return status
        return _replace(s, f, 0x80000000, f.imm12_math << 31)

    def doubts(s: Any, t: Any, f: Any) -> Any:
        return _doubts_of_replacing(s, f)
