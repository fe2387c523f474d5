"""Vector unit (SFPU): integer and bit operations, condition codes and comparisons."""

from typing import Any

import numpy as np

from bhemu.bits import choice, flags, number
from bhemu.jit.subset import njit
from bhemu.tensix import lanes, spaces
from bhemu.tensix.insn import Instruction, bits
from bhemu.tensix.rules import DONE, NCB, UB, UNSUPPORTED, error, refuse, undefined
from bhemu.tensix.spaces import CC, LANES, lreg
from bhemu.tensix.units.vector import sfpu

_U, _I = np.uint32, np.int32
_ZERO, _ONE, _ALL = _U(0), _U(1), _U(0xFFFFFFFF)
_SIGN = _U(0x80000000)

_SHIFT_MODE = error("VECTOR-SHIFT-MODE", NCB, "SFPSHFT mode {mode}: only 0-3 (LReg[lreg_dest]) and 5, 7 (LReg[lreg_c] by the immediate) exist", "silicon ignores bit 3, and bit 2 without bit 0")  # fmt: skip
_NO_REGISTER = error("VECTOR-BITS-REGISTER", UNSUPPORTED, "imm12_math is {immediate}, which mode {mode} does not read", "set instr_mod1 to 1 to name the register in imm12_math, or leave it 0")  # fmt: skip


@njit(inline="always")
def _wrap(x: Any) -> Any:
    """Low 32 bits of an int64."""
    return _U(x & 0xFFFFFFFF)


@njit
def signed12(imm: Any) -> Any:
    """A 12-bit immediate as a signed integer."""
    return imm - ((imm & 0x800) << 1)


class SFPIADD(sfpu.SourceAndImmediate, opcode=0x79, facts=sfpu.NOTICES_VC):
    """Integer addition and subtraction (SFPIADD, Blackhole ISA)."""

    reads = (
        lreg("lreg_c")
        | lreg("lreg_dest").unless("instr_mod1 & 1")
        | CC.when("instr_mod1 > 11")
        | LANES
    )
    writes = lreg("lreg_dest") | CC.unless("instr_mod1 & 12 == 4")

    instr_mod1 = sfpu.SourceAndImmediate.instr_mod1.meaning("""
        [1:0] 0: LReg[lreg_c] + LReg[lreg_dest]
        [1:0] 1, 3: LReg[lreg_c] + imm12_math
        [1:0] 2: LReg[lreg_c] - LReg[lreg_dest]
        [3:2] 0: flags where the result is negative
        [3:2] 1: the flags stay
        [3:2] 2: flags where the result is not negative
        [3:2] 3: the flags are complemented""")

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = lanes.claim(s, t, f.lreg_dest)
        if status != lanes.GO:
            return status
        # Scratch value = c plus or minus a second operand, scratch flag = its sign test.
        x, y, mod = s.lreg[f.lreg_c & 15], s.lreg[f.lreg_dest & 15], f.instr_mod1
        out, flag = s.lane_tmp[lanes.VALUE], s.lane_tmp[lanes.FLAG]
        if mod & 1:
            second = signed12(f.imm12_math)
            for lane in range(lanes.LANES):
                out[lane] = _wrap(np.int64(x[lane]) + second)
        elif mod & 2:
            for lane in range(lanes.LANES):
                out[lane] = _wrap(np.int64(x[lane]) - np.int64(y[lane]))
        else:
            for lane in range(lanes.LANES):
                out[lane] = _wrap(np.int64(x[lane]) + np.int64(y[lane]))
        positive = _ONE if mod & 8 else _ZERO  # flag when the sign bit is clear
        for lane in range(lanes.LANES):
            flag[lane] = _U(out[lane] >> _U(31)) ^ positive
        lanes.write(s, f.lreg_dest)
        if f.instr_mod1 >= 12:
            lanes.complement_flags(s)
        if f.instr_mod1 & 8 or f.instr_mod1 & 4 == 0:
            lanes.write_result_flags(s, f.lreg_dest)
        return DONE


@njit
def shift(s: Any, source: Any, by: Any, arithmetic: Any) -> None:
    """Scratch value = LReg[source] shifted by the signed amounts `by`, (32,) uint32, modulo 32.

    Negative amounts shift right, with copies of the sign when `arithmetic` is not 0.
    """
    x, out = s.lreg[source & 15], s.lane_tmp[lanes.VALUE]
    keep = _SIGN if arithmetic else _ZERO
    for lane in range(lanes.LANES):
        left = _U(by[lane] & _U(31))
        right = _U(_U(_U(32) - left) & _U(31))
        fill = _U(_I(x[lane] & keep) >> _I(right))  # copies of the sign above the shifted bits
        down = _U(_U(x[lane] >> right) | fill)
        out[lane] = _U(x[lane] << left) if _U(by[lane] & _SIGN) == _ZERO else down


