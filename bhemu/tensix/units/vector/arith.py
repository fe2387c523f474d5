"""Vector unit (SFPU): floating-point arithmetic."""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import lanes
from bhemu.tensix.fma import fma
from bhemu.tensix.insn import Instruction, bits
from bhemu.tensix.quirks import refuse
from bhemu.tensix.status import DONE, NCB, error
from bhemu.tensix.units.vector import indirect

_U = np.uint32
_SIGN = 0x80000000
_LREG_ONE, _LREG_ZERO = 10, 9
_FACTOR = indirect.FACTOR

_NO_ONE = error(
    "VECTOR-ADD-ONE",
    NCB,
    "SFPADD multiplies LReg[{0}] by LReg[{1}]: one factor must be LReg[10], the constant 1.0",
    "name LReg[10] as lreg_src_a or lreg_src_b, or use SFPMAD",
)
_NO_ZERO = error(
    "VECTOR-MUL-ZERO",
    NCB,
    "SFPMUL adds LReg[{0}]: the addend must be LReg[9], the constant 0.0",
    "name LReg[9] as lreg_src_c, or use SFPMAD",
)


@njit
def fma_rows(s: Any, x: Any, y: Any, z: Any, flip_x: Any, flip_z: Any) -> None:
    """Scratch value = x * y + z, rows of (32,) uint32; the flips are xored into x and z."""
    out = s.lane_tmp[lanes.VALUE]
    for lane in range(lanes.LANES):
        out[lane] = fma(_U(x[lane] ^ flip_x), y[lane], _U(z[lane] ^ flip_z))


@njit
def _flip(mod: Any, bit: Any) -> Any:
    return _U(_SIGN) if (mod >> bit) & 1 else _U(0)


@njit
def _mad(s: Any, t: Any, mod: Any, dest: Any, c: Any, b: Any, a: Any) -> Any:
    status = lanes.claim(s, t, dest)
    if status != lanes.GO:
        return status
    if mod > 3:
        return _mad_indirect(s, mod, dest, c, b, a)
    fma_rows(s, s.lreg[a & 15], s.lreg[b & 15], s.lreg[c & 15], _flip(mod, 0), _flip(mod, 1))
    lanes.write(s, dest)
    return DONE


@njit
def _mad_indirect(s: Any, mod: Any, dest: Any, c: Any, b: Any, a: Any) -> Any:
    """As `_mad` with mod bit 2 (LReg[7] names the first factor) or 3 (it names the destination)."""
    status = indirect.refused(s)
    if status != DONE:
        return status
    if mod & indirect.VA:
        indirect.source(s)
    factor = s.lane_tmp[_FACTOR] if mod & indirect.VA else s.lreg[a & 15]
    fma_rows(s, factor, s.lreg[b & 15], s.lreg[c & 15], _flip(mod, 0), _flip(mod, 1))
    indirect.write(s, mod, dest)
    return DONE


class SFPMAD(Instruction, opcode=0x84, unit="vector", stall="B8"):
    """Multiply and add (SFPMAD, Blackhole ISA).

    Mod bit 0 negates A, bit 1 negates C; LReg[7] names A with bit 2, the destination with bit 3.
    """

    instr_mod1 = bits(3, 0, mode=True)
    lreg_dest = bits(7, 4)
    lreg_src_c = bits(11, 8)
    lreg_src_b = bits(15, 12)
    lreg_src_a = bits(19, 16)

    def execute(
        s: Any,
        t: Any,
        instr_mod1: Any,
        lreg_dest: Any,
        lreg_src_c: Any,
        lreg_src_b: Any,
        lreg_src_a: Any,
    ) -> Any:
        return _mad(s, t, instr_mod1, lreg_dest, lreg_src_c, lreg_src_b, lreg_src_a)


