"""The base class of vector instructions, the fields and modes that they share."""

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from bhemu.bits import Choice, bits, choice, number, table
from bhemu.jit.subset import njit
from bhemu.tensix import insn, lanes, spaces
from bhemu.tensix.insn import Argument, Instruction
from bhemu.tensix.rules import DONE, refuse
from bhemu.tensix.spaces import Clause, lreg
from bhemu.tensix.units import counters

# What SFPLOADMACRO and the stall logic must know of a vector instruction (SFPLOADMACRO, SFPMAD,
# Blackhole ISA): these facts are declared on its class.

# Sub-units, in the order of the bytes of a sequence; the load sub-unit takes nothing scheduled.
SIMPLE, MAD, ROUND, STORE, LOAD, ELSEWHERE = range(6)


class Form(IntEnum):
    """Where a word names its operands."""

    ALIAS = 0  # VB is VD
    THREE = 1  # VA, VB and VC have fields of their own
    LOGIC = 2  # as ALIAS or as THREE, by mode
    IMMEDIATE = 3  # VC is VD
    TABLE = 4  # LRegs that no field names; the destination is in [23:20]
    NONE = 5  # no register operand that a macro could replace


VA, VD = 4, 8  # mode bits: LReg[7] names that operand lane by lane

# Operands by the bit of their field, from [7:4] upwards, and the register of SFPSTORE
OPERANDS = {"VD": 1, "VC": 2, "VB": 4, "VA": 8, "stored": 16}


class Sfpu(NamedTuple):
    """What the hardware's sub-units do with one vector instruction.

    notices: operands of which the stall logic sees it read, as "VB VC"; implied: LRegs (mask) of
    which it sees that, and no field names them.
    """

    sub_unit: int = SIMPLE
    form: Form = Form.ALIAS
    notices: str = ""
    implied: int = 0

    @property
    def noticed(self) -> int:
        """`notices` as a mask of OPERANDS."""
        return sum(OPERANDS[name] for name in self.notices.split())


NOTICES_VC, NOTICES_VD_VC = Sfpu(notices="VC"), Sfpu(notices="VD VC")
CONDITION = Sfpu(form=Form.NONE)
FACTORS = Sfpu(MAD, Form.THREE, notices="VA VB VC")
IMMEDIATE = Sfpu(MAD, Form.IMMEDIATE, notices="VD")
LOGIC = Sfpu(form=Form.LOGIC, notices="VD VC")


# What several of them read and write.

DST_ACCESS = (
    (spaces.DST_ROW | spaces.ADDR_MODS | spaces.DEBUG | spaces.LANES)
    | spaces.cfg("ALU_ACC_CTRL_SFPU_Fp32_enabled", "DEST_SP_BASE_Base")
    | spaces.cfg("ALU_FORMAT_SPEC_REG1_SrcB", "ALU_FORMAT_SPEC_REG_SrcB_*").unless("instr_mod0")
    | spaces.thread_cfg("SFPU_DEST_FMT_*")
)
THREE = (
    lreg("lreg_src_a").unless("instr_mod1 & 4")
    | (spaces.LREGS | spaces.LANE_CONFIG).when("instr_mod1 & 4")
    | (lreg("lreg_src_b") | lreg("lreg_src_c"))
    | (lreg(7) | spaces.LANE_CONFIG).when("instr_mod1 & 8")
)
REPLACES = lreg("lreg_c") | lreg("lreg_dest").unless("instr_mod1 & 1") | spaces.LANES
SPECIAL = spaces.RANDOM.when("lreg_c == 9") | spaces.MACRO | spaces.LANE_CONFIG  # by SFPMOV
PAIRED = lreg("4 + (lreg_dest & 3)") | lreg("4 + (lreg_src_c & 3)")  # by SFPSWAP


def named_dest(mode: str) -> Clause:
    """What a word reads that finds its destination in LReg[7]."""
    return (lreg(7) | spaces.LANE_CONFIG).when(f"{mode} & {VD}")