class SFPSHFT(sfpu.SourceAndImmediate, opcode=0x7A, facts=sfpu.NOTICES_VC):
    """Shift lanes by a register or immediate (SFPSHFT, Blackhole ISA)."""

    reads = (
        lreg("lreg_c").unless("instr_mod1 & 5 == 1")
        | lreg("lreg_dest").unless("instr_mod1 & 5 == 5")
        | LANES
    )
    writes = lreg("lreg_dest")

    instr_mod1 = sfpu.SourceAndImmediate.instr_mod1.meaning("""left; by a negative distance right
        0: LReg[lreg_dest] by LReg[lreg_c]
        1: LReg[lreg_dest] by imm12_math
        2: LReg[lreg_dest] by LReg[lreg_c], arithmetic
        3: LReg[lreg_dest] by imm12_math, arithmetic
        5: LReg[lreg_c] by imm12_math
        7: LReg[lreg_c] by imm12_math, arithmetic""")

    def execute(s: Any, t: Any, f: Any) -> Any:
        instr_mod1 = f.instr_mod1
        status = lanes.claim(s, t, f.lreg_dest)
        if status != lanes.GO:
            return status
        if instr_mod1 > 3 and instr_mod1 != 5 and instr_mod1 != 7:
            status = undefined(s, _SHIFT_MODE, mode=instr_mod1)
            if status:
                return status
            instr_mod1 &= 7
        if instr_mod1 & 1 == 0 and f.imm12_math:
            return refuse(s, lanes.IMMEDIATE, immediate=f.imm12_math, mode=instr_mod1)
        source = f.lreg_c if instr_mod1 & 5 == 5 else f.lreg_dest
        amounts = s.lreg[f.lreg_c & 15]
        if instr_mod1 & 1:
            amounts = s.lane_tmp[lanes.FLAG]
            amounts[:] = _wrap(signed12(f.imm12_math))
        shift(s, source, amounts, instr_mod1 & 2)
        return lanes.write(s, f.lreg_dest)


@njit
def _combine(s: Any, t: Any, f: Any, both: Any) -> Any:
    """SFPAND (`both`) and SFPOR; mode 1 takes one operand from LReg[imm12_math]."""
    status = lanes.claim_mode(s, t, f, 0, 14)
    if status != lanes.GO:
        return status
    if f.instr_mod1 == 0 and f.imm12_math:
        return refuse(s, _NO_REGISTER, immediate=f.imm12_math, mode=f.instr_mod1)
    other = f.imm12_math if f.instr_mod1 else f.lreg_dest
    x, y, out = s.lreg[other & 15], s.lreg[f.lreg_c & 15], s.lane_tmp[lanes.VALUE]
    for lane in range(lanes.LANES):
        out[lane] = _U(x[lane] & y[lane]) if both else _U(x[lane] | y[lane])
    return lanes.write(s, f.lreg_dest)


class _Combines(sfpu.TwoSources):
    """Two LRegs that are combined bit by bit."""

    instr_mod1 = sfpu.TwoSources.instr_mod1.meaning(
        choice("with LReg[lreg_dest]", "with LReg[imm12_math]")
    )


class SFPAND(_Combines, opcode=0x7E, facts=sfpu.LOGIC):
    """Bitwise and (SFPAND, Blackhole ISA)."""

    def execute(s: Any, t: Any, f: Any) -> Any:
        return _combine(s, t, f, True)


class SFPOR(_Combines, opcode=0x7F, facts=sfpu.LOGIC):
    """Bitwise or (SFPOR, Blackhole ISA)."""

    def execute(s: Any, t: Any, f: Any) -> Any:
        return _combine(s, t, f, False)


class SFPNOT(Instruction, opcode=0x80, unit="vector", facts=sfpu.NOTICES_VC, macro=sfpu.NO_MODE):
    """Bitwise complement (SFPNOT, Blackhole ISA)."""

    reads = lreg("lreg_c") | LANES
    writes = lreg("lreg_dest")

    lreg_dest = bits(7, 4, sfpu.LREG)
    lreg_c = bits(11, 8, sfpu.LREG)

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = lanes.claim(s, t, f.lreg_dest)
        if status != lanes.GO:
            return status
        x, out = s.lreg[f.lreg_c & 15], s.lane_tmp[lanes.VALUE]
        for lane in range(lanes.LANES):
            out[lane] = _U(~x[lane])
        return lanes.write(s, f.lreg_dest)


