"""Vector instructions on floating-point lanes: multiply-add, look-up tables, approximations."""

from typing import Any

import numpy as np

from bhemu.bits import choice, flags, number
from bhemu.jit.subset import njit
from bhemu.tensix import lanes
from bhemu.tensix.formats import FINITE, ORDINARY, fma, fma_within, sum_within
from bhemu.tensix.insn import Argument, Instruction, bits
from bhemu.tensix.rules import DONE, NCB, error, refuse, undefined
from bhemu.tensix.spaces import LANES, lreg
from bhemu.tensix.units.vector import sfpu

_U = np.uint32
_SIGN_BIT = 0x80000000
_LREG_ONE, LREG_ZERO = 10, 9
_FACTOR = sfpu.FACTOR

_NO_ONE = error("VECTOR-ADD-ONE", NCB, "SFPADD multiplies LReg[{a}] by LReg[{b}]: one factor must be LReg[10], the constant 1.0", "name LReg[10] as lreg_src_a or lreg_src_b, or use SFPMAD")  # fmt: skip
_NO_ZERO = error("VECTOR-MUL-ZERO", NCB, "SFPMUL adds LReg[{c}]: the addend must be LReg[9], the constant 0.0", "name LReg[9] as lreg_src_c, or use SFPMAD")  # fmt: skip


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


@njit
def _sum_rows(s: Any, x: Any, z: Any, flip_x: Any, flip_z: Any) -> None:
    """As fma_rows with y = 1.0."""
    out, one = s.lane_tmp[lanes.VALUE], s.lreg[_LREG_ONE]
    most = _U(0)
    for lane in range(lanes.LANES):
        value, above = sum_within(_U(x[lane] ^ flip_x), _U(z[lane] ^ flip_z))
        out[lane] = value
        most = max(most, above)
    if most > FINITE:
        for lane in range(lanes.LANES):
            out[lane] = fma(_U(x[lane] ^ flip_x), one[lane], _U(z[lane] ^ flip_z))


class _Multiplies(sfpu.ThreeSources):
    """A * B + C, with signs and operands by mode."""

    instr_mod1 = sfpu.ThreeSources.instr_mod1.meaning(
        flags(*("A negated", "C negated", "LReg[7] names A", "LReg[7] names the destination"))
    )


@njit
def _flip(mod: Any, bit: Any) -> Any:
    return _U(_SIGN_BIT) if (mod >> bit) & 1 else _U(0)


@njit
def _mad(s: Any, t: Any, f: Any) -> Any:
    mod, dest = f.instr_mod1, f.lreg_dest
    status = lanes.claim(s, t, dest)
    if status != lanes.GO:
        return status
    # Bit 2: LReg[7] names the first factor; bit 3: it names the destination.
    status = sfpu.refused(s, mod & (sfpu.VA | sfpu.VD))
    if status != DONE:
        return status
    if mod & sfpu.VA:
        sfpu.source(s)
    a = s.lane_tmp[_FACTOR] if mod & sfpu.VA else s.lreg[f.lreg_src_a & 15]
    b, c = s.lreg[f.lreg_src_b & 15], s.lreg[f.lreg_src_c & 15]
    fma_rows(s, a, b, c, _flip(mod, 0), _flip(mod, 1))
    return sfpu.write(s, mod, dest)


class SFPMAD(_Multiplies, opcode=0x84, facts=sfpu.FACTORS):
    """Multiply and add: destination = A * B + C (SFPMAD, Blackhole ISA)."""

    def execute(s: Any, t: Any, f: Any) -> Any:
        return _mad(s, t, f)


class SFPADD(_Multiplies, opcode=0x85, facts=sfpu.FACTORS):
    """Add: SFPMAD, in all its modes, with one factor 1.0 (SFPADD, Blackhole ISA)."""

    def execute(s: Any, t: Any, f: Any) -> Any:
        named = f.lreg_src_a == _LREG_ONE and f.instr_mod1 & sfpu.VA == 0
        if f.lreg_dest < lanes.TEMPLATES and not named and f.lreg_src_b != _LREG_ONE:
            return refuse(s, _NO_ONE, a=f.lreg_src_a, b=f.lreg_src_b)
        if f.instr_mod1 > 3:
            return _mad(s, t, f)
        status = lanes.claim(s, t, f.lreg_dest)
        if status != lanes.GO:
            return status
        x, z = s.lreg[(f.lreg_src_b if named else f.lreg_src_a) & 15], s.lreg[f.lreg_src_c & 15]
        _sum_rows(s, x, z, _flip(f.instr_mod1, 0), _flip(f.instr_mod1, 1))
        return lanes.write(s, f.lreg_dest)


