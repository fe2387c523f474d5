"""Vector unit (SFPU): condition codes and comparisons."""

from typing import Any

import numpy as np

from bhemu.tensix import lanes
from bhemu.tensix.insn import Instruction, bits
from bhemu.tensix.quirks import refuse
from bhemu.tensix.status import DONE, UB, UNIMPLEMENTED, UNSUPPORTED, error
from bhemu.tensix.subset import njit

_U = np.uint32
_ZERO, _ONE, _ALL = _U(0), _U(1), _U(0xFFFFFFFF)
_DEPTH = 8  # entries of the condition-code stack

_NOT_IN_USE = error(
    "VECTOR-SETCC-OFF",
    UNSUPPORTED,
    "SFPSETCC while condition codes are not in use",
    "switch them on first (SFPENCC with instr_mod1 10 and bit 0 of the immediate)",
)
_COMPLEMENT_OFF = error(
    "VECTOR-COMPC-OFF",
    UNIMPLEMENTED,
    "SFPCOMPC while condition codes are not in use",
    "switch them on first (SFPENCC with instr_mod1 10 and bit 0 of the immediate)",
)
_COMPLEMENT_STACK = error(
    "VECTOR-COMPC-STACK",
    UNIMPLEMENTED,
    "SFPCOMPC: the top of the stack was pushed while condition codes were not in use",
    "switch condition codes on before SFPPUSHC",
)
_OVERFLOW = error(
    "VECTOR-CC-OVERFLOW",
    UB,
    "SFPPUSHC with {0} entries on the condition-code stack, which holds no more",
    "match every SFPPUSHC with an SFPPOPC",
)
_UNDERFLOW = error(
    "VECTOR-CC-UNDERFLOW",
    UB,
    "SFPPOPC with nothing on the condition-code stack",
    "match every SFPPOPC with an SFPPUSHC",
)


class SFPSETCC(Instruction, opcode=0x7B, unit="vector", stall="B8"):
    """Set the condition codes from a comparison with zero (SFPSETCC, Blackhole ISA)."""

    instr_mod1 = bits(3, 0, mode=True)
    lreg_dest = bits(7, 4)
    lreg_c = bits(11, 8)
    imm12_math = bits(12)

    def execute(
        s: Any, t: Any, instr_mod1: Any, lreg_dest: Any, lreg_c: Any, imm12_math: Any
    ) -> Any:
        status = lanes.claim_none(s, t, lreg_dest)
        if status != lanes.GO:
            return status
        if instr_mod1 & 1 or instr_mod1 > 6:
            return refuse(s, lanes.MODE_UNSUPPORTED, instr_mod1, 0)
        if imm12_math:
            return refuse(s, lanes.IMMEDIATE, imm12_math, instr_mod1)
        if s.cc_en[0] == 0:
            return refuse(s, _NOT_IN_USE, 0, 0)
        x, flag = s.lreg[lreg_c & 15], s.lane_tmp[lanes.FLAG]
        invert = _U(instr_mod1 == 4 or instr_mod1 == 2)
        if instr_mod1 & 2:
            for lane in range(lanes.LANES):
                flag[lane] = _U(_ONE if x[lane] == _ZERO else _ZERO) ^ invert
        else:
            for lane in range(lanes.LANES):
                flag[lane] = _U(x[lane] >> _U(31)) ^ invert
        lanes.write_flags(s)
        return DONE


class SFPENCC(Instruction, opcode=0x8A, unit="vector", stall="B8"):
    """Enable, disable and set the condition codes (SFPENCC, Blackhole ISA)."""

    instr_mod1 = bits(3, 0, mode=True)
    lreg_dest = bits(7, 4)
    imm12_math = bits(13, 12)

    def execute(s: Any, t: Any, instr_mod1: Any, lreg_dest: Any, imm12_math: Any) -> Any:
        status = lanes.claim_none(s, t, lreg_dest)
        if status != lanes.GO:
            return status
        if instr_mod1 == 0:
            if imm12_math:
                return refuse(s, lanes.IMMEDIATE, imm12_math, instr_mod1)
            lanes.set_flags(s, 1)
        elif instr_mod1 == 10:
            lanes.set_flags(s, (imm12_math >> 1) & 1)
            s.cc_en[0] = imm12_math & 1
        else:
            return refuse(s, lanes.MODE_UNIMPLEMENTED, instr_mod1, 0)
        return DONE


