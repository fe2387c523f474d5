"""Vector unit (SFPU): SFPCONFIG, which writes constants, LaneConfig and the macro registers.

A value is taken from the first eight lanes and given to the lanes below each of them.  LaneConfig
and macro registers that differ from lane to lane have no model.
"""

from typing import Any

import numpy as np

from bhemu.bits import choice, number, parts
from bhemu.jit.subset import njit
from bhemu.tensix import lanes, spaces, unspecified
from bhemu.tensix.insn import Instruction, bits
from bhemu.tensix.rules import DONE, MISSING, NCB, UNSUPPORTED, error, refuse, undefined
from bhemu.tensix.spaces import LANES, lreg
from bhemu.tensix.units.vector.sfpu import Sfpu

_U = np.uint32
_ZERO, _ONE = _U(0), _U(1)
_COLUMNS = 8
# Registers
_SEQUENCE, _MISC, _FIXED, _CONSTANTS, _LANE_CONFIG = 4, 8, 9, 11, 15
_TWELVE = 12
_FIRST_ROW = 0xFF << 32 | 0xFF  # lanes 0 to 7, as marks of both causes
# Mode bits
_IMMEDIATE, _OR, _AND, _XOR, _LANE_MASK = 1, 2, 4, 6, 8
_LANE_CONFIG_BITS = lanes.ENABLE_DEST_INDEX | lanes.EXCHANGE_SRCB_SRCC
_MISC_BITS = 0xFFF
_ALL_BITS = 0xFFFFFFFF
# What the immediate form writes to LReg[11] to LReg[14], whatever the immediate.
_DEFAULTS = np.array([0xBF800000, 0, 0xBF2CC4C7, 0xBEB08FF9], np.uint32)

_DIFFERS = error("VECTOR-CONFIG-LANES", UNSUPPORTED, "SFPCONFIG would leave register {register} different in lanes 0 and {lane}, which has no model", "enable lanes 0 to 7 (SFPENCC), and load the same into them; bit 8 of LaneConfig may differ")  # fmt: skip
_VALUE = error("VECTOR-CONFIG-VALUE", UNSUPPORTED, "SFPCONFIG of LaneConfig with {value:#x}: only bits 2 and 8 have a model")  # fmt: skip
_DEFAULT = error("VECTOR-CONFIG-DEFAULT", MISSING, "SFPCONFIG of LReg[12] with its default: the ISA text and ttsim disagree about its value", "load the value into LReg[0] and use instr_mod1 0")  # fmt: skip
_CONSTANT = error("VECTOR-CONFIG-CONSTANT", NCB, "SFPCONFIG of register {register}: 9 and 10 are fixed constants", "silicon does nothing")  # fmt: skip


@njit
def _mark_written(s: Any, mod: Any, imm: Any) -> None:
    """Scratch flag = 1 in the lanes that are written: by the flags of lanes 0-7 and the mask."""
    flag, on = s.lane_tmp[lanes.FLAG], lanes.unmasked(s)
    for lane in range(lanes.LANES):
        column = lane & (_COLUMNS - 1)
        masked = mod & _LANE_MASK and (imm >> (2 * column)) & 1 == 0
        flag[lane] = _ZERO if masked else _U(s.cc[column] | on)


@njit
def _sources(s: Any, mod: Any, imm: Any) -> None:
    """Scratch value = the immediate, or LReg[0] of lanes 0-7 below each other."""
    out, x = s.lane_tmp[lanes.VALUE], s.lreg[0]
    for lane in range(lanes.LANES):
        out[lane] = _U(imm) if mod & _IMMEDIATE else x[lane & (_COLUMNS - 1)]


@njit
def _combined(mod: Any, old: Any, value: Any) -> Any:
    """What the mode makes of the old value and the new one."""
    kind = mod & 6
    if kind == _OR:
        return _U(old | value)
    if kind == _AND:
        return _U(old & value)
    return _U(old ^ value) if kind == _XOR else _U(value)


@njit
def _old(s: Any, register: Any, lane: Any) -> Any:
    """What a lane holds of a macro register, which is the same in all lanes, or of LaneConfig."""
    if register < _SEQUENCE:
        return s.macro_template[register & 3]
    if register < _MISC:
        return s.macro_sequence[register & 3]
    return s.macro_misc[0] if register == _MISC else s.lane_config[lane]