def result(dest: str, mode: str) -> Clause:
    """The destination, or in some modes the one that LReg[7] names lane by lane."""
    return lreg(dest) | spaces.LREGS.when(f"{mode} & {VD}")


# Field sets that several vector instructions have.

LREG = number("LReg")
NO_TARGET = number("0; 12 to 15: the word becomes a macro template")

# Arguments that tt-llk's macros have for bits that the instruction does not use
NO_IMMEDIATE = (Argument("imm12_math", 23, 12),)
NO_SOURCE = (*NO_IMMEDIATE, Argument("lreg_c", 11, 8))
NO_MODE = (*NO_IMMEDIATE, Argument("instr_mod1", 3, 0))
WIDE_ADDRESS = (Argument("dest_reg_addr", 12, 0),)  # three bits more than are read
ALL_BUT_TARGET = (*NO_SOURCE, Argument("instr_mod1", 3, 0))


class Target(Instruction, unit="vector"):
    """Mode and destination."""

    instr_mod1 = bits(3, 0, number("mode"), mode=True)
    lreg_dest = bits(7, 4).meaning(
        "LReg that is written, and often read; 12 to 15: the word becomes a macro template"
    )


class NoTarget(Target):
    """Mode alone."""

    lreg_dest = Target.lreg_dest.meaning(NO_TARGET)


class OneSource(Target):
    """Also a source, which the simple sub-unit's texts call lreg_c."""

    reads = lreg("lreg_c") | spaces.LANES
    writes = lreg("lreg_dest")

    lreg_c = bits(11, 8, LREG)


class TwoSources(OneSource):
    """Also a register that imm12_math names, in some modes."""

    reads = (
        lreg("lreg_c")
        | lreg("lreg_dest").unless("instr_mod1")
        | lreg("imm12_math").when("instr_mod1")
        | spaces.LANES
    )
    writes = lreg("lreg_dest")

    imm12_math = bits(15, 12, number("LReg that is read in mode 1"))


class SourceAndImmediate(OneSource):
    """Also an immediate of 12 bits."""

    imm12_math = bits(23, 12, number("immediate of 12 bits, signed where it is added or shifts"))


class SourceC(Target):
    """Also a source, which other texts call lreg_src_c."""

    lreg_src_c = bits(11, 8, LREG)


class ThreeSources(SourceC):
    """Also two factors."""

    reads = THREE | spaces.LANES
    writes = result("lreg_dest", "instr_mod1")

    lreg_src_b = bits(15, 12, LREG)
    lreg_src_a = bits(19, 16, LREG)


class DstAccess(Instruction, unit="vector"):
    """Loads from Dst and stores to it."""

    dest_reg_addr = bits(
        9, 0, number("Dst row of 32 datums: bits 9:2 four rows, bit 1 the odd columns")
    )
    sfpu_addr_mode = bits(15, 13, insn.ADDR_MOD)
    instr_mod0 = bits(19, 16, mode=True)
    lreg_ind = bits(23, 20, LREG)

    def advance(s: Any, t: Any, f: Any) -> Any:
        counters.apply_addr_mod_sfpu(s, t, f.sfpu_addr_mode)
        return DONE


# What the modes of vector instructions with many of them stand for (bits.py).


def with_flags(kinds: Mapping[int, str], yes: str, no: str) -> Choice:
    """Modes of several kinds whose bits 1 and 3 say what becomes of the flags."""
    flag = {0: "the flags stay", 2: f"flags where {yes}", 8: "the flags are complemented"}
    flag[10] = f"flags where {no}"
    return choice(
        {k + n: f"{kind}; {then}" for k, kind in kinds.items() for n, then in flag.items()}
    )


# Lanes (bit mask) in which LReg[lreg_dest] receives the greater value, by mode.
GREATER = (
    *(0, 0, 0xFFFF0000, 0xFF00FF00, 0x00FFFF00),
    *(0xFFFFFF00, 0xFFFF00FF, 0xFF00FFFF, 0x00FFFFFF, 0xFFFFFFFF),
)