class SFPPUSHC(Instruction, opcode=0x87, unit="vector", stall="B8"):
    """Push the condition codes (SFPPUSHC, Blackhole ISA)."""

    instr_mod1 = bits(3, 0, mode=True)
    lreg_dest = bits(7, 4)

    def execute(s: Any, t: Any, instr_mod1: Any, lreg_dest: Any) -> Any:
        status = lanes.claim_none(s, t, lreg_dest)
        if status != lanes.GO:
            return status
        if instr_mod1:
            return refuse(s, lanes.MODE_UNSUPPORTED, instr_mod1, 0)
        depth = s.cc_depth[0]
        if depth >= _DEPTH:
            return refuse(s, _OVERFLOW, depth, 0)
        s.cc_stack_en[depth] = s.cc_en[0]
        for lane in range(lanes.LANES):
            s.cc_stack[depth, lane] = s.cc[lane]
        s.cc_depth[0] = depth + 1
        return DONE


class SFPPOPC(Instruction, opcode=0x88, unit="vector", stall="B8"):
    """Pop the condition codes (SFPPOPC, Blackhole ISA)."""

    instr_mod1 = bits(3, 0, mode=True)
    lreg_dest = bits(7, 4)

    def execute(s: Any, t: Any, instr_mod1: Any, lreg_dest: Any) -> Any:
        status = lanes.claim_none(s, t, lreg_dest)
        if status != lanes.GO:
            return status
        if instr_mod1:
            return refuse(s, lanes.MODE_UNSUPPORTED, instr_mod1, 0)
        if s.cc_depth[0] == 0:
            return refuse(s, _UNDERFLOW, 0, 0)
        top = (s.cc_depth[0] - 1) & (_DEPTH - 1)
        s.cc_en[0] = s.cc_stack_en[top]
        for lane in range(lanes.LANES):
            s.cc[lane] = s.cc_stack[top, lane]
        s.cc_depth[0] = top
        return DONE


class SFPCOMPC(Instruction, opcode=0x8B, unit="vector", stall="B8"):
    """Complement the condition codes (SFPCOMPC, Blackhole ISA)."""

    lreg_dest = bits(7, 4)

    def execute(s: Any, t: Any, lreg_dest: Any) -> Any:
        status = lanes.claim_none(s, t, lreg_dest)
        if status != lanes.GO:
            return status
        if s.cc_en[0] == 0:
            return refuse(s, _COMPLEMENT_OFF, 0, 0)
        if s.cc_depth[0] == 0:
            for lane in range(lanes.LANES):
                s.cc[lane] = _U(s.cc[lane] ^ _ONE)
            return DONE
        top = (s.cc_depth[0] - 1) & (_DEPTH - 1)
        if s.cc_stack_en[top] == 0:
            return refuse(s, _COMPLEMENT_STACK, 0, 0)
        for lane in range(lanes.LANES):
            s.cc[lane] = _U(s.cc_stack[top, lane] & _U(s.cc[lane] ^ _ONE))
        return DONE


@njit
def _compare(s: Any, t: Any, mod: Any, dest: Any, c: Any, greater: Any) -> Any:
    """SFPGT (`greater` = 1) and SFPLE (0) of LReg[dest] with LReg[c].

    Mode 1 sets the condition codes, mode 8 writes all ones or 0.
    """
    status = lanes.claim(s, t, dest)
    if status != lanes.GO:
        return status
    if mod != 1 and mod != 8:
        return refuse(s, lanes.MODE_UNSUPPORTED, mod, 0)
    x, y, flag, out = (
        s.lreg[dest & 15],
        s.lreg[c & 15],
        s.lane_tmp[lanes.FLAG],
        s.lane_tmp[lanes.VALUE],
    )
    above, other = _U(greater), _U(1 - greater)
    for lane in range(lanes.LANES):
        flag[lane] = above if lanes.order(x[lane]) > lanes.order(y[lane]) else other
    if mod == 1:
        lanes.write_flags(s)
    else:
        for lane in range(lanes.LANES):
            out[lane] = _ALL if flag[lane] != _ZERO else _ZERO
        lanes.write(s, dest)
    return DONE


class SFPLE(Instruction, opcode=0x96, unit="vector", stall="B8"):
    """Compare less or equal (SFPLE, Blackhole ISA)."""

    instr_mod1 = bits(3, 0, mode=True)
    lreg_dest = bits(7, 4)
    lreg_c = bits(11, 8)

    def execute(s: Any, t: Any, instr_mod1: Any, lreg_dest: Any, lreg_c: Any) -> Any:
        return _compare(s, t, instr_mod1, lreg_dest, lreg_c, 0)


class SFPGT(Instruction, opcode=0x97, unit="vector", stall="B8"):
    """Compare greater (SFPGT, Blackhole ISA)."""

    instr_mod1 = bits(3, 0, mode=True)
    lreg_dest = bits(7, 4)
    lreg_c = bits(11, 8)

    def execute(s: Any, t: Any, instr_mod1: Any, lreg_dest: Any, lreg_c: Any) -> Any:
        return _compare(s, t, instr_mod1, lreg_dest, lreg_c, 1)
