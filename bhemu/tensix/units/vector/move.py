"""Vector unit (SFPU): register and lane movement."""

from typing import Any

import numpy as np
from numba import njit

from bhemu.tensix import lanes, prng
from bhemu.tensix.insn import Instruction, bits
from bhemu.tensix.quirks import refuse
from bhemu.tensix.status import DONE, NCB, UNIMPLEMENTED, UNSUPPORTED, error

_U = np.uint32
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


@njit
def _random(s: Any) -> None:
    """Scratch value = random state of each lane; the enabled lanes step."""
    for lane in range(lanes.LANES):
        s.lane_tmp[lanes.VALUE, lane] = s.prng[lane]
        if lanes.enabled(s, lane):
            s.prng[lane] = _U(prng.step(np.int64(s.prng[lane])))


class SFPMOV(Instruction, opcode=0x7C, unit="vector", stall="B8"):
    """Copy a register (SFPMOV, Blackhole ISA)."""

    instr_mod1 = bits(3, 0)
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
            x, out = s.lreg[lreg_c], s.lane_tmp[lanes.VALUE]
            for lane in range(lanes.LANES):
                out[lane] = x[lane] ^ flip
        if instr_mod1 == 2:
            new, out = s.lane_tmp[lanes.VALUE], s.lreg[lreg_dest]
            for lane in range(lanes.LANES):
                out[lane] = new[lane]
        else:
            lanes.write(s, lreg_dest)
        return DONE


class SFPSWAP(Instruction, opcode=0x92, unit="vector", stall="B8"):
    """Swap, or minimum and maximum (SFPSWAP, Blackhole ISA)."""

    instr_mod1 = bits(3, 0)
    lreg_dest = bits(7, 4)
    lreg_src_c = bits(11, 8)


class SFPTRANSP(Instruction, opcode=0x8C, unit="vector", stall="B8"):
    """Transpose four registers within lane columns (SFPTRANSP, Blackhole ISA)."""

    lreg_dest = bits(7, 4)


class SFPSHFT2(Instruction, opcode=0x94, unit="vector", stall="B8"):
    """Move lanes between registers or positions (SFPSHFT2, Blackhole ISA)."""

    instr_mod1 = bits(3, 0)
    lreg_dest = bits(7, 4)
    lreg_src_c = bits(11, 8)
    imm12_math = bits(23, 12)


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

    instr_mod1 = bits(3, 0)
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
