"""Counters that address rows and L1: RWCs of matrix and vector unit, ADCs of packer and unpackers.

`s.rwc[t]` and `s.rwc_cr[t]` hold SrcA, SrcB, Dst and fidelity of thread `t`.  On Blackhole an
instruction names one of eight sections directly.  Source: RWCs, Wormhole ISA; counters in ttsim's
Tensix model.
"""

from typing import Any

import numpy as np

from bhemu.bits import choice, flags, number
from bhemu.jit.subset import njit
from bhemu.tensix import config, insn, spaces
from bhemu.tensix import config_fields as cf
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.banks import NO_FORMAT
from bhemu.tensix.insn import WAKES_NOBODY, Instruction, bits
from bhemu.tensix.rules import DONE, UNSUPPORTED, error, follows_llk, note_rule, refuse, undefined
from bhemu.tensix.spaces import Kind
from bhemu.tensix.units.unpack.modes import HANDING_OVER, hand_over

SRCA, SRCB, DST, FIDELITY = 0, 1, 2, 3  # columns of s.rwc
SRC_ROWS = 64
DST_ROWS = 1024
SECTIONS = 8

# Section k of each group is the ThreadConfig value k places after section 0.
_AB = tf.ADDR_MOD_AB_SEC0_SrcAIncr.word
_DST = tf.ADDR_MOD_DST_SEC0_DestIncr.word
_BIAS = tf.ADDR_MOD_BIAS_SEC0_BiasIncr.word
assert tf.ADDR_MOD_AB_SEC7_SrcAIncr.word == _AB + SECTIONS - 1
assert tf.ADDR_MOD_DST_SEC7_DestIncr.word == _DST + SECTIONS - 1
assert tf.ADDR_MOD_BIAS_SEC7_BiasIncr.word == _BIAS + SECTIONS - 1

_BIAS_USED = error("ADDR-MOD-BIAS", UNSUPPORTED, "ADDR_MOD_BIAS_SEC{section} is {bias:#x}: Blackhole selects all eight sections directly", "leave BiasIncr and BiasClear 0")  # fmt: skip
_C_TO_CR_MIXED = error("ADDR-MOD-CTOCR", UNSUPPORTED, "ADDR_MOD_DST_SEC{section} is {value:#x}: DestCToCR together with DestClear or DestCR", "set only one of the three")  # fmt: skip


@njit(forceinline=True)
def dst_offset(s: Any, t: Any) -> Any:
    """What configuration adds to RWC.Dst: the math offset of the thread, and DEST_REGW_BASE."""
    base = config.get(s, config.bank(s, t), cf.DEST_REGW_BASE_Base)
    return config.thread(s, t, tf.DEST_TARGET_REG_CFG_MATH_Offset) + base


@njit(forceinline=True)
def dst_row(s: Any, t: Any, field: Any) -> Any:
    """Dst row of an instruction field: field + RWC.Dst + the offsets, modulo 1024."""
    return (field + s.rwc[t, DST] + dst_offset(s, t)) & (DST_ROWS - 1)


@njit(forceinline=True)
def src_row(s: Any, t: Any, which: Any, field: Any) -> Any:
    """Src row of an instruction field: field + RWC of SRCA or SRCB, modulo 64."""
    return (field + s.rwc[t, which]) & (SRC_ROWS - 1)


@njit(forceinline=True)
def fidelity_phase(s: Any, t: Any) -> Any:
    """Fidelity phase 0-3 of the next FPU instruction (counter + FIDELITY_BASE)."""
    return (s.rwc[t, FIDELITY] + config.thread(s, t, tf.FIDELITY_BASE_Phase)) & 3


@njit(forceinline=True)
def _field(word: Any, f: Any) -> Any:
    return (word >> f.shift) & f.mask