class SFPMUL(_Multiplies, opcode=0x86, facts=sfpu.FACTORS):
    """Multiply: SFPMAD, in all its modes, with addend 0.0 (SFPMUL, Blackhole ISA)."""

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.lreg_dest < lanes.TEMPLATES and f.lreg_src_c != LREG_ZERO:
            return refuse(s, _NO_ZERO, c=f.lreg_src_c)
        return _mad(s, t, f)


_WITH_IMMEDIATE = 10  # mode bits of SFPADDI and SFPMULI: NEGATE_VC, INDIRECT_VD


class _WithImmediate(sfpu.Target):
    """An operand, which is the destination as well, and a bf16 immediate."""

    reads = lreg("lreg_dest") | sfpu.named_dest("instr_mod1") | LANES
    writes = sfpu.result("lreg_dest", "instr_mod1")

    instr_mod1 = sfpu.Target.instr_mod1.meaning(
        flags("", "the register negated", "", "LReg[7] names the destination")
    )
    imm16_math = bits(23, 8, number("bf16 immediate"))


@njit
def _immediate(s: Any, t: Any, f: Any) -> Any:
    """The immediate of SFPADDI and SFPMULI as scratch `_FACTOR`; GO or the status."""
    status = lanes.claim_mode(s, t, f, 0, ~_WITH_IMMEDIATE)
    if status != lanes.GO:
        return status
    refused = sfpu.refused(s, f.instr_mod1 & sfpu.VD)
    if refused != DONE:
        return refused
    out, value = s.lane_tmp[_FACTOR], _U(f.imm16_math << 16)
    for lane in range(lanes.LANES):
        out[lane] = value
    return lanes.GO


class SFPADDI(_WithImmediate, opcode=0x75, facts=sfpu.IMMEDIATE):
    """Add a bf16 immediate (SFPADDI, Blackhole ISA)."""

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = _immediate(s, t, f)
        if status != lanes.GO:
            return status
        flip = _flip(f.instr_mod1, 1)
        _sum_rows(s, s.lane_tmp[_FACTOR], s.lreg[f.lreg_dest & 15], _U(0), flip)
        return sfpu.write(s, f.instr_mod1, f.lreg_dest)


class SFPMULI(_WithImmediate, opcode=0x74, facts=sfpu.IMMEDIATE):
    """Multiply by a bf16 immediate (SFPMULI, Blackhole ISA)."""

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = _immediate(s, t, f)
        if status != lanes.GO:
            return status
        zero, flip = s.lreg[LREG_ZERO], _flip(f.instr_mod1, 1)
        fma_rows(s, s.lreg[f.lreg_dest & 15], s.lane_tmp[_FACTOR], zero, flip, _U(0))
        return sfpu.write(s, f.instr_mod1, f.lreg_dest)


# Vector unit (SFPU): multiplication of 23-bit integers on the floating-point data path.

_ZERO, _ONE = _U(0), _U(1)
_LOW12 = _U(0xFFF)
_LOW23 = _U(0x7FFFFF)
_UPPER = 1  # mode bit

_NO_ADDEND = error("VECTOR-MUL24-ADDEND", NCB, "SFPMUL24 names LReg[{reg}] as lreg_src_c: it must be LReg[9], the constant 0", "name LReg[9] as lreg_src_c; silicon adds a shifted mantissa of the register's floats")  # fmt: skip


class SFPMUL24(sfpu.ThreeSources, opcode=0x98, facts=sfpu.FACTORS):
    """Multiply 23-bit integers (SFPMUL24, Blackhole ISA)."""

    instr_mod1 = sfpu.ThreeSources.instr_mod1.meaning(
        flags(
            *("the high 23 bits of the product", ""),
            *("LReg[7] names A", "LReg[7] names the destination"),
        )
    )

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = lanes.claim_mode(s, t, f, 2, 0)
        if status != lanes.GO:
            return status
        if f.lreg_src_c != LREG_ZERO:
            status = undefined(s, _NO_ADDEND, reg=f.lreg_src_c)
            if status:
                return status
        mod = f.instr_mod1
        status = sfpu.refused(s, mod & (sfpu.VA | sfpu.VD))
        if status != DONE:
            return status
        if mod & sfpu.VA:
            sfpu.source(s)
        x = s.lane_tmp[sfpu.FACTOR] if mod & sfpu.VA else s.lreg[f.lreg_src_a & 15]
        y, out = s.lreg[f.lreg_src_b & 15], s.lane_tmp[lanes.VALUE]
        high = _ONE if mod & _UPPER else _ZERO
        for lane in range(lanes.LANES):
            a = x[lane]
            b = y[lane]
            ah, al = _U(_U(a & _LOW23) >> _U(12)), _U(a & _LOW12)
            bh, bl = _U(_U(b & _LOW23) >> _U(12)), _U(b & _LOW12)
            low = _U(al * bl)
            middle = _U(_U(ah * bl) + _U(al * bh) + _U(low >> _U(12)))
            above = _U(_U(_U(ah * bh) << _ONE) + _U(middle >> _U(11)))
            below = _U(_U(_U(middle & _U(0x7FF)) << _U(12)) | _U(low & _LOW12))
            out[lane] = above if high != _ZERO else below
        if f.lreg_src_c != LREG_ZERO:
            z = s.lreg[f.lreg_src_c & 15]
            # The addition on the floating-point data path (Mul24ShiftAdd).
            for lane in range(lanes.LANES):
                exponent = _U(_U(z[lane] >> _U(23)) & _U(0xFF))
                most = max(exponent, _U(129))
                by = _U(_U(most - exponent) & _U(31))
                addend = _U(_U(_U(z[lane] & _LOW23) | _U(1 << 23)) << _U(3))
                aligned = _U(addend >> by)
                kept = _U(out[lane] >> _U(_U(most - _U(129)) & _U(31)))
                lost = _U(_U(aligned << by) ^ addend)
                carry = _U(1 << 16) if lost > _U(0xFFFF) else _ZERO
                added = _U(_U(kept + aligned + carry) & _LOW23) if aligned != _ZERO else kept
                out[lane] = added if exponent != _ZERO else out[lane]
        return sfpu.write(s, mod, f.lreg_dest)