class SFPXOR(Instruction, opcode=0x8D, unit="vector", facts=sfpu.NOTICES_VD_VC, macro=sfpu.NO_MODE):
    """Bitwise exclusive-or (SFPXOR, Blackhole ISA)."""

    reads = lreg("lreg_c") | lreg("lreg_dest") | LANES
    writes = lreg("lreg_dest")

    lreg_dest = bits(7, 4, sfpu.LREG)
    lreg_c = bits(11, 8, sfpu.LREG)

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = lanes.claim(s, t, f.lreg_dest)
        if status != lanes.GO:
            return status
        x, y, out = s.lreg[f.lreg_dest & 15], s.lreg[f.lreg_c & 15], s.lane_tmp[lanes.VALUE]
        for lane in range(lanes.LANES):
            out[lane] = _U(x[lane] ^ y[lane])
        return lanes.write(s, f.lreg_dest)


class SFPLZ(sfpu.OneSource, opcode=0x81, facts=sfpu.NOTICES_VC, macro=sfpu.NO_IMMEDIATE):
    """Count leading zeros (SFPLZ, Blackhole ISA)."""

    reads = lreg("lreg_c") | CC.when("instr_mod1 & 10 == 8") | LANES
    writes = lreg("lreg_dest") | CC.when("instr_mod1 & 10")

    instr_mod1 = sfpu.OneSource.instr_mod1.meaning(
        sfpu.with_flags(
            {0: "of all 32 bits", 4: "of the bits below the sign"}, "a bit is set", "none is set"
        )
    )

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = lanes.claim_mode(s, t, f, 1, 0)
        if status != lanes.GO:
            return status
        x, out, flag = s.lreg[f.lreg_c & 15], s.lane_tmp[lanes.VALUE], s.lane_tmp[lanes.FLAG]
        keep, zero = _U(0x7FFFFFFF if f.instr_mod1 & 4 else 0xFFFFFFFF), _U(f.instr_mod1 >> 3)
        for lane in range(lanes.LANES):
            value = _U(x[lane] & keep)
            out[lane] = lanes.leading_zeros(value)
            flag[lane] = _U(_ONE if value != _ZERO else _ZERO) ^ zero
        if f.instr_mod1 & 2 == 0:
            lanes.complement_flags(s)
        lanes.write(s, f.lreg_dest)
        if f.instr_mod1 & 10:
            lanes.write_result_flags(s, f.lreg_dest)
        return DONE


class SFPABS(sfpu.OneSource, opcode=0x7D, facts=sfpu.NOTICES_VC, macro=sfpu.NO_IMMEDIATE):
    """Absolute value (SFPABS, Blackhole ISA)."""

    instr_mod1 = sfpu.OneSource.instr_mod1.meaning(choice("of an integer", "of a float"))

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = lanes.claim_mode(s, t, f, 14, 0)
        if status != lanes.GO:
            return status
        x, out = s.lreg[f.lreg_c & 15], s.lane_tmp[lanes.VALUE]
        if f.instr_mod1:  # float: a negative NaN stays as it is
            for lane in range(lanes.LANES):
                out[lane] = _U(x[lane] & ~_SIGN) if x[lane] <= _U(0xFF800000) else x[lane]
        else:
            for lane in range(lanes.LANES):
                out[lane] = _wrap(-np.int64(x[lane])) if x[lane] >= _SIGN else x[lane]
        return lanes.write(s, f.lreg_dest)


# Condition codes and comparisons.

_DEPTH = 8  # entries of the condition-code stack

# Mode bits of SFPENCC
_INVERT_ENABLE, _SET_ENABLE, _SET_FLAGS = 1, 2, 8
# Mode bits of SFPGT and SFPLE
_SET_CC, _MUTATE_STACK, _MUTATE_OR, _SET_VD = 1, 2, 4, 8
# Mode bits of SFPSETCC
_IMMEDIATE, _CLEAR = 1, 8

_OVERFLOW = error("VECTOR-CC-OVERFLOW", UB, "SFPPUSHC with {depth} entries on the condition-code stack, which holds no more", "match every SFPPUSHC with an SFPPOPC")  # fmt: skip
_UNDERFLOW = error("VECTOR-CC-UNDERFLOW", UB, "SFPPOPC with nothing on the condition-code stack", "match every SFPPOPC with an SFPPUSHC")  # fmt: skip
_NO_TOP = error("VECTOR-CC-TOP", UB, "SFPPUSHC mode {mode} changes the top of the condition-code stack, which is empty", "push first (mode 0)")  # fmt: skip