@njit
def addr_mod_refused(s: Any, t: Any, k: Any) -> Any:
    """0, or the error of section `k` (0-7): bias, or CToCR mixed.  Ask before any effect."""
    bias = np.int64(s.thread_cfg[t, _BIAS + (k & 7)])
    used = _field(bias, tf.ADDR_MOD_BIAS_SEC0_BiasIncr)
    if used | _field(bias, tf.ADDR_MOD_BIAS_SEC0_BiasClear):
        return refuse(s, _BIAS_USED, section=k, bias=bias)
    dst = np.int64(s.thread_cfg[t, _DST + (k & 7)])
    if _field(dst, tf.ADDR_MOD_DST_SEC0_DestCToCR):
        mixed = _field(dst, tf.ADDR_MOD_DST_SEC0_DestClear)
        if mixed | _field(dst, tf.ADDR_MOD_DST_SEC0_DestCR):
            return refuse(s, _C_TO_CR_MIXED, section=k, value=dst)
    return 0


# Of a section, how each counter moves: increment, clear, from the carriage return.
_MOVES = ("Incr", "Clear", "CR")
_OF_SRCA = tuple(getattr(tf, f"ADDR_MOD_AB_SEC0_SrcA{how}") for how in _MOVES)
_OF_SRCB = tuple(getattr(tf, f"ADDR_MOD_AB_SEC0_SrcB{how}") for how in _MOVES)
_OF_DST = tuple(getattr(tf, f"ADDR_MOD_DST_SEC0_Dest{how}") for how in _MOVES)


@njit(forceinline=True)
def _step(s: Any, t: Any, i: Any, word: Any, fields: Any, wrap: Any) -> None:
    incr = _field(word, fields[0])
    if _field(word, fields[1]):
        s.rwc[t, i] = 0
        s.rwc_cr[t, i] = 0
    elif _field(word, fields[2]):
        s.rwc_cr[t, i] = (s.rwc_cr[t, i] + incr) & wrap
        s.rwc[t, i] = s.rwc_cr[t, i]
    else:
        s.rwc[t, i] = (s.rwc[t, i] + incr) & wrap


@njit
def apply_addr_mod_sfpu(s: Any, t: Any, k: Any) -> None:
    """Apply section `k` (0-7) to SrcA, SrcB and Dst; SFPLOAD and SFPSTORE leave fidelity alone."""
    ab, dst = np.int64(s.thread_cfg[t, _AB + (k & 7)]), np.int64(s.thread_cfg[t, _DST + (k & 7)])
    _step(s, t, SRCA, ab, _OF_SRCA, SRC_ROWS - 1)
    _step(s, t, SRCB, ab, _OF_SRCB, SRC_ROWS - 1)
    _step(s, t, DST, dst, _OF_DST, DST_ROWS - 1)
    if _field(dst, tf.ADDR_MOD_DST_SEC0_DestCToCR):
        s.rwc_cr[t, DST] = s.rwc[t, DST]


@njit
def apply_addr_mod(s: Any, t: Any, k: Any) -> Any:
    """Apply section `k` (0-7) to all four counters, as every FPU word with addr_mode; DONE."""
    apply_addr_mod_sfpu(s, t, k)
    dst = np.int64(s.thread_cfg[t, _DST + (k & 7)])
    if _field(dst, tf.ADDR_MOD_DST_SEC0_FidelityClear):
        s.rwc[t, FIDELITY] = 0
    else:
        incr = _field(dst, tf.ADDR_MOD_DST_SEC0_FidelityIncr)
        s.rwc[t, FIDELITY] = (s.rwc[t, FIDELITY] + incr) & 3
    return DONE


# Miscellaneous unit: the address counters (ADCs) of unpackers and packer.
#
# Every thread has counters X (18 bits), Y (13), Z and W (8 each), with a carriage-return value
# each, for two channels of unpacker 0, unpacker 1 and the packer (ADCs, Blackhole ISA).


X, Y, Z, W = 0, 1, 2, 3
ENGINES = 3  # unpacker 0, unpacker 1, packer: bits 0, 1, 2 of cnt_set_mask

