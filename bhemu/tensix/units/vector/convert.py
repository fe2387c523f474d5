"""Vector unit (SFPU): exponent, mantissa, sign and format conversion."""

from typing import Any

import numpy as np

from bhemu.tensix import lanes, prng
from bhemu.tensix.insn import Instruction, bits
from bhemu.tensix.quirks import refuse
from bhemu.tensix.status import DONE, NCB, UNIMPLEMENTED, UNSUPPORTED, error
from bhemu.tensix.subset import njit

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
_CAST_RANDOM = error(
    "VECTOR-CAST-STOCHASTIC",
    UNSUPPORTED,
    "SFPCAST mode 1 rounds stochastically, which has no model",
    "use mode 0 (nearest even)",
)
_CAST_ABS = error(
    "VECTOR-CAST-ABS",
    UNSUPPORTED,
    "SFPCAST mode 2 is an absolute value",
    "use SFPABS",
)
_ROUND_MODE = error(
    "VECTOR-ROUND-MODE",
    UNSUPPORTED,
    "SFP_STOCH_RND with rnd_mode {0}: only 0 (nearest) has a model",
    "set rnd_mode 0",
)
_ROUND_SCALE = error(
    "VECTOR-ROUND-SCALE",
    UNSUPPORTED,
    "SFP_STOCH_RND with imm8_math {0:#x}: scaling of integers has no model",
    "leave imm8_math 0",
)
_ROUND_FORMAT = error(
    "VECTOR-ROUND-FORMAT",
    UNIMPLEMENTED,
    "SFP_STOCH_RND mode {0} is not modelled: 1 (bf16), 2, 3, 6, 7 (fp32 to 8 and 16 bit) are",
)


@njit
def _merge(s: Any, c: Any, keep: Any, other: Any, take: Any) -> None:
    """Scratch value = the bits `keep` of LReg[c] and the bits `take` of LReg[other]."""
    x, y, out = s.lreg[c], s.lreg[other], s.lane_tmp[lanes.VALUE]
    mask_x, mask_y = _U(keep), _U(take)
    for lane in range(lanes.LANES):
        out[lane] = _U(_U(x[lane] & mask_x) | _U(y[lane] & mask_y))


@njit
def _insert(s: Any, c: Any, keep: Any, value: Any) -> None:
    """Scratch value = the bits `keep` of LReg[c] and the same `value` in every lane."""
    x, out = s.lreg[c], s.lane_tmp[lanes.VALUE]
    mask, inserted = _U(keep), _U(value)
    for lane in range(lanes.LANES):
        out[lane] = _U(_U(x[lane] & mask) | inserted)


class SFPDIVP2(Instruction, opcode=0x76, unit="vector", stall="B8"):
    """Add to or replace the exponent (SFPDIVP2, Blackhole ISA)."""

    instr_mod1 = bits(3, 0)
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
            return refuse(s, lanes.MODE_RESERVED, instr_mod1, 0)
        if 0x7F < imm12_math < 0xF80:
            return refuse(s, _SCALE, imm12_math, 0)
        if instr_mod1 == 0:
            _insert(s, lreg_c, 0x807FFFFF, (imm12_math & 0xFF) << 23)
        else:
            x, out = s.lreg[lreg_c], s.lane_tmp[lanes.VALUE]
            add = _U(imm12_math & 0xFF)
            for lane in range(lanes.LANES):
                field = _U(_U(_U(x[lane] >> _U(23)) + add) << _U(23))
                kept = _U(x[lane] & ~_EXPONENT)
                infinite = _U(x[lane] & _EXPONENT) == _EXPONENT
                out[lane] = x[lane] if infinite else _U(kept | _U(field & _EXPONENT))
        lanes.write(s, lreg_dest)
        return DONE


class SFPEXEXP(Instruction, opcode=0x77, unit="vector", stall="B8"):
    """Extract the exponent (SFPEXEXP, Blackhole ISA)."""

    instr_mod1 = bits(3, 0)
    lreg_dest = bits(7, 4)
    lreg_c = bits(11, 8)

    def execute(s: Any, t: Any, instr_mod1: Any, lreg_dest: Any, lreg_c: Any) -> Any:
        status = lanes.claim(s, t, lreg_dest)
        if status != lanes.GO:
            return status
        if instr_mod1 & 4:
            return refuse(s, lanes.MODE_RESERVED, instr_mod1, 0)
        if instr_mod1 > 2 and instr_mod1 != 10:
            return refuse(s, lanes.MODE_UNIMPLEMENTED, instr_mod1, 0)
        x, out, flag = s.lreg[lreg_c], s.lane_tmp[lanes.VALUE], s.lane_tmp[lanes.FLAG]
        bias = _I(0 if instr_mod1 & 1 else _BIAS)
        positive = _U(instr_mod1 >> 3)  # flag when the sign bit is clear
        for lane in range(lanes.LANES):
            value = _U(_I(_I(_U(x[lane] & _EXPONENT) >> _U(23)) - bias))
            out[lane] = value
            flag[lane] = _U(value >> _U(31)) ^ positive
        lanes.write(s, lreg_dest)
        if instr_mod1 & 2:
            lanes.write_flags(s)
        return DONE