def _greater_in(mode: int) -> str:
    """The lanes of `GREATER`, in words: they come in groups of eight."""
    groups = [f"{8 * i}-{8 * i + 7}" for i in range(4) if GREATER[mode] >> 8 * i & 1]
    return "in lanes " + ", ".join(groups) if groups else "in none"


SWAPPED = choice(
    {0: "exchanges", **{i: f"the greater {_greater_in(i)}" for i in range(1, len(GREATER))}},
    about="the greater goes to LReg[lreg_dest] in these lanes, else to LReg[lreg_src_c]",
)
"""instr_mod1 of SFPSWAP."""

_BOTH_WAYS = """format of the datums in Dst
    0: the format of the configuration
    1: FP16
    2: BF16
    3: FP32
    4: INT32: 32 bits
    8: INT16: sign-magnitude, 15 bits
    11: ZERO
    12: INT32_SM: 32 bits
    13: INT8_COMP: sign-magnitude, 10 bits"""
LOADED = table(
    _BOTH_WAYS
    + """
    5: INT8: sign-magnitude, 8 bits
    6: UINT16: 16 bits, zeros above
    7: HI16: 16 bits to the high half, zeros below
    9: LO16: as UINT16
    14: LO16_ONLY: 16 bits to the low half, the high one stays
    15: HI16_ONLY: 16 bits to the high half, the low one stays"""
)
STORED = table(
    _BOTH_WAYS
    + """
    5: INT8: sign-magnitude, 10 bits
    6: UINT16: the low half
    7: HI16: 32 bits
    9: LO16: 32 bits, the halves exchanged
    14: LO16_ONLY: the low half
    15: HI16_ONLY: the high half"""
)
"""instr_mod0 of loads and of stores; 10 (INT32_ALL) is refused."""


# Operands that LReg[7] names lane by lane: INDIRECT_VA, INDIRECT_VD (SFPMAD, Blackhole ISA).

_U = np.uint32
_ZERO = _U(0)
FACTOR = 2  # scratch row of `source`


@njit
def source(s: Any) -> None:
    """Scratch `FACTOR` = in each lane the LReg that LReg[7] names."""
    out, index = s.lane_tmp[FACTOR], s.lreg[7]
    for lane in range(lanes.LANES):
        out[lane] = s.lreg[np.int64(index[lane] & _U(15)), lane]


@njit
def refused(s: Any, named: Any) -> Any:
    """DONE, or the error of a word in which LReg[7] names a register: `named` not 0 (TEN-2932)."""
    if named and s.lane_config[0] & _U(lanes.ENABLE_DEST_INDEX):
        return refuse(s, lanes.DEST_INDEX, dest=7)
    return DONE


@njit
def write(s: Any, mod: Any, dest: Any) -> Any:
    """The scratch value to LReg[dest], or where LReg[7] says when `mod` has bit 3 (VD); DONE.

    LReg[7] names one in each lane; constants are left alone.
    """
    if not mod & VD or lanes.target(s, dest) == lanes.BONUS:
        return lanes.write(s, dest)
    flag, index, named = s.lane_tmp[lanes.FLAG], s.lreg[7], s.lane_tmp[FACTOR]
    flags, on = s.cc, lanes.unmasked(s)
    for lane in range(lanes.LANES):
        named[lane] = _U(index[lane] & _U(15))
    for reg in range(lanes.WRITABLE):
        any_lane = _ZERO
        for lane in range(lanes.LANES):
            enabled = _U(flags[lane] | on)
            flag[lane] = enabled if named[lane] == _U(reg) else _ZERO
            any_lane |= flag[lane]
        if any_lane != _ZERO:
            lanes.write_where(s, np.int64(reg), lanes.VALUE)
    return DONE


# Parts of fp32 numbers, as patterns.

SIGN = np.uint32(0x80000000)
EXPONENT = np.uint32(0x7F800000)
FRACTION = np.uint32(0x7FFFFF)
HIDDEN = np.uint32(0x800000)
BIAS = 127
