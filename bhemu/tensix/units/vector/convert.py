"""Vector instructions that convert and round lanes."""

from typing import Any

import numpy as np

from bhemu.bits import choice, number
from bhemu.jit.subset import njit
from bhemu.tensix import lanes, spaces
from bhemu.tensix.insn import bits
from bhemu.tensix.rules import DONE, NCB, UNSUPPORTED, error, refuse
from bhemu.tensix.spaces import CC, LANES, lreg
from bhemu.tensix.units.vector import sfpu

_U, _I = np.uint32, np.int32
_ZERO, _ONE = _U(0), _U(1)

_SCALE = error("VECTOR-DIVP2-IMMEDIATE", NCB, "SFPDIVP2 with immediate {immediate:#x}: only -128 to 127 (0xf80 to 0xfff, 0 to 0x7f) are defined")  # fmt: skip


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


class SFPDIVP2(sfpu.SourceAndImmediate, opcode=0x76, facts=sfpu.NOTICES_VC):
    """Add to or replace the exponent (SFPDIVP2, Blackhole ISA)."""

    instr_mod1 = sfpu.SourceAndImmediate.instr_mod1.meaning(
        choice("exponent = imm12_math", "exponent + imm12_math")
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
                kept = _U(x[lane] & ~sfpu.EXPONENT)
                infinite = _U(x[lane] & sfpu.EXPONENT) == sfpu.EXPONENT
                out[lane] = x[lane] if infinite else _U(kept | _U(field & sfpu.EXPONENT))
        return lanes.write(s, f.lreg_dest)


class SFPEXEXP(sfpu.OneSource, opcode=0x77, facts=sfpu.NOTICES_VC, macro=sfpu.NO_IMMEDIATE):
    """Extract the exponent (SFPEXEXP, Blackhole ISA)."""

    reads = lreg("lreg_c") | CC.when("instr_mod1 & 10 == 8") | LANES
    writes = lreg("lreg_dest") | CC.when("instr_mod1 & 10")

    instr_mod1 = sfpu.OneSource.instr_mod1.meaning(
        sfpu.with_flags(
            {0: "without the bias", 1: "with the bias"}, "it is negative", "it is not negative"
        )
    )

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = lanes.claim_mode(s, t, f, 4, 0)
        if status != lanes.GO:
            return status
        x, out, flag = s.lreg[f.lreg_c & 15], s.lane_tmp[lanes.VALUE], s.lane_tmp[lanes.FLAG]
        bias = _I(0 if f.instr_mod1 & 1 else sfpu.BIAS)
        positive = _U(f.instr_mod1 >> 3)  # flag when the sign bit is clear
        for lane in range(lanes.LANES):
            value = _U(_I(_I(_U(x[lane] & sfpu.EXPONENT) >> _U(23)) - bias))
            out[lane] = value
            flag[lane] = _U(value >> _U(31)) ^ positive
        if f.instr_mod1 & 2 == 0:
            lanes.complement_flags(s)
        lanes.write(s, f.lreg_dest)
        if f.instr_mod1 & 10:
            lanes.write_result_flags(s, f.lreg_dest)
        return DONE


class SFPEXMAN(sfpu.OneSource, opcode=0x78, facts=sfpu.NOTICES_VC, macro=sfpu.NO_IMMEDIATE):
    """Extract the mantissa (SFPEXMAN, Blackhole ISA)."""

    instr_mod1 = sfpu.OneSource.instr_mod1.meaning(
        choice("with the hidden bit", "without the hidden bit")
    )

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = lanes.claim_mode(s, t, f, 14, 0)
        if status != lanes.GO:
            return status
        _insert(s, f.lreg_c, 0x7FFFFF, 0 if f.instr_mod1 else 0x800000)
        return lanes.write(s, f.lreg_dest)


class SFPSETEXP(sfpu.OneSource, opcode=0x82, facts=sfpu.NOTICES_VD_VC):
    """Replace the exponent (SFPSETEXP, Blackhole ISA)."""

    reads = sfpu.REPLACES

    instr_mod1 = sfpu.OneSource.instr_mod1.meaning("""
        0: from the low bits of LReg[lreg_dest]
        1, 3: imm12_math
        2: from the exponent of LReg[lreg_dest]""")
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
                field = _U(_U(y[lane] << _U(23)) & sfpu.EXPONENT)
                out[lane] = _U(_U(x[lane] & ~sfpu.EXPONENT) | field)
        return lanes.write(s, f.lreg_dest)


@njit
def _replace(s: Any, t: Any, f: Any, refused: Any, part: Any, immediate: Any) -> Any:
    """SFPSETMAN and SFPSETSGN: the bits `part` from LReg[lreg_dest], in mode 1 from `immediate`.

    `refused`: reserved and unnamed bits of instr_mod1.
    """
    status = lanes.claim_mode(s, t, f, refused[0], refused[1])
    if status != lanes.GO:
        return status
    if f.instr_mod1 == 0 and f.imm12_math:
        return refuse(s, lanes.IMMEDIATE, immediate=f.imm12_math, mode=f.instr_mod1)
    if f.instr_mod1:
        _insert(s, f.lreg_c, part ^ 0xFFFFFFFF, immediate)
    else:
        _merge(s, f.lreg_c, part ^ 0xFFFFFFFF, f.lreg_dest, part)
    return lanes.write(s, f.lreg_dest)


class SFPSETMAN(sfpu.SourceAndImmediate, opcode=0x83, facts=sfpu.NOTICES_VD_VC):
    """Replace the mantissa (SFPSETMAN, Wormhole ISA; an immediate has no golden)."""

    reads = sfpu.REPLACES

    instr_mod1 = sfpu.SourceAndImmediate.instr_mod1.meaning(
        choice("from the mantissa of LReg[lreg_dest]", "imm12_math, as its high bits")
    )

    def execute(s: Any, t: Any, f: Any) -> Any:
        return _replace(s, t, f, (0, 14), 0x7FFFFF, f.imm12_math << 11)


class SFPSETSGN(sfpu.OneSource, opcode=0x89, facts=sfpu.NOTICES_VD_VC):
    """Replace the sign (SFPSETSGN, Blackhole ISA)."""

    reads = sfpu.REPLACES

    instr_mod1 = sfpu.OneSource.instr_mod1.meaning(
        choice("from the sign of LReg[lreg_dest]", "imm12_math")
    )
    imm12_math = bits(12, 12, number("sign"))

    def execute(s: Any, t: Any, f: Any) -> Any:
        return _replace(s, t, f, (14, 0), 0x80000000, f.imm12_math << 31)


# Vector unit (SFPU): conversion of integers and rounding to narrower formats, with the PRNG.

_RANDOM = 2  # scratch row

_ROUND_MODE = error("VECTOR-ROUND-MODE", UNSUPPORTED, "SFP_STOCH_RND with rnd_mode {rnd_mode}: 0 (nearest), 1 (stochastic) and 2 (to zero) exist")  # fmt: skip
_ROUND_SCALE = error("VECTOR-ROUND-SCALE", UNSUPPORTED, "SFP_STOCH_RND with imm8_math {immediate:#x} in mode {mode}, which does not shift by the immediate", "set instr_mod1 to 12 or 13, or leave imm8_math 0")  # fmt: skip


@njit
def _advance(s: Any) -> None:
    """Scratch `_RANDOM` = random state of each lane; the enabled lanes step (AdvancePRNG)."""
    state, out, flags, on = s.prng, s.lane_tmp[_RANDOM], s.cc, lanes.unmasked(s)
    for lane in range(lanes.LANES):
        out[lane] = state[lane]
        take = _U(flags[lane] | on) != _ZERO
        state[lane] = _U(lanes.next_random(np.int64(state[lane]))) if take else state[lane]


class SFPCAST(sfpu.SourceC, opcode=0x90, facts=sfpu.NOTICES_VC):
    """Convert between integer and floating-point forms (SFPCAST, Blackhole ISA).

    Modes 0 and 1: SFPCAST_IntFloat, 2: SFPCAST_IntAbs, 3: SFPCAST_IntInt.
    """

    reads = lreg("lreg_src_c") | spaces.RANDOM.when("instr_mod1 == 1") | LANES
    writes = lreg("lreg_dest") | spaces.RANDOM.when("instr_mod1 == 1")

    instr_mod1 = sfpu.SourceC.instr_mod1.meaning("""
        0: sign-magnitude integer to fp32, to nearest even
        1: sign-magnitude integer to fp32, stochastically
        2: absolute value, as silicon computes it
        3: sign-magnitude to two's complement, or back""")

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = lanes.claim_mode(s, t, f, 12, 0)
        if status != lanes.GO:
            return status
        x, out = s.lreg[f.lreg_src_c & 15], s.lane_tmp[lanes.VALUE]
        if f.instr_mod1 == 0:
            for lane in range(lanes.LANES):
                magnitude = np.float32(_I(x[lane] & ~sfpu.SIGN))
                out[lane] = _U(_U(x[lane] & sfpu.SIGN) | _U(magnitude.view(np.int32)))
        elif f.instr_mod1 == 1:
            _advance(s)
            random = s.lane_tmp[_RANDOM]
            for lane in range(lanes.LANES):  # up when the seven discarded bits exceed the random
                size = _U(x[lane] & ~sfpu.SIGN)
                zeros = lanes.leading_zeros(size)
                shifted = _U(size << _U(zeros & _U(31)))
                field = _U(_U(157) - zeros) if size != _ZERO else _ZERO
                value = _U(_U(field << _U(23)) + _U(shifted >> _U(8)))
                up = _U(shifted & _U(0xFE)) > _U(_U(random[lane] >> _U(9)) & _U(0xFE))
                out[lane] = _U(_U(_U(x[lane] & sfpu.SIGN) + value) + (_ONE if up else _ZERO))
        else:  # negative numbers are negated; sign-magnitude and two's complement keep the sign
            keep = sfpu.SIGN if f.instr_mod1 == 3 else _ZERO
            for lane in range(lanes.LANES):
                negative = _U(_U(x[lane] & keep) | _U((-np.int64(x[lane])) & 0xFFFFFFFF))
                out[lane] = negative if x[lane] >= sfpu.SIGN else x[lane]
        return lanes.write(s, f.lreg_dest)


@njit
def _round_integer(s: Any, mode: Any, c: Any, b: Any, imm: Any) -> None:
    """Scratch value = LReg[c] as a bounded integer; modes 4 and 5 take an integer, scaled down.

    `imm` < 0: the distance is in LReg[b].
    """
    x, out, random = s.lreg[c & 15], s.lane_tmp[lanes.VALUE], s.lane_tmp[_RANDOM]
    signed = mode & 1
    size = 16 if mode >= 6 else 8
    keep, most = _U(signed << 31), _U((1 << (size - signed)) - 1)
    if mode < 4 or mode > 5:
        for lane in range(lanes.LANES):
            field = _U(_U(x[lane] & sfpu.EXPONENT) >> _U(23))
            mantissa = _U(_U(x[lane] & sfpu.FRACTION) | sfpu.HIDDEN)
            small = field < _U(sfpu.BIAS)
            up = _ZERO if small else _U(min(_U(field - _U(sfpu.BIAS)), _U(23)))
            down = _U(_U(sfpu.BIAS) - field) if small else _ZERO
            whole = _ZERO if small else _U(mantissa >> _U(_U(23) - up))
            part = _U(_U(_U(mantissa >> _U(down & _U(31))) << up) & sfpu.FRACTION)
            value = min(_U(whole + (_ONE if part >= random[lane] else _ZERO)), most)
            sign = _U(x[lane] & keep) if value != _ZERO else _ZERO
            out[lane] = _ZERO if field < _U(sfpu.BIAS - 1) else _U(sign | value)
        return
    by, mask, fixed = s.lreg[b & 15], _U(31 if imm < 0 else 0), _U(max(imm, 0))
    for lane in range(lanes.LANES):
        magnitude, far = _U(x[lane] & ~sfpu.SIGN), _U(_U(by[lane] & mask) | fixed)
        whole = _U(magnitude >> far)
        # 23 bits below the point: of a shift by more than 23 the lowest are cut off.
        right = _U(max(far, _U(23)) - _U(23))
        left = _U(_U(23) - min(far, _U(23)))
        part = _U(_U(_U(magnitude >> right) << left) & sfpu.FRACTION)
        value = min(_U(whole + (_ONE if part >= random[lane] else _ZERO)), most)
        out[lane] = _U((_U(x[lane] & keep) if value != _ZERO else _ZERO) | value)


class SFP_STOCH_RND(
    sfpu.SourceC, opcode=0x8E, facts=sfpu.Sfpu(sfpu.ROUND, sfpu.Form.THREE, notices="VB VC")
):
    """Round to a narrower format (SFPSTOCHRND, Blackhole ISA).

    Modes but 4 and 5 do not read bit 3 of instr_mod1 (tt-llk's exponential sets it).
    """

    reads = (
        lreg("lreg_src_c")
        | lreg("lreg_src_b").when("instr_mod1 in (4, 5)")
        | (spaces.RANDOM.when("rnd_mode == 1") | spaces.RANDOM.own())
        | LANES
    )
    writes = lreg("lreg_dest") | spaces.RANDOM

    instr_mod1 = sfpu.SourceC.instr_mod1.meaning("""integers are sign-magnitude
        0, 8: fp32 to 10 bits of mantissa
        1, 9: fp32 to 7 bits of mantissa (bf16)
        2, 10: fp32 to uint8
        3, 11: fp32 to int8
        4: integer shifted right by LReg[lreg_src_b], to uint8
        5: integer shifted right by LReg[lreg_src_b], to int8
        6, 14: fp32 to uint16
        7, 15: fp32 to int16
        12: integer shifted right by imm8_math, to uint8
        13: integer shifted right by imm8_math, to int8""")
    lreg_src_b = bits(15, 12, sfpu.LREG)
    imm8_math = bits(20, 16, number("distance of modes 12 and 13"))
    rnd_mode = bits(22, 21, mode=True).meaning("""of the magnitude
        0: to nearest
        1: stochastically
        2: down, but for a fraction of all ones""")

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = lanes.claim(s, t, f.lreg_dest)
        if status != lanes.GO:
            return status
        mode = f.instr_mod1 & 7
        immediate = (mode == 4 or mode == 5) and f.instr_mod1 >= 8
        if f.imm8_math and not immediate:
            return refuse(s, _ROUND_SCALE, immediate=f.imm8_math, mode=f.instr_mod1)
        if f.rnd_mode > 2:
            return refuse(s, _ROUND_MODE, rnd_mode=f.rnd_mode)
        _advance(s)
        out = s.lane_tmp[_RANDOM]
        fixed = _U(0x400000 if f.rnd_mode == 0 else 0x7FFFFF)
        for lane in range(lanes.LANES):
            out[lane] = _U(out[lane] & sfpu.FRACTION) if f.rnd_mode == 1 else fixed
        if mode < 2:
            bits = 16 if mode == 1 else 13
            x, out, limit = s.lreg[f.lreg_src_c & 15], s.lane_tmp[lanes.VALUE], s.lane_tmp[_RANDOM]
            discarded, drop = _U((1 << bits) - 1), _U(23 - bits)
            # Denormals are +0, NaN is an infinity; `>=` is what the hardware does
            # (SFPSTOCHRND_FloatFloat).
            for lane in range(lanes.LANES):
                value = x[lane]
                field, low = _U(value & sfpu.EXPONENT), _U(value & discarded)
                kept = _U(_U(value & ~sfpu.SIGN) - low)
                up = low >= _U(limit[lane] >> drop)
                rounded = _U(kept + _U(discarded + _ONE)) if up else kept
                rounded = _U(_U(value & sfpu.SIGN) | rounded)
                rounded = _U(value & ~sfpu.FRACTION) if field == sfpu.EXPONENT else rounded
                out[lane] = _ZERO if field == _ZERO else rounded
        else:
            _round_integer(s, mode, f.lreg_src_c, f.lreg_src_b, f.imm8_math if immediate else -1)
        return lanes.write(s, f.lreg_dest)