@njit
def _new(s: Any, mod: Any, register: Any) -> Any:
    """Scratch value = what the lanes of a macro register or LaneConfig become; DONE or an error."""
    out, flag = s.lane_tmp[lanes.VALUE], s.lane_tmp[lanes.FLAG]
    bitwise = mod if register == _MISC or register == _LANE_CONFIG else 0
    keep = _U(0xFFFF0000 if register == _LANE_CONFIG and mod & _IMMEDIATE else 0)
    same = _U(_ALL_BITS ^ lanes.EXCHANGE_SRCB_SRCC if register == _LANE_CONFIG else _ALL_BITS)
    for lane in range(lanes.LANES):
        old = _old(s, register, lane)
        value = _U(_combined(bitwise, old, out[lane]) | _U(old & keep))
        value = _U(value & _U(_MISC_BITS)) if register == _MISC else value
        out[lane] = value if flag[lane] != _ZERO else old
    for lane in range(1, lanes.LANES):
        if _U(out[lane] ^ out[0]) & same:
            return refuse(s, _DIFFERS, register=register, lane=lane)
    if register == _LANE_CONFIG and out[0] & ~_U(_LANE_CONFIG_BITS):
        return refuse(s, _VALUE, value=np.int64(out[0]))
    return DONE


@njit
def _store(s: Any, register: Any) -> None:
    value = s.lane_tmp[lanes.VALUE, 0]
    if register < _SEQUENCE:
        s.macro_template[register & 3] = value
    elif register < _MISC:
        s.macro_sequence[register & 3] = value
    elif register == _MISC:
        s.macro_misc[0] = value
    else:
        for lane in range(lanes.LANES):
            s.lane_config[lane] = s.lane_tmp[lanes.VALUE, lane]


class SFPCONFIG(Instruction, opcode=0x91, unit="vector", facts=Sfpu()):
    """Write constants, LaneConfig and macro registers (SFPCONFIG, Blackhole ISA)."""

    reads = (
        lreg(0).unless("instr_mod1 & 1 and config_dest > 3")
        | spaces.MACRO
        | spaces.LANE_CONFIG
        | LANES
    )
    writes = (
        lreg("config_dest").when("10 < config_dest < 15")
        | spaces.MACRO.when("config_dest < 9")
        | spaces.LANE_CONFIG.when("config_dest == 15")
    )

    instr_mod1 = bits(
        3,
        0,
        parts(
            (
                0,
                0,
                choice(
                    "LReg[0] of lanes 0-7",
                    "imm16_math; of LReg[11] to [14] the default, of templates LReg[0]",
                ),
            ),
            (
                *(2, 1),
                choice("", "or", "and", "xor", about="with the old value: 8 and 15 only"),
            ),
            (3, 3, choice("", "columns by every second bit of imm16_math")),
        ),
        mode=True,
    )
    config_dest = bits(
        7,
        4,
        choice(
            {
                **{i: f"macro template {i}" for i in range(4)},
                **{4 + i: f"macro sequence {i}" for i in range(4)},
                8: "miscellaneous macro register",
                **{i: f"LReg[{i}]" for i in range(11, 15)},
                15: "LaneConfig",
            }
        ),
    )
    imm16_math = bits(23, 8, number("value, or mask of columns"))

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.imm16_math and f.instr_mod1 & (_IMMEDIATE | _LANE_MASK) == 0:
            return refuse(s, lanes.IMMEDIATE, immediate=f.imm16_math, mode=f.instr_mod1)
        if f.config_dest == _FIXED or f.config_dest == _FIXED + 1:
            return undefined(s, _CONSTANT, register=f.config_dest)
        _mark_written(s, f.instr_mod1, f.imm16_math)
        _sources(s, f.instr_mod1 if f.config_dest >= _SEQUENCE else 0, f.imm16_math)
        if f.config_dest >= _CONSTANTS and f.config_dest != _LANE_CONFIG:
            # LReg[11] to LReg[14], which may differ from lane to lane; DONE or an error.
            if f.instr_mod1 & _IMMEDIATE:
                if f.config_dest == _TWELVE:
                    return _DEFAULT
                out = s.lane_tmp[lanes.VALUE]
                for lane in range(lanes.LANES):
                    out[lane] = _DEFAULTS[(f.config_dest - _CONSTANTS) & 3]
            lanes.write_where(s, f.config_dest, lanes.VALUE)
            return DONE
        status = _new(s, f.instr_mod1, f.config_dest)
        if status == DONE:
            _store(s, f.config_dest)
        return status

    def moves(s: Any, t: Any, f: Any) -> Any:
        if f.config_dest == _FIXED or f.config_dest == _FIXED + 1:
            return DONE
        immediate = f.config_dest >= _SEQUENCE and f.instr_mod1 & _IMMEDIATE
        row = np.int64(0) if immediate else unspecified.of(s, 0) & _FIRST_ROW
        _mark_written(s, f.instr_mod1, f.imm16_math)
        taken = unspecified.both(unspecified.lanes_of(s.lane_tmp[lanes.FLAG]))
        status = unspecified.open_refused(s)
        if status != DONE:
            return status
        marks = (row | row << 8 | row << 16 | row << 24) & taken
        if f.config_dest >= _CONSTANTS and f.config_dest != _LANE_CONFIG:
            unspecified.write(s, f.config_dest, taken, marks)
            return DONE
        return unspecified.lane_doubt_refused(s, np.int64(0), marks)