NO_ENGINE = error("ADC-NO-ENGINE", UNSUPPORTED, "cnt_set_mask 0 selects neither unpacker nor packer, so nothing would change", "set bit 0 (unpacker 0), 1 (unpacker 1) or 2 (packer)")  # fmt: skip
NO_COUNTER = error("ADC-NO-COUNTER", UNSUPPORTED, "bit_mask 0 selects no counter, so nothing would change", "set a bit of bit_mask, or leave the instruction out")  # fmt: skip
THREAD_OVERRIDE = error("ADC-THREAD-OVERRIDE", UNSUPPORTED, "SETADC with value {value:#x}: bits 17:16 address the counters of another thread", "keep the value below 0x10000")  # fmt: skip
SETDVALID_FORMAT = error("SETDVALID", UNSUPPORTED, "SETDVALID is unsupported on Blackhole: the format that the bank implies is ill-specified", "hand the bank over with UNPACR_NOP, or with set_dat_valid of UNPACR; with undefined behaviour tolerated, the bank gets the format that its unpacker handed over last; with reference llk it has none, which is enough for the moves of 32-bit broadcasts")  # fmt: skip
_NO_FORMAT = error("SETDVALID-FORMAT", UNSUPPORTED, "SETDVALID handed over Src banks, which imply no format since: MOVD2B and MOVB2D may use them", "the ISA text calls the instruction unsupported on Blackhole, production kernels use it")  # fmt: skip


@njit
def width_mask(dimension: Any) -> Any:
    """Mask of the counter of `dimension` (0 X, 1 Y, 2 Z, 3 W)."""
    if dimension == X:
        return 0x3FFFF
    if dimension == Y:
        return 0x1FFF
    return 0xFF


@njit
def _check(s: Any, cnt_set_mask: Any, bit_mask: Any) -> Any:
    if cnt_set_mask == 0:
        return undefined(s, NO_ENGINE)
    if bit_mask == 0:
        return undefined(s, NO_COUNTER)
    return DONE


SET, ADD, RETURN = range(3)  # to a value, by a value, to the carriage return plus a value


@njit
def _change(s: Any, t: Any, i: Any, channel: Any, dimension: Any, how: Any, value: Any) -> None:
    """Change one counter, and but for ADD its carriage return."""
    old: Any = np.int64(0)
    if how == ADD:
        old = s.adc[t, i, channel, dimension]
    elif how == RETURN:
        old = s.adc_cr[t, i, channel, dimension]
    new = (old + value) & width_mask(dimension)
    s.adc[t, i, channel, dimension] = new
    if how != ADD:
        s.adc_cr[t, i, channel, dimension] = new


_PAIRS = 0x51  # opcode: SET, ADD and RETURN of X and Y, then of Z and W


@njit
def _change_pairs(s: Any, t: Any, f: Any, bit_mask: Any) -> Any:
    """Change two counters of both channels, as `bit_mask` says."""
    status = _check(s, f.cnt_set_mask, bit_mask)
    if status:
        return status
    kind = (f.word >> 24) - _PAIRS
    first, how = (X, kind) if kind < 3 else (Z, kind - 3)
    for i in range(ENGINES):
        if (f.cnt_set_mask >> i) & 1:
            if bit_mask & 1:
                _change(s, t, i, 0, first, how, f.ch0_x)
            if bit_mask & 2:
                _change(s, t, i, 0, first + 1, how, f.ch0_y)
            if bit_mask & 4:
                _change(s, t, i, 1, first, how, f.ch1_x)
            if bit_mask & 8:
                _change(s, t, i, 1, first + 1, how, f.ch1_y)
    return DONE


class SETADC(Instruction, opcode=0x50, unit="adc", wakes=WAKES_NOBODY):
    """Set one address counter (SETADC, Wormhole ISA)."""

    writes = spaces.adc("cnt_set_mask")

    value = bits(17, 0, number("value of the counter"))
    dimension_index = bits(19, 18, choice("X", "Y", "Z", "W"), mode=True)
    channel_index = bits(20, 20, choice("channel 0", "channel 1"), mode=True)
    cnt_set_mask = bits(23, 21, insn.ENGINES)

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.value > 0xFFFF:
            return refuse(s, THREAD_OVERRIDE, value=f.value)
        status = _check(s, f.cnt_set_mask, 1)
        if status:
            return status
        for i in range(ENGINES):
            if (f.cnt_set_mask >> i) & 1:
                _change(s, t, i, f.channel_index & 1, f.dimension_index & 3, SET, f.value)
        return DONE