class SFPEXMAN(Instruction, opcode=0x78, unit="vector", stall="B8"):
    """Extract the mantissa (SFPEXMAN, Blackhole ISA)."""

    instr_mod1 = bits(3, 0)
    lreg_dest = bits(7, 4)
    lreg_c = bits(11, 8)

    def execute(s: Any, t: Any, instr_mod1: Any, lreg_dest: Any, lreg_c: Any) -> Any:
        status = lanes.claim(s, t, lreg_dest)
        if status != lanes.GO:
            return status
        if instr_mod1 > 1:
            return refuse(s, lanes.MODE_RESERVED, instr_mod1, 0)
        _insert(s, lreg_c, 0x7FFFFF, 0 if instr_mod1 else 0x800000)
        lanes.write(s, lreg_dest)
        return DONE


class SFPSETEXP(Instruction, opcode=0x82, unit="vector", stall="B8"):
    """Replace the exponent (SFPSETEXP, Blackhole ISA)."""

    instr_mod1 = bits(3, 0)
    lreg_dest = bits(7, 4)
    lreg_c = bits(11, 8)
    imm12_math = bits(19, 12)

    def execute(
        s: Any, t: Any, instr_mod1: Any, lreg_dest: Any, lreg_c: Any, imm12_math: Any
    ) -> Any:
        status = lanes.claim(s, t, lreg_dest)
        if status != lanes.GO:
            return status
        if instr_mod1 > 2:
            return refuse(s, lanes.MODE_UNSUPPORTED, instr_mod1, 0)
        if instr_mod1 != 1 and imm12_math:
            return refuse(s, lanes.IMMEDIATE, imm12_math, instr_mod1)
        if instr_mod1 == 1:
            _insert(s, lreg_c, 0x807FFFFF, imm12_math << 23)
        elif instr_mod1 == 2:
            _merge(s, lreg_c, 0x807FFFFF, lreg_dest, 0x7F800000)
        else:
            x, y, out = s.lreg[lreg_c], s.lreg[lreg_dest], s.lane_tmp[lanes.VALUE]
            for lane in range(lanes.LANES):
                field = _U(_U(y[lane] << _U(23)) & _EXPONENT)
                out[lane] = _U(_U(x[lane] & ~_EXPONENT) | field)
        lanes.write(s, lreg_dest)
        return DONE


class SFPSETMAN(Instruction, opcode=0x83, unit="vector", stall="B8"):
    """Replace the mantissa (SFPSETMAN, Blackhole ISA)."""

    instr_mod1 = bits(3, 0)
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
            return refuse(s, lanes.MODE_UNSUPPORTED, instr_mod1, 0)
        if imm12_math:
            return refuse(s, lanes.IMMEDIATE, imm12_math, instr_mod1)
        _merge(s, lreg_c, 0xFF800000, lreg_dest, 0 if instr_mod1 else 0x7FFFFF)
        lanes.write(s, lreg_dest)
        return DONE


class SFPSETSGN(Instruction, opcode=0x89, unit="vector", stall="B8"):
    """Replace the sign (SFPSETSGN, Blackhole ISA)."""

    instr_mod1 = bits(3, 0)
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
            return refuse(s, lanes.MODE_RESERVED, instr_mod1, 0)
        if instr_mod1 == 0 and imm12_math:
            return refuse(s, lanes.IMMEDIATE, imm12_math, instr_mod1)
        if instr_mod1:
            _insert(s, lreg_c, 0x7FFFFFFF, imm12_math << 31)
        else:
            _merge(s, lreg_c, 0x7FFFFFFF, lreg_dest, 0x80000000)
        lanes.write(s, lreg_dest)
        return DONE