class SFPSETCC(sfpu.OneSource, opcode=0x7B, facts=sfpu.Sfpu(notices="VC")):
    """Set the condition codes from a comparison with zero (SFPSETCC, Blackhole ISA)."""

    reads = lreg("lreg_c").unless("instr_mod1 & 9") | LANES
    writes = CC

    lreg_dest = sfpu.OneSource.lreg_dest.meaning(sfpu.NO_TARGET)
    instr_mod1 = sfpu.OneSource.instr_mod1.meaning("""while flags are not in use: flags = 0
    0: flags where LReg[lreg_c] is negative
    1, 3, 5, 7: flags = imm12_math
    2: flags where it is not 0
    4: flags where it is not negative
    6: flags where it is 0
    8-15: flags = 0""")
    imm12_math = bits(12, 12, number("flags of the modes that take it"))

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = lanes.claim_none(s, t, f.lreg_dest)
        if status != lanes.GO:
            return status
        same = f.instr_mod1 & (_IMMEDIATE | _CLEAR)  # the immediate or 0 in all enabled lanes
        if f.imm12_math and same != _IMMEDIATE:
            return refuse(s, lanes.IMMEDIATE, immediate=f.imm12_math, mode=f.instr_mod1)
        if s.cc_en[0] == 0:
            lanes.set_flags(s, 0)
            return DONE
        x, flag = s.lreg[f.lreg_c & 15], s.lane_tmp[lanes.FLAG]
        invert = _U(f.instr_mod1 == 4 or f.instr_mod1 == 2)
        if same:
            flag[:] = _ZERO if same & _CLEAR else _U(f.imm12_math)
        elif f.instr_mod1 & 2:
            for lane in range(lanes.LANES):
                flag[lane] = _U(_ONE if x[lane] == _ZERO else _ZERO) ^ invert
        else:
            for lane in range(lanes.LANES):
                flag[lane] = _U(x[lane] >> _U(31)) ^ invert
        lanes.write_flags(s)
        return DONE


class SFPENCC(sfpu.NoTarget, opcode=0x8A, facts=sfpu.CONDITION, macro=sfpu.NO_SOURCE):
    """Enable, disable and set the condition codes (SFPENCC, Blackhole ISA)."""

    reads = CC.when("instr_mod1 & 3 == 1") | LANES.when("lreg_dest > 11")
    writes = CC

    instr_mod1 = sfpu.Target.instr_mod1.meaning("""
    [1:0] 0: the use of flags stays as it is
    [1:0] 1: the use of flags is toggled
    [1:0] 2, 3: the use of flags = bit 0 of imm12_math
    [3] 0: flags = 1
    [3] 1: flags = bit 1 of imm12_math""")
    imm12_math = bits(13, 12, flags("flags are in use", "flags = 1"))

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = lanes.claim_none(s, t, f.lreg_dest)
        if status != lanes.GO:
            return status
        if f.instr_mod1 & 4:
            return refuse(s, lanes.MODE_UNNAMED, mode=f.instr_mod1)
        if f.imm12_math and f.instr_mod1 & (_SET_ENABLE | _SET_FLAGS) == 0:
            return refuse(s, lanes.IMMEDIATE, immediate=f.imm12_math, mode=f.instr_mod1)
        if f.instr_mod1 & _SET_ENABLE:
            s.cc_en[0] = f.imm12_math & 1
        elif f.instr_mod1 & _INVERT_ENABLE:
            s.cc_en[0] = 1 - s.cc_en[0]
        lanes.set_flags(s, (f.imm12_math >> 1) & 1 if f.instr_mod1 & _SET_FLAGS else 1)
        return DONE


# What modes 1 to 15 of SFPPUSHC and SFPPOPC make of two flags a, b
_RESULTS = (
    *("b", "not b", "a and b", "a or b", "a and not b", "a or not b", "b and not a"),
    *("b or not a", "neither a nor b", "not both", "either a or b", "a same as b", "not b"),
    *("1, in use", "0, in use"),
)
# The same: bit 2 * a + b.
_COMBINED = (0, 0xA, 0x5, 0x8, 0xE, 0x4, 0xD, 0x2, 0xB, 0x1, 0x7, 0x6, 0x9, 0x5, 0xF, 0x0)
_TRUTH = np.array(_COMBINED, np.int64)
_INVERT, _TRUE = 13, 14  # from 14 on both flag and enable become constants
_NOT_A = 0x3