class _Increments(Instruction, unit="adc"):
    """Numbers for two counters (X and Y, or Z and W) of both channels."""

    reads = spaces.adc("cnt_set_mask")
    writes = spaces.adc("cnt_set_mask")

    ch0_x = bits(8, 6, insn.COUNTER_VALUE)
    ch0_y = bits(11, 9, insn.COUNTER_VALUE)
    ch1_x = bits(14, 12, insn.COUNTER_VALUE)
    ch1_y = bits(17, 15, insn.COUNTER_VALUE)
    cnt_set_mask = bits(23, 21, insn.ENGINES)

    def execute(s: Any, t: Any, f: Any) -> Any:
        return _change_pairs(s, t, f, np.int64(15))


class _Chosen(_Increments):
    """Also which of the four counters they are for."""

    bit_mask = bits(3, 0).meaning(
        flags(
            *("the first counter (X or Z) of channel 0", "the second (Y or W) of channel 0"),
            *("the first of channel 1", "the second of channel 1"),
        )
    )

    def execute(s: Any, t: Any, f: Any) -> Any:
        return _change_pairs(s, t, f, f.bit_mask)


class SETADCXY(_Chosen, opcode=_PAIRS, wakes=WAKES_NOBODY):
    """Set X and Y address counters (SETADCXY, Wormhole ISA)."""

    reads = spaces.NOTHING


class INCADCXY(_Increments, opcode=_PAIRS + 1, wakes=WAKES_NOBODY):
    """Increment X and Y address counters (INCADCXY, Wormhole ISA)."""


class ADDRCRXY(_Chosen, opcode=_PAIRS + 2, wakes=WAKES_NOBODY):
    """Advance X and Y counters from their carriage returns (ADDRCRXY, Wormhole ISA)."""


class SETADCZW(_Chosen, opcode=_PAIRS + 3, wakes=WAKES_NOBODY):
    """Set Z and W address counters (SETADCZW, Wormhole ISA)."""

    reads = spaces.NOTHING


class INCADCZW(_Increments, opcode=_PAIRS + 4, wakes=WAKES_NOBODY):
    """Increment Z and W address counters (INCADCZW, Wormhole ISA)."""


class ADDRCRZW(_Chosen, opcode=_PAIRS + 5, wakes=WAKES_NOBODY):
    """Advance Z and W counters from their carriage returns (ADDRCRZW, Wormhole ISA)."""


class SETDVALID(Instruction, opcode=0x57, unit="adc", oracle=False):
    """Give the unpack banks to the matrix unit (SETDVALID, Wormhole ISA).

    Where undefined behaviour is tolerated, a bank gets the format that its unpacker handed over
    last. With reference "llk" it has no format: only moves by bits may use it.
    """

    reads = spaces.bank("setvalid") | HANDING_OVER
    writes = spaces.bank("setvalid", Kind.HANDS_OVER) | spaces.UNPACKER

    setvalid = bits(1, 0, insn.SRC_BANKS)

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = np.int64(0) if follows_llk(s) else undefined(s, SETDVALID_FORMAT)
        if status:
            return status
        if follows_llk(s):
            note_rule(s, _NO_FORMAT)
        for which in range(2):
            if (f.setvalid >> which) & 1:
                held = s.src_fmt[which, (s.unpack_bank[which] ^ 1) & 1]
                held = np.int64(NO_FORMAT) if follows_llk(s) else held
                status = hand_over(s, t, which, held)
                if status:
                    return status
        return DONE


class SETADCXX(Instruction, opcode=0x5E, unit="adc", wakes=WAKES_NOBODY):
    """Set the X range of the address counters (SETADCXX, Wormhole ISA)."""

    writes = spaces.adc("cnt_set_mask")

    x_start = bits(9, 0, number("X of channel 0"))
    x_end2 = bits(19, 10, number("X of channel 1: the last datum"))
    cnt_set_mask = bits(23, 21, insn.ENGINES)

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = _check(s, f.cnt_set_mask, 1)
        if status:
            return status
        for i in range(ENGINES):
            if (f.cnt_set_mask >> i) & 1:
                _change(s, t, i, 0, X, SET, f.x_start)
                _change(s, t, i, 1, X, SET, f.x_end2)
        return DONE