# Vector unit (SFPU): table look-ups.

_SLOPE, _SIZE, _OFFSET = 2, 3, 4  # scratch rows
_SIGN = _U(0x80000000)
_MAGNITUDE = _U(0x7FFFFFFF)
_HALF, _FLOAT_ONE, _ONE_AND_HALF = _U(0x3F000000), _U(0x3F800000), _U(0x3FC00000)
_TWO, _THREE, _FOUR = _U(0x40000000), _U(0x40400000), _U(0x40800000)
_KEEP_SIGN, _THREE_HALVES = 4, 10  # mode bits


@njit(inline="always")
def _piece(x: Any, first: Any, second: Any, third: Any) -> Any:
    """Table entry of a magnitude: below 1, below 2, or the rest."""
    return first if x < _FLOAT_ONE else (second if x < _TWO else third)


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
    facts=sfpu.Sfpu(sfpu.MAD, sfpu.Form.TABLE, implied=0xF),
    macro=(Argument("dest_reg_addr", 15, 0),),
):
    """Piecewise linear function from an 8-bit table (SFPLUT, Blackhole ISA)."""

    reads = lreg(0, 4) | sfpu.named_dest("instr_mod0") | LANES
    writes = sfpu.result("lreg_ind", "instr_mod0")

    instr_mod0 = bits(19, 16, mode=True).meaning(
        flags("", "", "result with the sign of LReg[3]", "LReg[7] names the destination")
    )
    lreg_ind = bits(23, 20, sfpu.LREG)

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.lreg_ind >= lanes.TEMPLATES:
            return refuse(s, lanes.TEMPLATE_LOAD, dest=f.lreg_ind)
        status = lanes.claim(s, t, f.lreg_ind)
        if status != lanes.GO:
            return status
        if f.instr_mod0 & 3:
            return refuse(s, lanes.MODE_UNNAMED, mode=f.instr_mod0)
        status = sfpu.refused(s, f.instr_mod0 & sfpu.VD)
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
        return sfpu.write(s, f.instr_mod0, f.lreg_ind)


@njit(inline="always")
def _from_half(x: Any) -> Any:
    """fp32 pattern of the low 16 bits as fp16; exponent field 31 stands for a zero exponent."""
    field = _U(_U(x >> _U(10)) & _U(31))
    widened = _ZERO if field == _U(31) else _U(field + _U(112))
    sign = _U(_U(x << _U(16)) & _SIGN)
    return _U(sign | _U(widened << _U(23)) | _U(_U(x & _U(0x3FF)) << _U(13)))


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
        upper = x[lane] >= _piece(x[lane], _HALF, _ONE_AND_HALF, cut)  # of its piece
        out[lane] = _U(out[lane] >> (_U(16) if upper else _ZERO))
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


