"""Vector unit (SFPU): loads from and stores to Dst, immediates.

Lane l takes part in Dst row (base & ~3) + l/8, column 2*(l & 7) + base[1], where base is the sum of
the address field, RWC.Dst and the math offset.
"""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.operand import choice, number
from bhemu.tensix import lanes, rwc
from bhemu.tensix.insn import Instruction, bits
from bhemu.tensix.quirks import refuse
from bhemu.tensix.status import DONE, UNIMPLEMENTED, UNSUPPORTED, error
from bhemu.tensix.units.vector import datums, doubts, modes
from bhemu.tensix.units.vector.fields import LREG, WIDE_ADDRESS, DstAccess
from bhemu.tensix.units.vector.sfpu import LOAD, STORE, Sfpu, Writes

_U = np.uint32
_ZERO = _U(0)
_HALF = _U(0xFFFF)
_UPPER = _U(0xFFFF0000)
_ABOVE = 0x1C00  # the rest of tt-llk's 13-bit address: negative ones count modulo 1024

_ODD_ADDRESS = error(
    "VECTOR-DST-ODD",
    UNIMPLEMENTED,
    "dest_reg_addr is {address}: bit 0 selects nothing",
    "use an even address",
)
_ODD_ROW = error(
    "VECTOR-DST-ROW",
    UNSUPPORTED,
    "Dst row {row} is odd: address field + RWC.Dst + DEST_TARGET_REG_CFG_MATH_Offset must be even",
    "check the Dst increment of the ADDR_MOD sections and of INCRWC",
)


@njit
def _mode(s: Any, t: Any, f: Any, row: Any) -> Any:
    """Concrete mode of a load or store, or an error."""
    mode = datums.concrete_mode(s, t, f.instr_mod0)
    if mode < 0:
        return mode
    if f.lreg_ind >= lanes.TEMPLATES:
        return refuse(s, lanes.TEMPLATE_LOAD, dest=f.lreg_ind)
    if f.dest_reg_addr & 1:
        return refuse(s, _ODD_ADDRESS, address=f.dest_reg_addr)
    if row & 1:
        return refuse(s, _ODD_ROW, row=row)
    status = rwc.addr_mod_refused(s, t, f.sfpu_addr_mode)
    return status if status else mode


class SFPLOAD(
    DstAccess,
    Instruction,
    opcode=0x70,
    unit="vector",
    unread=_ABOVE,
    macro=WIDE_ADDRESS,
    facts=Sfpu(LOAD),
    formats="sfpu",
    dst_rows=4,
):
    """Load 32 lanes from Dst (SFPLOAD, Blackhole ISA)."""

    instr_mod0 = DstAccess.instr_mod0.meaning(modes.LOADED)

    def execute(s: Any, t: Any, f: Any) -> Any:
        row = rwc.dst_row(s, t, f.dest_reg_addr)
        mode = _mode(s, t, f, row)
        if mode < 0:
            return mode
        if f.lreg_ind < lanes.WRITABLE:  # LReg 8-11: only the counters move
            datums.load_rows(s, t, mode, row, f.lreg_ind)
        rwc.apply_addr_mod_sfpu(s, t, f.sfpu_addr_mode)
        return DONE


class SFPSTORE(
    DstAccess,
    Instruction,
    opcode=0x72,
    unit="vector",
    unread=_ABOVE,
    macro=WIDE_ADDRESS,
    facts=Sfpu(STORE, reads="stored", writes=Writes.NONE),
    formats="sfpu",
):
    """Store 32 lanes to Dst (SFPSTORE, Blackhole ISA)."""

    instr_mod0 = DstAccess.instr_mod0.meaning(modes.STORED)

    def execute(s: Any, t: Any, f: Any) -> Any:
        row = rwc.dst_row(s, t, f.dest_reg_addr)
        mode = _mode(s, t, f, row)
        if mode < 0:
            return mode
        status = datums.store_rows(s, t, mode, row, f.lreg_ind)
        if status == DONE:
            rwc.apply_addr_mod_sfpu(s, t, f.sfpu_addr_mode)
        return status


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


class SFPLOADI(Instruction, opcode=0x71, unit="vector", facts=Sfpu(LOAD)):
    """Load an immediate into all enabled lanes (SFPLOADI, Blackhole ISA)."""

    imm16 = bits(15, 0, number("immediate of 16 bits"))
    instr_mod0 = bits(
        19,
        16,
        choice(
            {
                0: "bf16",
                1: "fp16",
                2: "unsigned",
                4: "signed",
                8: "high half of the LReg, the low one stays",
                10: "low half of the LReg, the high one stays",
            },
            about="what the immediate is",
        ),
        mode=True,
    )
    lreg_ind = bits(23, 20, LREG)

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.lreg_ind >= lanes.WRITABLE:
            return refuse(s, lanes.NOT_WRITABLE, dest=f.lreg_ind)
        value = _immediate(f.instr_mod0, f.imm16)
        if value < 0:
            return refuse(s, lanes.MODE_UNDEFINED, mode=f.instr_mod0)
        keep = _HALF if f.instr_mod0 == 8 else (_UPPER if f.instr_mod0 == 10 else _ZERO)
        old, out, new = s.lreg[f.lreg_ind & 15], s.lane_tmp[lanes.VALUE], _U(value)
        for lane in range(lanes.LANES):
            out[lane] = _U(_U(old[lane] & keep) | new)
        lanes.write(s, f.lreg_ind)
        return DONE

    def doubts(s: Any, t: Any, f: Any) -> Any:
        half = f.instr_mod0 == 8 or f.instr_mod0 == 10
        return doubts.result(s, f.lreg_ind, doubts.of(s, f.lreg_ind) if half else np.int64(0))