class SFPPUSHC(sfpu.NoTarget, opcode=0x87, facts=sfpu.CONDITION, macro=sfpu.NO_SOURCE):
    """Push the condition codes, or change the top of their stack (SFPPUSHC, Blackhole ISA)."""

    reads = (
        CC.unless("instr_mod1 > 13")
        | spaces.STACK.when("2 < instr_mod1 < 13")
        | spaces.DEPTH
        | LANES.when("lreg_dest > 11")
    )
    writes = CC.when("instr_mod1 == 13") | spaces.STACK | spaces.DEPTH.unless("instr_mod1")

    instr_mod1 = sfpu.Target.instr_mod1.meaning(
        choice(
            {
                0: "pushes the flags",
                **{i: f"top of the stack = {text}" for i, text in enumerate(_RESULTS, start=1)},
                _INVERT: "top of the stack and flags = not b",
            },
            about="a: the top of the stack, b: the flags",
        )
    )

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = lanes.claim_none(s, t, f.lreg_dest)
        if status != lanes.GO:
            return status
        if f.instr_mod1:
            # SFPPUSHC modes 1 to 15: the top of the stack (a) combined with the current flags (b).
            if s.cc_depth[0] == 0:
                return refuse(s, _NO_TOP, mode=f.instr_mod1)
            top = (s.cc_depth[0] - 1) & (_DEPTH - 1)
            truth, flags, stacked = _U(_TRUTH[f.instr_mod1 & 15]), s.cc, s.cc_stack[top]
            for lane in range(lanes.LANES):
                stacked[lane] = _U(truth >> _U(_U(stacked[lane] << _ONE) | flags[lane])) & _ONE
            if f.instr_mod1 == _INVERT:
                for lane in range(lanes.LANES):
                    flags[lane] = stacked[lane]
            s.cc_stack_en[top] = 1 if f.instr_mod1 >= _TRUE else s.cc_en[0]
            return DONE
        depth = s.cc_depth[0]
        if depth >= _DEPTH:
            return refuse(s, _OVERFLOW, depth=depth)
        s.cc_stack_en[depth] = s.cc_en[0]
        for lane in range(lanes.LANES):
            s.cc_stack[depth, lane] = s.cc[lane]
        s.cc_depth[0] = depth + 1
        return DONE


class SFPPOPC(sfpu.NoTarget, opcode=0x88, facts=sfpu.CONDITION, macro=sfpu.NO_SOURCE):
    """Pop the condition codes, or combine them with the top (SFPPOPC, Blackhole ISA)."""

    reads = (
        CC.when("2 < instr_mod1 < 14")
        | spaces.STACK.unless("instr_mod1 > 12")
        | spaces.DEPTH
        | LANES.when("lreg_dest > 11")
    )
    writes = CC | spaces.DEPTH.unless("instr_mod1")

    instr_mod1 = sfpu.Target.instr_mod1.meaning(
        choice(
            {
                0: "pops the flags",
                **{i: f"flags = {text}" for i, text in enumerate(_RESULTS, start=1)},
                _INVERT: "flags = not a",
            },
            about="a: the flags, b: the top of the stack, which stays",
        )
    )

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = lanes.claim_none(s, t, f.lreg_dest)
        if status != lanes.GO:
            return status
        mod, depth, flags = f.instr_mod1, s.cc_depth[0], s.cc
        top = (depth - 1) & (_DEPTH - 1)
        if mod:
            # Modes 1 to 15: the current flags (a) combined with the top of the stack (b). An empty
            # stack shows flags 0, not in use; mode 13 only inverts the current flags.
            stacked, held = s.cc_stack[top], _U(1 if depth else 0)
            truth = _U(_NOT_A if mod == _INVERT else _TRUTH[mod & 15])
            for lane in range(lanes.LANES):
                b = _U(stacked[lane] & held)
                flags[lane] = _U(truth >> _U(_U(flags[lane] << _ONE) | b)) & _ONE
            if mod >= _TRUE:
                s.cc_en[0] = 1
            elif mod != _INVERT:
                s.cc_en[0] = s.cc_stack_en[top] if depth else 0
            return DONE
        if depth == 0:
            return _UNDERFLOW
        s.cc_en[0] = s.cc_stack_en[top]
        for lane in range(lanes.LANES):
            s.cc[lane] = s.cc_stack[top, lane]
        s.cc_depth[0] = top
        return DONE


