"""Vector unit (SFPU): register and lane movement."""

from typing import Any

import numpy as np

from bhemu.tensix import lanes, prng
from bhemu.tensix.insn import Instruction, bits
from bhemu.tensix.quirks import refuse
from bhemu.tensix.status import DONE, NCB, UNIMPLEMENTED, UNSUPPORTED, error
from bhemu.tensix.subset import njit
from bhemu.tensix.units.vector.integer import shift

_U = np.uint32
_ZERO, _ONE = _U(0), _U(1)
_MINUS_ONE = 0xBF800000
_LANE_CONFIG_BITS = lanes.ENABLE_DEST_INDEX | lanes.EXCHANGE_SRCB_SRCC

_CONFIG_LANES = error(
    "VECTOR-CONFIG-LANES",
    UNSUPPORTED,
    "SFPCONFIG while some lanes are disabled",
    "enable all lanes first (SFPENCC)",
)
_CONFIG_SOURCE = error(
    "VECTOR-CONFIG-SOURCE",
    UNSUPPORTED,
    "SFPCONFIG from LReg[0] whose lanes differ (lane {0} is not lane 0)",
    "load the same value into all lanes",
)
_CONFIG_VALUE = error(
    "VECTOR-CONFIG-VALUE", UNSUPPORTED, "SFPCONFIG of register {0} with {1:#x} has no model"
)
_CONFIG_CONSTANT = error(
    "VECTOR-CONFIG-CONSTANT", NCB, "SFPCONFIG of register {0}: 9 and 10 are fixed constants"
)
_RANDOM_SOURCE = error(
    "VECTOR-RANDOM", UNIMPLEMENTED, "SFPMOV mode 8 reads the random state through LReg[9], not {0}"
)
_SWAP_MODE = error("VECTOR-SWAP-MODE", NCB, "SFPSWAP mode {0} is outside the contract (0-9)")
_SWAP_INDEX = error(
    "VECTOR-SWAP-INDEX",
    UNSUPPORTED,
    "SFPSWAP of LReg[{0}] and LReg[{1}] with LaneConfig.ENABLE_DEST_INDEX set",
    "name only LReg[0] to LReg[3], or clear bit 2 of LaneConfig with SFPCONFIG",
)
_SHIFT_SOURCE = error(
    "VECTOR-SHIFT2-SOURCE",
    UNSUPPORTED,
    "SFPSHFT2 mode 5 shifts LReg[imm12_math], and imm12_math is {0}",
    "name LReg[0] to LReg[15]",
)

# Scratch rows besides lanes.VALUE and lanes.FLAG
_FIRST = 2


@njit
def _save(s: Any, reg: Any, row: Any) -> None:
    """Scratch row = LReg[reg]."""
    x, out = s.lreg[reg & 15], s.lane_tmp[row]
    for lane in range(lanes.LANES):
        out[lane] = x[lane]


@njit
def _random(s: Any) -> None:
    """Scratch value = random state of each lane; the enabled lanes step."""
    for lane in range(lanes.LANES):
        s.lane_tmp[lanes.VALUE, lane] = s.prng[lane]
        if lanes.enabled(s, lane):
            s.prng[lane] = _U(prng.step(np.int64(s.prng[lane])))


class SFPMOV(Instruction, opcode=0x7C, unit="vector", stall="B8"):
    """Copy a register (SFPMOV, Blackhole ISA)."""

    instr_mod1 = bits(3, 0, mode=True)
    lreg_dest = bits(7, 4)
    lreg_c = bits(11, 8)

    def execute(s: Any, t: Any, instr_mod1: Any, lreg_dest: Any, lreg_c: Any) -> Any:
        status = lanes.claim(s, t, lreg_dest)
        if status != lanes.GO:
            return status
        if instr_mod1 & 4:
            return refuse(s, lanes.MODE_RESERVED, instr_mod1, 0)
        if instr_mod1 > 2 and instr_mod1 != 8:
            return refuse(s, lanes.MODE_UNIMPLEMENTED, instr_mod1, 0)
        if instr_mod1 == 8 and lreg_c != 9:
            return refuse(s, _RANDOM_SOURCE, lreg_c, 0)
        if instr_mod1 == 8:
            _random(s)
        else:
            flip = _U(0x80000000 if instr_mod1 == 1 else 0)
            x, out = s.lreg[lreg_c & 15], s.lane_tmp[lanes.VALUE]
            for lane in range(lanes.LANES):
                out[lane] = x[lane] ^ flip
        if instr_mod1 == 2:
            flag = s.lane_tmp[lanes.FLAG]
            for lane in range(lanes.LANES):
                flag[lane] = _ONE
            lanes.write_where(s, lanes.target(s, lreg_dest), lanes.VALUE)
        else:
            lanes.write(s, lreg_dest)
        return DONE


