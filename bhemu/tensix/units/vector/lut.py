"""Vector unit (SFPU): table look-ups."""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.operand import choice, flags
from bhemu.tensix import lanes
from bhemu.tensix.insn import Argument, Instruction, bits
from bhemu.tensix.quirks import refuse
from bhemu.tensix.status import DONE
from bhemu.tensix.units.vector import doubts, indirect
from bhemu.tensix.units.vector.arith import fma_rows
from bhemu.tensix.units.vector.fields import LREG, Target
from bhemu.tensix.units.vector.sfpu import MAD, VD, Form, Sfpu

_U = np.uint32
_SLOPE, _SIZE, _OFFSET = 2, 3, 4  # scratch rows
_ZERO = _U(0)
_SIGN = _U(0x80000000)
_MAGNITUDE = _U(0x7FFFFFFF)
_HALF, _ONE, _ONE_AND_HALF = _U(0x3F000000), _U(0x3F800000), _U(0x3FC00000)
_TWO, _THREE, _FOUR = _U(0x40000000), _U(0x40400000), _U(0x40800000)
_KEEP_SIGN, _THREE_HALVES = 4, 10  # mode bits


@njit(inline="always")
def _piece(x: Any, first: Any, second: Any, third: Any) -> Any:
    """Table entry of a magnitude: below 1, below 2, or the rest."""
    return first if x < _ONE else (second if x < _TWO else third)


@njit(inline="always")
def _from_byte(x: Any) -> Any:
    """fp32 pattern of the low byte: sign, 3 bits of negated exponent, 4 of mantissa; 0xFF is 0."""
    byte = _U(x & _U(0xFF))
    sign = _U(_U(byte >> _U(7)) << _U(31))
    field = _U(_U(127) - _U(_U(byte >> _U(4)) & _U(7)))
    value = _U(sign | _U(field << _U(23)) | _U(_U(byte & _U(15)) << _U(19)))
    return _ZERO if byte == _U(0xFF) else value


@njit
def _with_sign_of_x(s: Any) -> None:
    """The scratch value with the sign of LReg[3]."""
    x, out = s.lreg[3], s.lane_tmp[lanes.VALUE]
    for lane in range(lanes.LANES):
        out[lane] = _U(_U(out[lane] & _MAGNITUDE) | _U(x[lane] & _SIGN))


class SFPLUT(
    Instruction,
    opcode=0x73,
    unit="vector",
    facts=Sfpu(MAD, Form.TABLE, implied=0xF, indirect="VD"),
    macro=(Argument("dest_reg_addr", 15, 0),),
):
    """Piecewise linear function from an 8-bit table (SFPLUT, Blackhole ISA)."""

    instr_mod0 = bits(
        19,
        16,
        flags("", "", "result with the sign of LReg[3]", "LReg[7] names the destination"),
        mode=True,
    )
    lreg_ind = bits(23, 20, LREG)

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.lreg_ind >= lanes.TEMPLATES:
            return refuse(s, lanes.TEMPLATE_LOAD, dest=f.lreg_ind)
        status = lanes.claim(s, t, f.lreg_ind)
        if status != lanes.GO:
            return status
        if f.instr_mod0 & 3:
            return refuse(s, lanes.MODE_UNNAMED, mode=f.instr_mod0)
        if f.instr_mod0 & VD:
            status = indirect.refused(s)
            if status != DONE:
                return status
        first, second, third, x = s.lreg[0], s.lreg[1], s.lreg[2], s.lreg[3]
        out, size = s.lane_tmp[lanes.VALUE], s.lane_tmp[_SIZE]
        slope, offset = s.lane_tmp[_SLOPE], s.lane_tmp[_OFFSET]
        for lane in range(lanes.LANES):
            size[lane] = _U(x[lane] & _MAGNITUDE)
            out[lane] = _piece(size[lane], first[lane], second[lane], third[lane])
        for lane in range(lanes.LANES):
            slope[lane] = _from_byte(_U(out[lane] >> _U(8)))
            offset[lane] = _from_byte(out[lane])
        fma_rows(s, slope, size, offset, _ZERO, _ZERO)
        if f.instr_mod0 & _KEEP_SIGN:
            _with_sign_of_x(s)
        indirect.write(s, f.instr_mod0, f.lreg_ind)
        return DONE

    def doubts(s: Any, t: Any, f: Any) -> Any:
        marks = doubts.of(s, 0) | doubts.of(s, 1) | doubts.of(s, 2) | doubts.of(s, 3)
        return doubts.indirect(s, f.instr_mod0, f.lreg_ind, marks)


