"""Vector unit (SFPU): multiplication of 23-bit integers on the floating-point data path."""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.operand import flags
from bhemu.tensix import lanes
from bhemu.tensix.insn import Instruction
from bhemu.tensix.quirks import violated
from bhemu.tensix.status import DONE, NCB, error
from bhemu.tensix.units.vector import doubts, indirect, sfpu
from bhemu.tensix.units.vector.arith import LREG_ZERO as _LREG_ZERO
from bhemu.tensix.units.vector.fields import ThreeSources
from bhemu.tensix.units.vector.sfpu import VA, VD

_U = np.uint32
_ZERO, _ONE = _U(0), _U(1)
_LOW12 = _U(0xFFF)
_LOW23 = _U(0x7FFFFF)
_UPPER = 1  # mode bit

_NO_ADDEND = error(
    "VECTOR-MUL24-ADDEND",
    NCB,
    "SFPMUL24 names LReg[{reg}] as lreg_src_c: it must be LReg[9], the constant 0",
    "name LReg[9] as lreg_src_c; silicon adds a shifted mantissa of the register's floats",
)


@njit(inline="always")
def _product23(a: Any, b: Any, high: Any) -> Any:
    """Low 23 bits of the product of two 23-bit integers, or (high = 1) the 23 bits above them."""
    ah, al = _U(_U(a & _LOW23) >> _U(12)), _U(a & _LOW12)
    bh, bl = _U(_U(b & _LOW23) >> _U(12)), _U(b & _LOW12)
    low = _U(al * bl)
    middle = _U(_U(ah * bl) + _U(al * bh) + _U(low >> _U(12)))
    above = _U(_U(_U(ah * bh) << _ONE) + _U(middle >> _U(11)))
    below = _U(_U(_U(middle & _U(0x7FF)) << _U(12)) | _U(low & _LOW12))
    return above if high != _ZERO else below


@njit(inline="always")
def _shift_add(product: Any, z: Any) -> Any:
    """The product after the addition of `z` on the floating-point data path (Mul24ShiftAdd)."""
    exponent = _U(_U(z >> _U(23)) & _U(0xFF))
    most = max(exponent, _U(129))
    by = _U(_U(most - exponent) & _U(31))
    addend = _U(_U(_U(z & _LOW23) | _U(1 << 23)) << _U(3))
    aligned = _U(addend >> by)
    kept = _U(product >> _U(_U(most - _U(129)) & _U(31)))
    lost = _U(_U(aligned << by) ^ addend)
    carry = _U(1 << 16) if lost > _U(0xFFFF) else _ZERO
    added = _U(_U(kept + aligned + carry) & _LOW23) if aligned != _ZERO else kept
    return added if exponent != _ZERO else product


class SFPMUL24(ThreeSources, Instruction, opcode=0x98, unit="vector", facts=sfpu.FACTORS):
    """Multiply 23-bit integers (SFPMUL24, Blackhole ISA)."""

    instr_mod1 = ThreeSources.instr_mod1.meaning(
        flags(
            *(
                "the high 23 bits of the product",
                "",
                "LReg[7] names A",
                "LReg[7] names the destination",
            )
        )
    )

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = lanes.claim_mode(s, t, f, 2, 0)
        if status != lanes.GO:
            return status
        if f.lreg_src_c != _LREG_ZERO:
            status = violated(s, _NO_ADDEND, reg=f.lreg_src_c)
            if status:
                return status
        return _multiply(s, f)

    def doubts(s: Any, t: Any, f: Any) -> Any:
        return doubts.factors(s, f)


@njit
def _multiply(s: Any, f: Any) -> Any:
    mod = f.instr_mod1
    if mod & (VA | VD):
        status = indirect.refused(s)
        if status != DONE:
            return status
    if mod & VA:
        indirect.source(s)
    x = s.lane_tmp[indirect.FACTOR] if mod & VA else s.lreg[f.lreg_src_a & 15]
    y, out = s.lreg[f.lreg_src_b & 15], s.lane_tmp[lanes.VALUE]
    high = _ONE if mod & _UPPER else _ZERO
    for lane in range(lanes.LANES):
        out[lane] = _product23(x[lane], y[lane], high)
    if f.lreg_src_c != _LREG_ZERO:
        z = s.lreg[f.lreg_src_c & 15]
        for lane in range(lanes.LANES):
            out[lane] = _shift_add(out[lane], z[lane])
    indirect.write(s, mod, f.lreg_dest)
    return DONE