@njit
def _greater_lanes(mod: Any) -> Any:
    """Lanes (bit mask) in which LReg[lreg_dest] receives the greater value."""
    if mod == 2:
        return 0xFFFF0000
    if mod == 3:
        return 0xFF00FF00
    return 0xFFFFFFFF if mod == 9 else 0


@njit
def _choose(s: Any, mod: Any, d: Any, c: Any) -> None:
    """Scratch flag = 1 in the lanes whose values change places."""
    x, y, flag = s.lreg[c & 15], s.lreg[d & 15], s.lane_tmp[lanes.FLAG]
    flags, on = s.cc, lanes.unmasked(s)
    if mod == 0:
        for lane in range(lanes.LANES):
            flag[lane] = _U(flags[lane] | on)
        return
    flip = np.int64(0)
    if s.lane_config[0] & _U(lanes.EXCHANGE_SRCB_SRCC):
        flip = np.int64(0xFFFFFFFF)
    inverted = _U(_greater_lanes(mod) ^ flip)
    for lane in range(lanes.LANES):
        less = _ONE if lanes.order(x[lane]) < lanes.order(y[lane]) else _ZERO
        swap = _U(less ^ _U(_U(inverted >> _U(lane)) & _ONE))
        flag[lane] = _U(swap & _U(flags[lane] | on))


@njit
def _exchange(s: Any, d: Any, c: Any) -> None:
    """Exchange LReg[d] and LReg[c] where the scratch flag is set; constants stay."""
    _save(s, d, _FIRST)
    _save(s, c, _FIRST + 1)
    if c < lanes.WRITABLE:
        lanes.write_where(s, c, _FIRST)
    if d < lanes.WRITABLE:
        lanes.write_where(s, d, _FIRST + 1)


class SFPSWAP(Instruction, opcode=0x92, unit="vector", stall="B8"):
    """Swap, or minimum and maximum (SFPSWAP, Blackhole ISA)."""

    instr_mod1 = bits(3, 0, mode=True)
    lreg_dest = bits(7, 4)
    lreg_src_c = bits(11, 8)

    def execute(s: Any, t: Any, instr_mod1: Any, lreg_dest: Any, lreg_src_c: Any) -> Any:
        if lreg_dest >= lanes.TEMPLATES:
            return lanes.claim(s, t, lreg_dest)
        index = s.lane_config[0] & _U(lanes.ENABLE_DEST_INDEX)
        if index and (lreg_dest > 3 or lreg_src_c > 3):
            return refuse(s, _SWAP_INDEX, lreg_dest, lreg_src_c)
        if instr_mod1 > 9:
            return refuse(s, _SWAP_MODE, instr_mod1, 0)
        if instr_mod1 > 3 and instr_mod1 != 9:
            return refuse(s, lanes.MODE_UNIMPLEMENTED, instr_mod1, 0)
        _choose(s, instr_mod1, lreg_dest, lreg_src_c)
        _exchange(s, lreg_dest, lreg_src_c)
        if index:
            _exchange(s, 4 + lreg_dest, 4 + lreg_src_c)
        return DONE


class SFPTRANSP(Instruction, opcode=0x8C, unit="vector", stall="B8"):
    """Transpose four registers within lane columns (SFPTRANSP, Blackhole ISA)."""

    lreg_dest = bits(7, 4)

    def execute(s: Any, t: Any, lreg_dest: Any) -> Any:
        status = lanes.claim_none(s, t, lreg_dest)
        if status != lanes.GO:
            return status
        flag, flags, on = s.lane_tmp[lanes.FLAG], s.cc, lanes.unmasked(s)
        for lane in range(lanes.LANES):
            flag[lane] = _U(flags[lane] | on)
        for group in range(2):
            for i in range(4):
                for j in range(4):
                    for k in range(8):
                        s.lane_tmp[_FIRST + i, 8 * j + k] = s.lreg[4 * group + j, 8 * i + k]
            for i in range(4):
                lanes.write_where(s, 4 * group + i, _FIRST + i)
        return DONE


@njit
def _rotate(s: Any, reg: Any, around: Any) -> None:
    """Scratch value = LReg[reg] one lane up within each 8; the first gets the last, or 0."""
    x, out = s.lreg[reg & 15], s.lane_tmp[lanes.VALUE]
    for lane in range(1, lanes.LANES):
        out[lane] = x[lane - 1]
    for j in range(4):
        out[8 * j] = x[8 * j + 7] if around else _ZERO


