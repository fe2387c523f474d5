"""Vector unit (SFPU): approximate reciprocal and exponential."""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.operand import choice
from bhemu.tensix import lanes
from bhemu.tensix.insn import Instruction
from bhemu.tensix.quirks import refuse
from bhemu.tensix.status import DONE
from bhemu.tensix.units.vector import doubts
from bhemu.tensix.units.vector.fields import TwoSources
from bhemu.tensix.units.vector.sfpu import Form, Sfpu

_U = np.uint32
_ZERO = _U(0)
_SIGN = _U(0x80000000)
_INFINITY, _ONE = _U(0x7F800000), _U(0x3F800000)
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
    return _ONE if x < _LEAST else value


@njit
def _approximate(s: Any, mod: Any, c: Any, b: Any) -> None:
    x, condition, out = s.lreg[c & 15], s.lreg[b & 15], s.lane_tmp[lanes.VALUE]
    if mod == _RECIPROCAL_MODE:
        for lane in range(lanes.LANES):
            out[lane] = _U(_reciprocal(_U(x[lane] & ~_SIGN)) | _U(x[lane] & _SIGN))
    elif mod == _CONDITIONAL:
        for lane in range(lanes.LANES):
            value = _reciprocal(_U(x[lane] & ~_SIGN))
            out[lane] = value if condition[lane] >= _SIGN else x[lane]
    else:
        for lane in range(lanes.LANES):
            out[lane] = _U(_exponential(_U(x[lane] & ~_SIGN)) | _U(x[lane] & _SIGN))


class SFPARECIP(
    TwoSources, Instruction, opcode=0x99, unit="vector", facts=Sfpu(form=Form.THREE, reads="VB VC")
):
    """Approximate the reciprocal or the exponential (SFPARECIP, Blackhole ISA)."""

    instr_mod1 = TwoSources.instr_mod1.meaning(
        choice(
            {0: "1 / x", 1: "1 / |x| where LReg[imm12_math] is negative, else x"},
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
        _approximate(s, f.instr_mod1, f.lreg_c, f.imm12_math)
        lanes.write(s, f.lreg_dest)
        return DONE

    def doubts(s: Any, t: Any, f: Any) -> Any:
        condition = doubts.of(s, f.imm12_math) if f.instr_mod1 == _CONDITIONAL else 0
        return doubts.result(s, f.lreg_dest, doubts.of(s, f.lreg_c) | condition)