class SFPCAST(Instruction, opcode=0x90, unit="vector", stall="B8"):
    """Convert between integer and floating-point forms (SFPCAST, Blackhole ISA)."""

    instr_mod1 = bits(3, 0)
    lreg_dest = bits(7, 4)
    lreg_src_c = bits(11, 8)

    def execute(s: Any, t: Any, instr_mod1: Any, lreg_dest: Any, lreg_src_c: Any) -> Any:
        status = lanes.claim(s, t, lreg_dest)
        if status != lanes.GO:
            return status
        if instr_mod1 > 3:
            return refuse(s, lanes.MODE_RESERVED, instr_mod1, 0)
        if instr_mod1 == 1 or instr_mod1 == 2:
            return refuse(s, _CAST_RANDOM if instr_mod1 == 1 else _CAST_ABS, instr_mod1, 0)
        x, out = s.lreg[lreg_src_c], s.lane_tmp[lanes.VALUE]
        if instr_mod1:  # sign-magnitude to two's complement and back
            for lane in range(lanes.LANES):
                negative = _U(_SIGN | _U((-np.int64(x[lane])) & 0x7FFFFFFF))
                out[lane] = negative if x[lane] >= _SIGN else x[lane]
        else:  # sign-magnitude to fp32, nearest even
            for lane in range(lanes.LANES):
                magnitude = np.float32(_I(x[lane] & ~_SIGN))
                out[lane] = _U(_U(x[lane] & _SIGN) | _U(magnitude.view(np.int32)))
        lanes.write(s, lreg_dest)
        return DONE


@njit(inline="always")
def _to_bf16(x: Any) -> Any:
    """Nearest bf16, half away from zero; denormals are +0, NaN is an infinity."""
    field = _U(x & _EXPONENT)
    infinite = _U(x & ~_FRACTION)
    rounded = infinite if field == _EXPONENT else _U(_U(x + _U(0x8000)) & _U(0xFFFF0000))
    return _ZERO if field == _ZERO else rounded


@njit(inline="always")
def _to_integer(x: Any, keep: Any, limit: Any) -> Any:
    """Nearest sign-magnitude integer, half away from zero, up to `limit`; `keep` = sign bit."""
    field = _U(_U(x & _EXPONENT) >> _U(23))
    # One bit below the binary point decides.
    distance = _U(_I(_I(_BIAS + 22) - _I(field)) & _I(31))
    doubled = _U(_U(_U(x & _FRACTION) | _HIDDEN) >> distance)
    magnitude = min(_U(_U(doubled + _ONE) >> _ONE), limit)
    magnitude = limit if field >= _U(_BIAS + 16) else magnitude
    return _ZERO if field < _U(_BIAS - 1) else _U(_U(x & keep) | magnitude)


@njit
def _step_enabled(s: Any) -> None:
    """The random state of every enabled lane steps, whether or not the mode uses it."""
    state, flags, on = s.prng, s.cc, lanes.unmasked(s)
    for lane in range(lanes.LANES):
        take = _U(flags[lane] | on) != _ZERO
        state[lane] = _U(prng.step(np.int64(state[lane]))) if take else state[lane]


@njit
def _round_refused(s: Any, mod: Any, imm: Any, rnd_mode: Any) -> Any:
    """DONE, or why SFP_STOCH_RND is refused."""
    if mod > 7 and mod != 12 and mod != 13:
        return refuse(s, lanes.MODE_UNDEFINED, mod, 0)
    if mod != 1 and mod != 2 and mod != 3 and mod != 6 and mod != 7:
        return refuse(s, _ROUND_FORMAT, mod, 0)
    if imm:
        return refuse(s, _ROUND_SCALE, imm, 0)
    return refuse(s, _ROUND_MODE, rnd_mode, 0) if rnd_mode else DONE


class SFP_STOCH_RND(Instruction, opcode=0x8E, unit="vector", stall="B8"):
    """Round to a narrower format (SFPSTOCHRND, Blackhole ISA)."""

    instr_mod1 = bits(3, 0)
    lreg_dest = bits(7, 4)
    lreg_src_c = bits(11, 8)
    lreg_src_b = bits(15, 12)
    imm8_math = bits(20, 16)
    rnd_mode = bits(22, 21)

    def execute(
        s: Any,
        t: Any,
        instr_mod1: Any,
        lreg_dest: Any,
        lreg_src_c: Any,
        lreg_src_b: Any,
        imm8_math: Any,
        rnd_mode: Any,
    ) -> Any:
        status = lanes.claim(s, t, lreg_dest)
        if status != lanes.GO:
            return status
        refused = _round_refused(s, instr_mod1, imm8_math, rnd_mode)
        if refused != DONE:
            return refused
        _step_enabled(s)
        x, out = s.lreg[lreg_src_c], s.lane_tmp[lanes.VALUE]
        if instr_mod1 == 1:
            for lane in range(lanes.LANES):
                out[lane] = _to_bf16(x[lane])
        else:
            size = 16 if instr_mod1 & 4 else 8
            signed = instr_mod1 & 1
            keep, limit = _U(signed << 31), _U((1 << (size - signed)) - 1)
            for lane in range(lanes.LANES):
                out[lane] = _to_integer(x[lane], keep, limit)
        lanes.write(s, lreg_dest)
        return DONE