@njit(inline="always")
def _from_half(x: Any) -> Any:
    """fp32 pattern of the low 16 bits as fp16; exponent field 31 stands for a zero exponent."""
    field = _U(_U(x >> _U(10)) & _U(31))
    widened = _ZERO if field == _U(31) else _U(field + _U(112))
    sign = _U(_U(x << _U(16)) & _SIGN)
    return _U(sign | _U(widened << _U(23)) | _U(_U(x & _U(0x3FF)) << _U(13)))


@njit(inline="always")
def _upper_half(x: Any, cut: Any) -> Any:
    """16 when the magnitude is in the upper part of its piece of the table, else 0."""
    limit = _piece(x, _HALF, _ONE_AND_HALF, cut)
    return _U(16) if x >= limit else _ZERO


@njit
def _select(s: Any, first: Any, row: Any) -> None:
    """Scratch `row` = the table word of each magnitude, from LReg[first] and the next two."""
    x, out = s.lane_tmp[_SIZE], s.lane_tmp[row]
    a, b, c = s.lreg[first & 15], s.lreg[(first + 1) & 15], s.lreg[(first + 2) & 15]
    for lane in range(lanes.LANES):
        out[lane] = _piece(x[lane], a[lane], b[lane], c[lane])


@njit
def _halves(s: Any, row: Any, cut: Any) -> None:
    """Scratch `row`: table words to the fp16 half that the magnitude selects, as fp32."""
    x, out = s.lane_tmp[_SIZE], s.lane_tmp[row]
    for lane in range(lanes.LANES):
        out[lane] = _U(out[lane] >> _upper_half(x[lane], cut))
    for lane in range(lanes.LANES):
        out[lane] = _from_half(out[lane])


@njit
def _table(s: Any, mod: Any) -> None:
    """Scratch `_SLOPE` and `_OFFSET` from the table that bits 0, 1 and 3 of the mode say."""
    _select(s, 0, _SLOPE)
    if mod & 10 == _THREE_HALVES:
        slope, offset = s.lane_tmp[_SLOPE], s.lane_tmp[_OFFSET]
        for lane in range(lanes.LANES):
            offset[lane] = _from_half(slope[lane])
            slope[lane] = _from_half(_U(slope[lane] >> _U(16)))
        return
    _select(s, 4, _OFFSET)
    if mod & 2:
        cut = _FOUR if mod & 1 else _THREE
        _halves(s, _SLOPE, cut)
        _halves(s, _OFFSET, cut)


class SFPLUTFP32(
    Target,
    Instruction,
    opcode=0x95,
    unit="vector",
    facts=Sfpu(MAD, Form.NONE, implied=0x7F, indirect="VD"),
):
    """Piecewise linear function from a 16- or 32-bit table (SFPLUTFP32, Blackhole ISA)."""

    instr_mod1 = Target.instr_mod1.meaning(
        choice(
            {
                mode + sign: table + (", result with the sign of LReg[3]" if sign else "")
                for sign in (0, _KEEP_SIGN)
                for mode, table in (
                    (0, "three fp32 pieces"),
                    (8, "three fp32 pieces, LReg[7] names the destination"),
                    (2, "six fp16 pieces, the last from 3.0 on"),
                    (3, "six fp16 pieces, the last from 4.0 on"),
                    (10, "three fp16 pieces, LReg[7] names the destination"),
                )
            }
        )
    )

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = lanes.claim(s, t, f.lreg_dest)
        if status != lanes.GO:
            return status
        if f.instr_mod1 & 1 and f.instr_mod1 & 10 != 2:  # bit 0 belongs to the six pieces
            return refuse(s, lanes.MODE_UNNAMED, mode=f.instr_mod1)
        if f.instr_mod1 & VD:
            status = indirect.refused(s)
            if status != DONE:
                return status
        x, size = s.lreg[3], s.lane_tmp[_SIZE]
        for lane in range(lanes.LANES):
            size[lane] = _U(x[lane] & _MAGNITUDE)
        _table(s, f.instr_mod1)
        fma_rows(s, s.lane_tmp[_SLOPE], size, s.lane_tmp[_OFFSET], _ZERO, _ZERO)
        if f.instr_mod1 & _KEEP_SIGN:
            _with_sign_of_x(s)
        indirect.write(s, f.instr_mod1, f.lreg_dest)
        return DONE

    def doubts(s: Any, t: Any, f: Any) -> Any:
        marks = doubts.of(s, 0) | doubts.of(s, 1) | doubts.of(s, 2) | doubts.of(s, 3)
        if f.instr_mod1 & 10 != _THREE_HALVES:
            marks |= doubts.of(s, 4) | doubts.of(s, 5) | doubts.of(s, 6)
        return doubts.indirect(s, f.instr_mod1, f.lreg_dest, marks)
