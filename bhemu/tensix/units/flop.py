"""Scalar unit (ThCon): REG2FLOP, from GPRs to THCON configuration words and address counters."""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.operand import choice, number
from bhemu.tensix import config, tables
from bhemu.tensix import config_fields as cf
from bhemu.tensix.insn import Instruction, Word, bits
from bhemu.tensix.quirks import refuse, violated
from bhemu.tensix.resources import GPRS, TDMA, Resources
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
    "REG2FLOP to THCON configuration word {index}: there are {count}",
    "flop_index counts from Config word 64; use WRCFG for the others",
)


@njit
def _to_config(s: Any, t: Any, index: Any, register: Any, size_sel: Any) -> Any:
    """One word, or (size_sel 0) the four of the aligned groups of both indices."""
    if index >= THCON_WORDS:
        return refuse(s, INDEX, index=index, count=THCON_WORDS)
    status = violated(s, WEAK)
    if status:
        return status
    b, who = config.bank(s, t), config.by_thread(s, t)
    if size_sel:
        config.write(s, b, THCON_BASE + index, np.int64(s.gpr[t, register]), who)
        return DONE
    for i in range(4):
        value = np.int64(s.gpr[t, (register & 0x3C) + i])
        config.write(s, b, THCON_BASE + (index & ~3) + i, value, who)
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


class _Flop(Word):
    """Fields of REG2FLOP."""

    reg_index = bits(5, 0, tables.GPR)
    flop_index = bits(
        12,
        6,
        number(
            "THCON word of Config; of a counter: X Y Z W [1:0], its carriage return [2], "
            "engine [4:3], channel [5]"
        ),
    )
    context_id_2 = bits(17, 16, number("thread whose counter is set"), mode=True)
    byte_offset = bits(19, 18, number("first byte of the GPR"))
    target_sel = bits(
        21,
        20,
        choice(
            {
                0: "THCON words of Config",
                2: "a counter of the issuing thread",
                3: "a counter of thread context_id_2",
            }
        ),
        mode=True,
    )
    size_sel = bits(
        23,
        22,
        choice(
            {
                0: "four words; of a counter: 0",
                1: "32 bits",
                2: "one word; of a counter: 16 bits",
                3: "one word; of a counter: 8 bits",
            }
        ),
        mode=True,
    )


_COUNTERS_ONLY = _Flop.target_sel.mask | _Flop.byte_offset.mask | _Flop.context_id_2.mask
_CONFIG_ONLY = 0x40 << _Flop.flop_index.lo  # the highest bit of flop_index


class REG2FLOP(
    _Flop,
    Instruction,
    opcode=0x48,
    unit="scalar",
    oracle=False,
    resources=Resources(GPRS | TDMA, GPRS | TDMA),
):
    """Copy GPRs to a THCON configuration word or an address counter (REG2FLOP, Wormhole ISA)."""

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.target_sel < 2:
            if f.target_sel | f.byte_offset | f.context_id_2:
                return refuse(s, RESERVED_BITS, bits=f.word & _COUNTERS_ONLY)
            return _to_config(s, t, f.flop_index, f.reg_index, f.size_sel)
        if f.word & _CONFIG_ONLY:
            return refuse(s, RESERVED_BITS, bits=_CONFIG_ONLY)
        status = violated(s, WEAK)
        if status:
            return status
        value = _part(np.int64(s.gpr[t, f.reg_index]), f.size_sel, f.byte_offset)
        _to_counter(s, f.context_id_2 if f.target_sel & 1 else t, f.flop_index, value)
        return DONE
