"""Scalar unit (ThCon): REG2FLOP, from GPRs to THCON configuration words and address counters."""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import config
from bhemu.tensix import config_fields as cf
from bhemu.tensix.insn import Instruction, bits
from bhemu.tensix.quirks import violated
from bhemu.tensix.status import DONE, RESERVED_BITS, UB, UNSUPPORTED, error
from bhemu.tensix.units.adc import ENGINES, width_mask

THCON_BASE = cf.THCON_SEC0_REG0_TileDescriptor.word
THCON_WORDS = config.SHARED - THCON_BASE

WEAK = error(
    "REG2FLOP-WEAK",
    UNSUPPORTED,
    "REG2FLOP is unsupported on Blackhole: its text calls itself weak and nothing uses it",
    "use WRCFG for configuration and SETADC* for counters; ub = silicon follows the text",
)
INDEX = error(
    "REG2FLOP-INDEX",
    UB,
    "REG2FLOP to THCON configuration word {0}: there are {1}",
    "flop_index counts from Config word 64; use WRCFG for the others",
)


@njit
def _to_config(s: Any, t: Any, index: Any, register: Any, size_sel: Any) -> Any:
    """One word, or (size_sel 0) the four of the aligned groups of both indices."""
    if index >= THCON_WORDS:
        s.detail[0], s.detail[1] = index, THCON_WORDS
        return INDEX
    status = violated(s, WEAK)
    if status:
        return status
    b = config.bank(s, t)
    if size_sel:
        config.write(s, b, THCON_BASE + index, np.int64(s.gpr[t, register]))
        return DONE
    for i in range(4):
        value = np.int64(s.gpr[t, (register & 0x3C) + i])
        config.write(s, b, THCON_BASE + (index & ~3) + i, value)
    return DONE


@njit
def _part(value: Any, size_sel: Any, shift8: Any) -> Any:
    """The 32, 16 or 8 bits chosen; what is not aligned to its size counts as 0."""
    if size_sel == 1:
        return value if shift8 == 0 else 0
    if size_sel == 2:
        return (value >> (8 * shift8)) & 0xFFFF if shift8 & 1 == 0 else 0
    if size_sel == 3:
        return (value >> (8 * shift8)) & 0xFF
    return 0


@njit
def _to_counter(s: Any, owner: Any, index: Any, value: Any) -> None:
    """flop_index: counter [1:0] X Y Z W, carriage return [2], engine [4:3], channel [5]."""
    engine = (index >> 3) & 3
    if owner >= 3 or engine >= ENGINES:
        return
    dimension, channel = index & 3, (index >> 5) & 1
    value &= width_mask(dimension)
    if index & 4:
        s.adc_cr[owner, engine, channel, dimension] = value
    else:
        s.adc[owner, engine, channel, dimension] = value


class REG2FLOP(Instruction, opcode=0x48, unit="scalar", stall="B0,B5", oracle=False):
    """Copy GPRs to a THCON configuration word or an address counter (REG2FLOP, Wormhole ISA).

    target_sel 0: configuration; 2: a counter of the own thread, 3: of thread context_id_2.
    """

    reg_index = bits(5, 0)
    flop_index = bits(12, 6)
    context_id_2 = bits(17, 16, mode=True)
    byte_offset = bits(19, 18)
    target_sel = bits(21, 20, mode=True)
    size_sel = bits(23, 22, mode=True)

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.target_sel < 2:
            if f.target_sel | f.byte_offset | f.context_id_2:
                s.detail[0] = (f.target_sel << 20) | (f.byte_offset << 18) | (f.context_id_2 << 16)
                return RESERVED_BITS
            return _to_config(s, t, f.flop_index, f.reg_index, f.size_sel)
        if f.flop_index & 0x40:
            s.detail[0] = 1 << 12
            return RESERVED_BITS
        status = violated(s, WEAK)
        if status:
            return status
        value = _part(np.int64(s.gpr[t, f.reg_index]), f.size_sel, f.byte_offset)
        _to_counter(s, f.context_id_2 if f.target_sel & 1 else t, f.flop_index, value)
        return DONE
