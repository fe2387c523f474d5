"""Vector unit (SFPU): floating-point arithmetic."""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.operand import flags, number
from bhemu.tensix import lanes
from bhemu.tensix.fma import ORDINARY, fma, fma_within
from bhemu.tensix.insn import Instruction, bits
from bhemu.tensix.quirks import refuse
from bhemu.tensix.status import DONE, NCB, error
from bhemu.tensix.units.vector import doubts, indirect, sfpu
from bhemu.tensix.units.vector.fields import Target, ThreeSources
from bhemu.tensix.units.vector.sfpu import VA, VD

_U = np.uint32
_SIGN = 0x80000000
_LREG_ONE, LREG_ZERO = 10, 9
_FACTOR = indirect.FACTOR

_NO_ONE = error(
    "VECTOR-ADD-ONE",
    NCB,
    "SFPADD multiplies LReg[{a}] by LReg[{b}]: one factor must be LReg[10], the constant 1.0",
    "name LReg[10] as lreg_src_a or lreg_src_b, or use SFPMAD",
)
_NO_ZERO = error(
    "VECTOR-MUL-ZERO",
    NCB,
    "SFPMUL adds LReg[{c}]: the addend must be LReg[9], the constant 0.0",
    "name LReg[9] as lreg_src_c, or use SFPMAD",
)


@njit
def fma_rows(s: Any, x: Any, y: Any, z: Any, flip_x: Any, flip_z: Any) -> None:
    """Scratch value = x * y + z, rows of (32,) uint32; the flips are xored into x and z."""
    out = s.lane_tmp[lanes.VALUE]
    most, most_sum = _U(0), _U(0)
    for lane in range(lanes.LANES):
        value, above, sum_above = fma_within(_U(x[lane] ^ flip_x), y[lane], _U(z[lane] ^ flip_z))
        out[lane] = value
        most, most_sum = max(most, above), max(most_sum, sum_above)
    if most > _U(ORDINARY + _U(1)) or most_sum > ORDINARY:
        for lane in range(lanes.LANES):
            out[lane] = fma(_U(x[lane] ^ flip_x), y[lane], _U(z[lane] ^ flip_z))


_NEGATED_OR_INDIRECT = flags(
    *("A negated", "C negated", "LReg[7] names A", "LReg[7] names the destination")
)


@njit
def _flip(mod: Any, bit: Any) -> Any:
    return _U(_SIGN) if (mod >> bit) & 1 else _U(0)


@njit
def _mad(s: Any, t: Any, f: Any) -> Any:
    mod, dest = f.instr_mod1, f.lreg_dest
    status = lanes.claim(s, t, dest)
    if status != lanes.GO:
        return status
    if mod > 3:
        return _mad_indirect(s, f)
    a, b, c = s.lreg[f.lreg_src_a & 15], s.lreg[f.lreg_src_b & 15], s.lreg[f.lreg_src_c & 15]
    fma_rows(s, a, b, c, _flip(mod, 0), _flip(mod, 1))
    lanes.write(s, dest)
    return DONE


@njit
def _mad_indirect(s: Any, f: Any) -> Any:
    """As `_mad` with mod bit 2 (LReg[7] names the first factor) or 3 (it names the destination)."""
    mod = f.instr_mod1
    status = indirect.refused(s)
    if status != DONE:
        return status
    if mod & VA:
        indirect.source(s)
    factor = s.lane_tmp[_FACTOR] if mod & VA else s.lreg[f.lreg_src_a & 15]
    b, c = s.lreg[f.lreg_src_b & 15], s.lreg[f.lreg_src_c & 15]
    fma_rows(s, factor, b, c, _flip(mod, 0), _flip(mod, 1))
    indirect.write(s, mod, f.lreg_dest)
    return DONE


class SFPMAD(ThreeSources, Instruction, opcode=0x84, unit="vector", facts=sfpu.FACTORS):
    """Multiply and add (SFPMAD, Blackhole ISA)."""

    instr_mod1 = ThreeSources.instr_mod1.meaning(_NEGATED_OR_INDIRECT)

    def execute(s: Any, t: Any, f: Any) -> Any:
        return _mad(s, t, f)

    def doubts(s: Any, t: Any, f: Any) -> Any:
        return doubts.factors(s, f)