class SFPADD(Instruction, opcode=0x85, unit="vector", stall="B8"):
    """Add: SFPMAD, in all its modes, with one factor 1.0 (SFPADD, Blackhole ISA)."""

    instr_mod1 = bits(3, 0, mode=True)
    lreg_dest = bits(7, 4)
    lreg_src_c = bits(11, 8)
    lreg_src_b = bits(15, 12)
    lreg_src_a = bits(19, 16)

    def execute(
        s: Any,
        t: Any,
        instr_mod1: Any,
        lreg_dest: Any,
        lreg_src_c: Any,
        lreg_src_b: Any,
        lreg_src_a: Any,
    ) -> Any:
        named = lreg_src_a == _LREG_ONE and instr_mod1 & indirect.VA == 0
        if lreg_dest < lanes.TEMPLATES and not named and lreg_src_b != _LREG_ONE:
            return refuse(s, _NO_ONE, lreg_src_a, lreg_src_b)
        return _mad(s, t, instr_mod1, lreg_dest, lreg_src_c, lreg_src_b, lreg_src_a)


class SFPMUL(Instruction, opcode=0x86, unit="vector", stall="B8"):
    """Multiply: SFPMAD, in all its modes, with addend 0.0 (SFPMUL, Blackhole ISA)."""

    instr_mod1 = bits(3, 0, mode=True)
    lreg_dest = bits(7, 4)
    lreg_src_c = bits(11, 8)
    lreg_src_b = bits(15, 12)
    lreg_src_a = bits(19, 16)

    def execute(
        s: Any,
        t: Any,
        instr_mod1: Any,
        lreg_dest: Any,
        lreg_src_c: Any,
        lreg_src_b: Any,
        lreg_src_a: Any,
    ) -> Any:
        if lreg_dest < lanes.TEMPLATES and lreg_src_c != _LREG_ZERO:
            return refuse(s, _NO_ZERO, lreg_src_c)
        return _mad(s, t, instr_mod1, lreg_dest, lreg_src_c, lreg_src_b, lreg_src_a)


@njit
def _spread(s: Any, imm: Any) -> None:
    """Scratch `_FACTOR` = the bf16 immediate in every lane."""
    out, value = s.lane_tmp[_FACTOR], _U(imm << 16)
    for lane in range(lanes.LANES):
        out[lane] = value


_WITH_IMMEDIATE = 10  # mode bits of SFPADDI and SFPMULI: NEGATE_VC, INDIRECT_VD


@njit
def _immediate_refused(s: Any, mod: Any) -> Any:
    """DONE, or the error of a mode of SFPADDI and SFPMULI other than 0."""
    if mod & ~_WITH_IMMEDIATE:
        return refuse(s, lanes.MODE_UNNAMED, mod)
    return indirect.refused(s) if mod & indirect.VD else DONE


class SFPADDI(Instruction, opcode=0x75, unit="vector", stall="B8"):
    """Add a bf16 immediate (SFPADDI, Blackhole ISA).

    Mod bit 1 negates the register, LReg[7] names the destination with bit 3.
    """

    instr_mod1 = bits(3, 0, mode=True)
    lreg_dest = bits(7, 4)
    imm16_math = bits(23, 8)

    def execute(s: Any, t: Any, instr_mod1: Any, lreg_dest: Any, imm16_math: Any) -> Any:
        status = lanes.claim(s, t, lreg_dest)
        if status != lanes.GO:
            return status
        status = _immediate_refused(s, instr_mod1)
        if status != DONE:
            return status
        _spread(s, imm16_math)
        one, flip = s.lreg[_LREG_ONE], _flip(instr_mod1, 1)
        fma_rows(s, s.lane_tmp[_FACTOR], one, s.lreg[lreg_dest & 15], _U(0), flip)
        indirect.write(s, instr_mod1, lreg_dest)
        return DONE


class SFPMULI(Instruction, opcode=0x74, unit="vector", stall="B8"):
    """Multiply by a bf16 immediate (SFPMULI, Blackhole ISA); modes as SFPADDI."""

    instr_mod1 = bits(3, 0, mode=True)
    lreg_dest = bits(7, 4)
    imm16_math = bits(23, 8)

    def execute(s: Any, t: Any, instr_mod1: Any, lreg_dest: Any, imm16_math: Any) -> Any:
        status = lanes.claim(s, t, lreg_dest)
        if status != lanes.GO:
            return status
        status = _immediate_refused(s, instr_mod1)
        if status != DONE:
            return status
        _spread(s, imm16_math)
        zero, flip = s.lreg[_LREG_ZERO], _flip(instr_mod1, 1)
        fma_rows(s, s.lreg[lreg_dest & 15], s.lane_tmp[_FACTOR], zero, flip, _U(0))
        indirect.write(s, instr_mod1, lreg_dest)
        return DONE
