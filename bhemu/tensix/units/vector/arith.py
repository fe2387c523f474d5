"""Vector unit (SFPU): floating-point arithmetic."""

from typing import Any

import numpy as np

from bhemu.tensix import lanes, staging
from bhemu.tensix.fma import fma
from bhemu.tensix.insn import Instruction, bits
from bhemu.tensix.quirks import refuse
from bhemu.tensix.status import DONE, NCB, error
from bhemu.tensix.subset import njit

_U = np.uint32
_SIGN = 0x80000000
_LREG_ONE, _LREG_ZERO = 10, 9
_FACTOR = 2  # scratch row

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

# Leading 7 mantissa bits of 1/x by those of x, taken in the middle of each interval.
_RECIPROCAL = np.array([(65536 * 2 // (257 + 2 * i) - 255) // 2 for i in range(128)], np.uint32)


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
def _indirect_source(s: Any) -> None:
    """Scratch `_FACTOR` = in each lane the LReg that LReg[7] names (SFPMAD_MOD1_INDIRECT_VA)."""
    out, index = s.lane_tmp[_FACTOR], s.lreg[7]
    for lane in range(lanes.LANES):
        out[lane] = s.lreg[np.int64(index[lane] & _U(15)), lane]


@njit
def _indirect_write(s: Any) -> None:
    """Write the scratch value to the LReg that LReg[7] names in each lane, constants excepted."""
    flag, index, named = s.lane_tmp[lanes.FLAG], s.lreg[7], s.lane_tmp[_FACTOR]
    flags, on = s.cc, lanes.unmasked(s)
    for lane in range(lanes.LANES):
        named[lane] = _U(index[lane] & _U(15))
    for reg in range(lanes.WRITABLE):
        any_lane = _U(0)
        for lane in range(lanes.LANES):
            enabled = _U(flags[lane] | on)
            flag[lane] = enabled if named[lane] == _U(reg) else _U(0)
            any_lane |= flag[lane]
        if any_lane != _U(0):
            lanes.write_where(s, np.int64(reg), lanes.VALUE)


@njit
def _mad(s: Any, t: Any, mod: Any, most: Any, dest: Any, c: Any, b: Any, a: Any) -> Any:
    status = lanes.claim(s, t, dest)
    if status != lanes.GO:
        return status
    if mod > most:
        return refuse(s, lanes.MODE_UNSUPPORTED, mod, 0)
    fma_rows(s, s.lreg[a & 15], s.lreg[b & 15], s.lreg[c & 15], _flip(mod, 0), _flip(mod, 1))
    lanes.write(s, dest)
    return DONE


@njit
def _mad_indirect(s: Any, t: Any, mod: Any, dest: Any, c: Any, b: Any, a: Any) -> Any:
    """SFPMAD with mod bit 2 (LReg[7] names the first factor) or 3 (it names the destination)."""
    status = lanes.claim(s, t, dest)
    if status != lanes.GO:
        return status
    if s.lane_config[0] & _U(lanes.ENABLE_DEST_INDEX):
        return refuse(s, lanes.DEST_INDEX, 7, 0)
    if mod & 4:
        _indirect_source(s)
    factor = s.lane_tmp[_FACTOR] if mod & 4 else s.lreg[a & 15]
    fma_rows(s, factor, s.lreg[b & 15], s.lreg[c & 15], _flip(mod, 0), _flip(mod, 1))
    if mod & 8 and lanes.target(s, dest) != staging.BONUS:
        _indirect_write(s)
    else:
        lanes.write(s, dest)
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
        if instr_mod1 > 3:
            return _mad_indirect(s, t, instr_mod1, lreg_dest, lreg_src_c, lreg_src_b, lreg_src_a)
        return _mad(s, t, instr_mod1, 3, lreg_dest, lreg_src_c, lreg_src_b, lreg_src_a)


class SFPADD(Instruction, opcode=0x85, unit="vector", stall="B8"):
    """Add: SFPMAD with one factor 1.0 (SFPADD, Wormhole ISA)."""

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
        if lreg_dest < lanes.TEMPLATES and lreg_src_a != _LREG_ONE and lreg_src_b != _LREG_ONE:
            return refuse(s, _NO_ONE, lreg_src_a, lreg_src_b)
        return _mad(s, t, instr_mod1, 3, lreg_dest, lreg_src_c, lreg_src_b, lreg_src_a)


class SFPMUL(Instruction, opcode=0x86, unit="vector", stall="B8"):
    """Multiply: SFPMAD with addend 0.0 (SFPMUL, Wormhole ISA); mod bit 0 negates A."""

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
            return refuse(s, _NO_ZERO, lreg_src_c, 0)
        return _mad(s, t, instr_mod1, 1, lreg_dest, lreg_src_c, lreg_src_b, lreg_src_a)


@njit
def _spread(s: Any, imm: Any) -> None:
    """Scratch `_FACTOR` = the bf16 immediate in every lane."""
    out, value = s.lane_tmp[_FACTOR], _U(imm << 16)
    for lane in range(lanes.LANES):
        out[lane] = value


class SFPADDI(Instruction, opcode=0x75, unit="vector", stall="B8"):
    """Add a bf16 immediate (SFPADDI, Wormhole ISA)."""

    instr_mod1 = bits(3, 0, mode=True)
    lreg_dest = bits(7, 4)
    imm16_math = bits(23, 8)

    def execute(s: Any, t: Any, instr_mod1: Any, lreg_dest: Any, imm16_math: Any) -> Any:
        status = lanes.claim(s, t, lreg_dest)
        if status != lanes.GO:
            return status
        if instr_mod1:
            return refuse(s, lanes.MODE_UNIMPLEMENTED, instr_mod1, 0)
        _spread(s, imm16_math)
        fma_rows(s, s.lane_tmp[_FACTOR], s.lreg[_LREG_ONE], s.lreg[lreg_dest & 15], _U(0), _U(0))
        lanes.write(s, lreg_dest)
        return DONE


class SFPMULI(Instruction, opcode=0x74, unit="vector", stall="B8"):
    """Multiply by a bf16 immediate (SFPMULI, Wormhole ISA)."""

    instr_mod1 = bits(3, 0, mode=True)
    lreg_dest = bits(7, 4)
    imm16_math = bits(23, 8)

    def execute(s: Any, t: Any, instr_mod1: Any, lreg_dest: Any, imm16_math: Any) -> Any:
        status = lanes.claim(s, t, lreg_dest)
        if status != lanes.GO:
            return status
        if instr_mod1:
            return refuse(s, lanes.MODE_UNIMPLEMENTED, instr_mod1, 0)
        _spread(s, imm16_math)
        fma_rows(s, s.lane_tmp[_FACTOR], s.lreg[lreg_dest & 15], s.lreg[_LREG_ZERO], _U(0), _U(0))
        lanes.write(s, lreg_dest)
        return DONE


@njit(inline="always")
def _reciprocal(x: Any) -> Any:
    """1/x to 7 mantissa bits; infinite for zeros and denormals, 0 from 2**126 on."""
    field = _U(_U(x >> _U(23)) & _U(255))
    exponent = _U(_U(_U(253) - min(field, _U(253))) << _U(23))
    mantissa = _U(_RECIPROCAL[np.int64(_U(x >> _U(16)) & _U(127))] << _U(16))
    value = _U(exponent | mantissa) if field < _U(253) else _U(0)
    return _U(_U(x & _U(_SIGN)) | (_U(0x7F800000) if field == _U(0) else value))


class SFPARECIP(Instruction, opcode=0x99, unit="vector", stall="B8"):
    """Approximate the reciprocal (SFPARECIP, Blackhole ISA)."""

    instr_mod1 = bits(3, 0, mode=True)
    lreg_dest = bits(7, 4)
    lreg_c = bits(11, 8)
    imm12_math = bits(15, 12)

    def execute(
        s: Any, t: Any, instr_mod1: Any, lreg_dest: Any, lreg_c: Any, imm12_math: Any
    ) -> Any:
        status = lanes.claim(s, t, lreg_dest)
        if status != lanes.GO:
            return status
        if instr_mod1:
            return refuse(s, lanes.MODE_UNSUPPORTED, instr_mod1, 0)
        if imm12_math:
            return refuse(s, lanes.IMMEDIATE, imm12_math, instr_mod1)
        x, out = s.lreg[lreg_c & 15], s.lane_tmp[lanes.VALUE]
        for lane in range(lanes.LANES):
            out[lane] = _reciprocal(x[lane])
        lanes.write(s, lreg_dest)
        return DONE
