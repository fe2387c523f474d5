"""Vector unit (SFPU): loads from and stores to Dst, immediates.

Lane l takes part in Dst row (base & ~3) + l/8, column 2*(l & 7) + base[1], where base is the sum of
the address field, RWC.Dst and the math offset.
"""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import lanes, rwc
from bhemu.tensix.insn import Instruction, bits
from bhemu.tensix.quirks import refuse
from bhemu.tensix.status import DONE, UNIMPLEMENTED, UNSUPPORTED, error
from bhemu.tensix.units.vector import datums

_U = np.uint32
_ZERO = _U(0)
_HALF = _U(0xFFFF)
_UPPER = _U(0xFFFF0000)
_ABOVE = 0x1C00  # the rest of tt-llk's 13-bit address: negative ones count modulo 1024

_ODD_ADDRESS = error(
    "VECTOR-DST-ODD",
    UNIMPLEMENTED,
    "dest_reg_addr is {0}: bit 0 selects nothing",
    "use an even address",
)
_ODD_ROW = error(
    "VECTOR-DST-ROW",
    UNSUPPORTED,
    "Dst row {0} is odd: address field + RWC.Dst + DEST_TARGET_REG_CFG_MATH_Offset must be even",
    "check the Dst increment of the ADDR_MOD sections and of INCRWC",
)


@njit
def _refused(s: Any, t: Any, reg: Any, address: Any, row: Any, addr_mode: Any) -> Any:
    if reg >= lanes.TEMPLATES:
        return refuse(s, lanes.TEMPLATE_LOAD, reg)
    if address & 1:
        return refuse(s, _ODD_ADDRESS, address)
    if row & 1:
        return refuse(s, _ODD_ROW, row)
    return rwc.addr_mod_refused(s, t, addr_mode)


class SFPLOAD(Instruction, opcode=0x70, unit="vector", stall="B8", unread=_ABOVE):
    """Load 32 lanes from Dst (SFPLOAD, Blackhole ISA)."""

    dest_reg_addr = bits(9, 0)
    sfpu_addr_mode = bits(15, 13)
    instr_mod0 = bits(19, 16, mode=True)
    lreg_ind = bits(23, 20)

    def execute(
        s: Any, t: Any, dest_reg_addr: Any, sfpu_addr_mode: Any, instr_mod0: Any, lreg_ind: Any
    ) -> Any:
        mode = datums.concrete_mode(s, t, instr_mod0)
        if mode < 0:
            return mode
        row = rwc.dst_row(s, t, dest_reg_addr)
        status = _refused(s, t, lreg_ind, dest_reg_addr, row, sfpu_addr_mode)
        if status != DONE:
            return status
        if lreg_ind < lanes.WRITABLE:  # LReg 8-11: only the counters move
            datums.load_rows(s, t, mode, row, lreg_ind)
        rwc.apply_addr_mod_sfpu(s, t, sfpu_addr_mode)
        return DONE


class SFPSTORE(Instruction, opcode=0x72, unit="vector", stall="B8", unread=_ABOVE):
    """Store 32 lanes to Dst (SFPSTORE, Blackhole ISA)."""

    dest_reg_addr = bits(9, 0)
    sfpu_addr_mode = bits(15, 13)
    instr_mod0 = bits(19, 16, mode=True)
    lreg_ind = bits(23, 20)

    def execute(
        s: Any, t: Any, dest_reg_addr: Any, sfpu_addr_mode: Any, instr_mod0: Any, lreg_ind: Any
    ) -> Any:
        mode = datums.concrete_mode(s, t, instr_mod0)
        if mode < 0:
            return mode
        row = rwc.dst_row(s, t, dest_reg_addr)
        status = _refused(s, t, lreg_ind, dest_reg_addr, row, sfpu_addr_mode)
        if status != DONE:
            return status
        datums.store_rows(s, t, mode, row, s.lreg[lreg_ind & 15])
        rwc.apply_addr_mod_sfpu(s, t, sfpu_addr_mode)
        return DONE


@njit
def _immediate(mod: Any, imm: Any) -> Any:
    """Bits that SFPLOADI writes (int64), or -1 for an undefined mode."""
    if mod in (0, 8):  # bf16, upper half
        return imm << 16
    if mod == 1:  # fp16, exponent widened without special cases
        return ((imm & 0x8000) << 16) | (((imm & 0x7FFF) + (112 << 10)) << 13)
    if mod in (2, 10):  # unsigned, lower half
        return imm
    if mod == 4:  # signed
        return imm | ((imm >> 15) * 0xFFFF0000)
    return -1


class SFPLOADI(Instruction, opcode=0x71, unit="vector", stall="B8"):
    """Load an immediate into all enabled lanes (SFPLOADI, Blackhole ISA)."""

    imm16 = bits(15, 0)
    instr_mod0 = bits(19, 16, mode=True)
    lreg_ind = bits(23, 20)

    def execute(s: Any, t: Any, imm16: Any, instr_mod0: Any, lreg_ind: Any) -> Any:
        if lreg_ind >= lanes.WRITABLE:
            return refuse(s, lanes.NOT_WRITABLE, lreg_ind)
        value = _immediate(instr_mod0, imm16)
        if value < 0:
            return refuse(s, lanes.MODE_UNDEFINED, instr_mod0)
        keep = _HALF if instr_mod0 == 8 else (_UPPER if instr_mod0 == 10 else _ZERO)
        old, out, new = s.lreg[lreg_ind & 15], s.lane_tmp[lanes.VALUE], _U(value)
        for lane in range(lanes.LANES):
            out[lane] = _U(_U(old[lane] & keep) | new)
        lanes.write(s, lreg_ind)
        return DONE