class SFPCOMPC(
    Instruction, opcode=0x8B, unit="vector", facts=sfpu.CONDITION, macro=sfpu.ALL_BUT_TARGET
):
    """Complement the condition codes (SFPCOMPC, Blackhole ISA).

    All become 0 while they are not in use, or were not when the top of the stack was pushed.
    """

    reads = CC | spaces.STACK | spaces.DEPTH | LANES.when("lreg_dest > 11")
    writes = CC

    lreg_dest = bits(7, 4, sfpu.NO_TARGET)

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = lanes.claim_none(s, t, f.lreg_dest)
        if status != lanes.GO:
            return status
        if s.cc_depth[0] == 0:
            used = _U(1 if s.cc_en[0] else 0)
            for lane in range(lanes.LANES):
                s.cc[lane] = _U(_U(s.cc[lane] ^ _ONE) & used)
            return DONE
        top = (s.cc_depth[0] - 1) & (_DEPTH - 1)
        used = _U(1 if s.cc_en[0] and s.cc_stack_en[top] else 0)
        for lane in range(lanes.LANES):
            s.cc[lane] = _U(_U(s.cc_stack[top, lane] & used) & _U(s.cc[lane] ^ _ONE))
        return DONE


@njit
def _compare(s: Any, t: Any, f: Any, greater: Any) -> Any:
    """SFPGT (`greater` = 1) and SFPLE (0) of LReg[dest] with LReg[c].

    Mode bit 0 sets the condition codes, bit 3 writes all ones or 0, bit 1 changes the top of the
    stack in all lanes, by and, or (bit 2) by or.
    """
    mod, dest = f.instr_mod1, f.lreg_dest
    target = lanes.target(s, dest)
    constant = lanes.WRITABLE <= target < lanes.TEMPLATES  # compared, not written
    if mod & _SET_VD or not constant:
        status = lanes.claim(s, t, dest)
        if status != lanes.GO:
            return status
    x, y = s.lreg[dest & 15], s.lreg[f.lreg_c & 15]
    flag, out = s.lane_tmp[lanes.FLAG], s.lane_tmp[lanes.VALUE]
    above, other = _U(greater), _U(1 - greater)
    for lane in range(lanes.LANES):
        flag[lane] = above if lanes.order(x[lane]) > lanes.order(y[lane]) else other
    if mod & _SET_VD:
        for lane in range(lanes.LANES):
            out[lane] = _ALL if flag[lane] != _ZERO else _ZERO
        lanes.write(s, dest)
    if mod & _MUTATE_STACK and s.cc_depth[0]:
        top = s.cc_stack[(s.cc_depth[0] - 1) & (_DEPTH - 1)]
        fill = _ONE if mod & _MUTATE_OR else _ZERO
        for lane in range(lanes.LANES):
            either, both = _U(top[lane] | flag[lane]), _U(top[lane] & flag[lane])
            top[lane] = either if fill != _ZERO else both
    if mod & _SET_CC:
        lanes.write_flags(s)
    return DONE


class _Compares(sfpu.OneSource):
    """Two LRegs that are compared; what is set by it."""

    reads = (
        lreg("lreg_c")
        | lreg("lreg_dest")
        | (spaces.STACK.own() | spaces.DEPTH).when("instr_mod1 & 2")
        | LANES
    )
    writes = (
        lreg("lreg_dest").when("instr_mod1 & 8")
        | CC.when("instr_mod1 & 1")
        | spaces.STACK.when("instr_mod1 & 2")
    )

    instr_mod1 = sfpu.OneSource.instr_mod1.meaning(
        flags(
            "sets the flags",
            "changes the top of the stack in all lanes: and",
            "with bit 1: or in place of and",
            "LReg[lreg_dest] = all ones or 0",
        )
    )


class SFPLE(_Compares, opcode=0x96, facts=sfpu.NOTICES_VD_VC, macro=sfpu.NO_IMMEDIATE):
    """Compare less or equal (SFPLE, Blackhole ISA)."""

    def execute(s: Any, t: Any, f: Any) -> Any:
        return _compare(s, t, f, 0)


class SFPGT(_Compares, opcode=0x97, facts=sfpu.NOTICES_VD_VC, macro=sfpu.NO_IMMEDIATE):
    """Compare greater (SFPGT, Blackhole ISA)."""

    def execute(s: Any, t: Any, f: Any) -> Any:
        return _compare(s, t, f, 1)