class SFPADD(ThreeSources, Instruction, opcode=0x85, unit="vector", facts=sfpu.FACTORS):
    """Add: SFPMAD, in all its modes, with one factor 1.0 (SFPADD, Blackhole ISA)."""

    instr_mod1 = ThreeSources.instr_mod1.meaning(_NEGATED_OR_INDIRECT)

    def execute(s: Any, t: Any, f: Any) -> Any:
        named = f.lreg_src_a == _LREG_ONE and f.instr_mod1 & VA == 0
        if f.lreg_dest < lanes.TEMPLATES and not named and f.lreg_src_b != _LREG_ONE:
            return refuse(s, _NO_ONE, a=f.lreg_src_a, b=f.lreg_src_b)
        return _mad(s, t, f)

    def doubts(s: Any, t: Any, f: Any) -> Any:
        return doubts.factors(s, f)


class SFPMUL(ThreeSources, Instruction, opcode=0x86, unit="vector", facts=sfpu.FACTORS):
    """Multiply: SFPMAD, in all its modes, with addend 0.0 (SFPMUL, Blackhole ISA)."""

    instr_mod1 = ThreeSources.instr_mod1.meaning(_NEGATED_OR_INDIRECT)

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.lreg_dest < lanes.TEMPLATES and f.lreg_src_c != LREG_ZERO:
            return refuse(s, _NO_ZERO, c=f.lreg_src_c)
        return _mad(s, t, f)

    def doubts(s: Any, t: Any, f: Any) -> Any:
        return doubts.factors(s, f)


@njit
def _spread(s: Any, imm: Any) -> None:
    """Scratch `_FACTOR` = the bf16 immediate in every lane."""
    out, value = s.lane_tmp[_FACTOR], _U(imm << 16)
    for lane in range(lanes.LANES):
        out[lane] = value


_WITH_IMMEDIATE = 10  # mode bits of SFPADDI and SFPMULI: NEGATE_VC, INDIRECT_VD


class _WithImmediate(Target):
    """An operand, which is the destination as well, and a bf16 immediate."""

    instr_mod1 = Target.instr_mod1.meaning(
        flags("", "the register negated", "", "LReg[7] names the destination")
    )

    imm16_math = bits(23, 8, number("bf16 immediate"))


@njit
def _immediate(s: Any, t: Any, f: Any) -> Any:
    """The immediate of SFPADDI and SFPMULI as scratch `_FACTOR`; GO or the status."""
    status = lanes.claim_mode(s, t, f, 0, ~_WITH_IMMEDIATE)
    if status != lanes.GO:
        return status
    if f.instr_mod1 & VD:
        refused = indirect.refused(s)
        if refused != DONE:
            return refused
    _spread(s, f.imm16_math)
    return lanes.GO


class SFPADDI(_WithImmediate, Instruction, opcode=0x75, unit="vector", facts=sfpu.IMMEDIATE):
    """Add a bf16 immediate (SFPADDI, Blackhole ISA)."""

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = _immediate(s, t, f)
        if status != lanes.GO:
            return status
        one, flip = s.lreg[_LREG_ONE], _flip(f.instr_mod1, 1)
        fma_rows(s, s.lane_tmp[_FACTOR], one, s.lreg[f.lreg_dest & 15], _U(0), flip)
        indirect.write(s, f.instr_mod1, f.lreg_dest)
        return DONE

    def doubts(s: Any, t: Any, f: Any) -> Any:
        return doubts.indirect(s, f.instr_mod1, f.lreg_dest, doubts.of(s, f.lreg_dest))


class SFPMULI(_WithImmediate, Instruction, opcode=0x74, unit="vector", facts=sfpu.IMMEDIATE):
    """Multiply by a bf16 immediate (SFPMULI, Blackhole ISA)."""

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = _immediate(s, t, f)
        if status != lanes.GO:
            return status
        zero, flip = s.lreg[LREG_ZERO], _flip(f.instr_mod1, 1)
        fma_rows(s, s.lreg[f.lreg_dest & 15], s.lane_tmp[_FACTOR], zero, flip, _U(0))
        indirect.write(s, f.instr_mod1, f.lreg_dest)
        return DONE

    def doubts(s: Any, t: Any, f: Any) -> Any:
        return doubts.indirect(s, f.instr_mod1, f.lreg_dest, doubts.of(s, f.lreg_dest))