class SFPLUTFP32(sfpu.Target, opcode=0x95, facts=sfpu.Sfpu(sfpu.MAD, sfpu.Form.NONE, implied=0x7F)):
    """Piecewise linear function from a 16- or 32-bit table (SFPLUTFP32, Blackhole ISA)."""

    reads = (
        lreg(0, 4)
        | lreg(4, 3).unless("instr_mod1 & 10 == 10")
        | sfpu.named_dest("instr_mod1")
        | LANES
    )
    writes = sfpu.result("lreg_dest", "instr_mod1")

    instr_mod1 = sfpu.Target.instr_mod1.meaning(
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
        status = sfpu.refused(s, f.instr_mod1 & sfpu.VD)
        if status != DONE:
            return status
        x, size = s.lreg[3], s.lane_tmp[_SIZE]
        for lane in range(lanes.LANES):
            size[lane] = _U(x[lane] & _MAGNITUDE)
        _table(s, f.instr_mod1)
        fma_rows(s, s.lane_tmp[_SLOPE], size, s.lane_tmp[_OFFSET], _ZERO, _ZERO)
        if f.instr_mod1 & _KEEP_SIGN:
            _with_sign_of_x(s)
        return sfpu.write(s, f.instr_mod1, f.lreg_dest)


# Vector unit (SFPU): approximate reciprocal and exponential.

_INFINITY = _U(0x7F800000)
_LEAST = _U(0x00800000)  # 2**-126
_RECIPROCAL_MODE, _CONDITIONAL = 0, 1  # every other mode is the exponential

# Leading 7 mantissa bits of 1/x by those of x, taken in the middle of each interval.
_RECIPROCAL = np.array([(65536 * 2 // (257 + 2 * i) - 255) // 2 for i in range(128)], np.uint32)

# Upper half of e**x by the upper half of x, from 2**-6 up to 2, at the start of each interval.
_FROM, _UP_TO = 0x3C80, 0x4000
_STARTS = (np.arange(_FROM, _UP_TO, dtype=np.uint32) << np.uint32(16)).view(np.float32)
_EXPONENTIAL = np.exp(_STARTS.astype(np.float64)).astype(np.float32).view(np.uint32) >> _U(16)


@njit(inline="always")
def _reciprocal(x: Any) -> Any:
    """1/x of a magnitude to 7 bits; infinite for zeros and denormals, 0 from 2**126 on."""
    field = _U(x >> _U(23))
    exponent = _U(_U(_U(253) - min(field, _U(253))) << _U(23))
    mantissa = _U(_RECIPROCAL[np.int64(_U(x >> _U(16)) & _U(127))] << _U(16))
    value = _U(exponent | mantissa) if field < _U(253) else _ZERO
    return _INFINITY if field == _ZERO else value


@njit(inline="always")
def _exponential(x: Any) -> Any:
    """e**x of a magnitude, of use below 2; the lower half of x stays where it is."""
    top = _U(x >> _U(16))
    index = _U(min(max(top, _U(_FROM)), _U(_UP_TO - 1)) - _U(_FROM))
    high = _U(_EXPONENTIAL[np.int64(index)])
    high = _U(0x3F81) if top < _U(_FROM) else high
    high = _U(0x4080) if top >= _U(_UP_TO) else high
    value = _U(_U(high << _U(16)) | _U(x & _U(0xFFFF)))
    return _FLOAT_ONE if x < _LEAST else value


class SFPARECIP(
    sfpu.TwoSources, opcode=0x99, facts=sfpu.Sfpu(form=sfpu.Form.THREE, notices="VB VC")
):
    """Approximate the reciprocal or the exponential (SFPARECIP, Blackhole ISA)."""

    reads = lreg("lreg_c") | lreg("imm12_math").when("instr_mod1 == 1") | LANES
    writes = lreg("lreg_dest")

    instr_mod1 = sfpu.TwoSources.instr_mod1.meaning(
        choice(
            "1 / x",
            "1 / |x| where LReg[imm12_math] is negative, else x",
            about="x: LReg[lreg_c]",
            others="exp(|x|) with the sign of x",
        )
    )

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = lanes.claim(s, t, f.lreg_dest)
        if status != lanes.GO:
            return status
        if f.imm12_math and f.instr_mod1 != _CONDITIONAL:
            return refuse(s, lanes.IMMEDIATE, immediate=f.imm12_math, mode=f.instr_mod1)
        x, condition = s.lreg[f.lreg_c & 15], s.lreg[f.imm12_math & 15]
        out = s.lane_tmp[lanes.VALUE]
        if f.instr_mod1 == _RECIPROCAL_MODE:
            for lane in range(lanes.LANES):
                out[lane] = _U(_reciprocal(_U(x[lane] & ~_SIGN)) | _U(x[lane] & _SIGN))
        elif f.instr_mod1 == _CONDITIONAL:
            for lane in range(lanes.LANES):
                value = _reciprocal(_U(x[lane] & ~_SIGN))
                out[lane] = value if condition[lane] >= _SIGN else x[lane]
        else:
            for lane in range(lanes.LANES):
                out[lane] = _U(_exponential(_U(x[lane] & ~_SIGN)) | _U(x[lane] & _SIGN))
        return lanes.write(s, f.lreg_dest)