class SFPSHFT2(Instruction, opcode=0x94, unit="vector", stall="B8"):
    """Move lanes between registers or positions (SFPSHFT2, Blackhole ISA)."""

    instr_mod1 = bits(3, 0, mode=True)
    lreg_dest = bits(7, 4)
    lreg_src_c = bits(11, 8)
    imm12_math = bits(23, 12)

    def execute(
        s: Any, t: Any, instr_mod1: Any, lreg_dest: Any, lreg_src_c: Any, imm12_math: Any
    ) -> Any:
        status = lanes.claim(s, t, lreg_dest)
        if status != lanes.GO:
            return status
        if instr_mod1 > 6:
            return refuse(s, lanes.MODE_UNDEFINED, instr_mod1, 0)
        if instr_mod1 < 3 or instr_mod1 > 5:
            return refuse(s, lanes.MODE_UNSUPPORTED, instr_mod1, 0)
        if instr_mod1 == 5:
            if imm12_math > 15:
                return refuse(s, _SHIFT_SOURCE, imm12_math, 0)
            shift(s, imm12_math & 15, s.lreg[lreg_src_c & 15], 0)
        else:
            if imm12_math:
                return refuse(s, lanes.IMMEDIATE, imm12_math, instr_mod1)
            _rotate(s, lreg_src_c, instr_mod1 == 3)
        lanes.write(s, lreg_dest)
        return DONE


class SFPNOP(Instruction, opcode=0x8F, unit="vector", stall="B8"):
    """Occupy the vector unit for one slot (SFPNOP, Blackhole ISA)."""

    def execute(s: Any, t: Any) -> Any:
        return DONE


@njit
def _config_source(s: Any, mod: Any, imm: Any) -> Any:
    """DONE when the source of a register write is one the golden model accepts."""
    if mod == 0:
        for lane in range(1, lanes.LANES):
            if s.lreg[0, lane] != s.lreg[0, 0]:
                return refuse(s, _CONFIG_SOURCE, lane, 0)
        if imm:
            return refuse(s, lanes.IMMEDIATE, imm, mod)
    return DONE if lanes.all_enabled(s) else refuse(s, _CONFIG_LANES, 0, 0)


@njit
def _config_refused(s: Any, mod: Any, register: Any, imm: Any) -> Any:
    """DONE, or why SFPCONFIG of `register` (0-15) is refused."""
    if mod > 1:
        return refuse(s, lanes.MODE_UNSUPPORTED, mod, 0)
    status = _config_source(s, mod, imm)
    if status != DONE:
        return status
    value = imm if mod else np.int64(s.lreg[0, 0])
    if register == 9 or register == 10:
        return refuse(s, _CONFIG_CONSTANT, register, 0)
    bad = register < 4 and mod == 1
    bad = bad or (register == 8 and (mod == 0 or imm > 0xFFF))
    bad = bad or (11 <= register <= 14 and mod == 1 and (imm != 0 or register != 11))
    bad = bad or (register == 15 and (value & ~_LANE_CONFIG_BITS) != 0)
    return refuse(s, _CONFIG_VALUE, register, value) if bad else DONE


class SFPCONFIG(Instruction, opcode=0x91, unit="vector", stall="B8"):
    """Write constants, lane configuration and macro registers (SFPCONFIG, Blackhole ISA)."""

    instr_mod1 = bits(3, 0, mode=True)
    config_dest = bits(7, 4)
    imm16_math = bits(23, 8)

    def execute(s: Any, t: Any, instr_mod1: Any, config_dest: Any, imm16_math: Any) -> Any:
        status = _config_refused(s, instr_mod1, config_dest, imm16_math)
        if status != DONE:
            return status
        value = imm16_math if instr_mod1 else np.int64(s.lreg[0, 0])
        if config_dest < 4:
            s.macro_template[config_dest] = _U(value)
        elif config_dest < 8:
            s.macro_sequence[config_dest - 4] = _U(value)
        elif config_dest == 8:
            s.macro_misc[0] = _U(value)
        elif config_dest < 15:
            constant = np.int64(_MINUS_ONE) if instr_mod1 else value
            for lane in range(lanes.LANES):
                s.lreg[config_dest, lane] = _U(constant)
        else:
            for lane in range(lanes.LANES):
                s.lane_config[lane] = _U(value)
        return DONE
