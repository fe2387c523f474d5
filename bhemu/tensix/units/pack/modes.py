"""How the packer is configured: its Mode, ReLU, exponent threshold, fields that must be zero.

Source: PACR, Blackhole ISA; the checks from ttsim's Tensix model.
"""

from typing import Any, NamedTuple

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import config, formats, stochastic
from bhemu.tensix import config_fields as cf
from bhemu.tensix.config_fields import Field
from bhemu.tensix.formats import (
    BF16,
    BFP8,
    BFP8A,
    FP16,
    FP32,
    INT8,
    INT32,
    TF32,
    UINT16,
)
from bhemu.tensix.quirks import refuse
from bhemu.tensix.status import UB, UNIMPLEMENTED, UNSUPPORTED, error

# Intermediate formats (bit sets) that ReLU knows in all modes, and in mode 1 only.
_RELU = 1 << FP32 | 1 << FP16 | 1 << BFP8A | 1 << BF16 | 1 << BFP8 | 1 << TF32
_RELU_1 = 1 << INT32 | 1 << UINT16 | 1 << INT8

_RELU_MODE = error(
    "PACR-RELU-MODE", UNSUPPORTED, "STACC_RELU_ApplyRelu is {mode}; 0 to 3 are known"
)
_RELU_THRESHOLD = error(
    "PACR-RELU-THRESHOLD",
    UB,
    "STACC_RELU_ReluThreshold {threshold:#x} is negative; its sign bit is set",
)
_THRESHOLD_FORMAT = error(
    "PACR-EXP-THRESHOLD",
    UNSUPPORTED,
    "Exp_threshold_en with intermediate format {fmt} is not modelled",
    "it compares exponents; integers have none",
)
_RELU_FORMAT = error(
    "PACR-RELU-FORMAT",
    UNIMPLEMENTED,
    "ReLU mode {mode} with intermediate format {fmt} is not modelled",
    "integer formats take mode 1 only, fp8 (10) none",
)


def _must_be_zero() -> list[tuple[Field, int]]:
    # Each field that must be zero, with its rule.
    unsupported = """PACK_COUNTERS_SEC0_pack_yz_transposed DEST_TARGET_REG_CFG_PACK_SEC0_ZOffset
        THCON_SEC0_REG1_Row_start_section_size THCON_SEC0_REG1_Dis_shared_exp_assembler
        THCON_SEC0_REG1_Enable_out_fifo THCON_SEC0_REG1_Add_l1_dest_addr_offset
        THCON_SEC0_REG1_Source_interface_selection
        THCON_SEC0_REG1_Add_tile_header_size THCON_SEC0_REG1_Downsample_rate
        THCON_SEC0_REG1_Auto_set_last_pacr_intf_sel THCON_SEC0_REG1_pack_start_intf_pos
        PCK_EDGE_TILE_FACE_SET_SELECT_enable ALU_ROUNDING_MODE_Gasket_srnd_en
        ALU_ROUNDING_MODE_Packer_srnd_en ALU_ROUNDING_MODE_GS_LF ALU_ROUNDING_MODE_Bfp8_HF"""
    return [
        (
            getattr(cf, name),
            error(
                f"PACR-{name}",
                UNSUPPORTED,
                f"PACR with {name}={{value:#x}} is not modelled",
                "the ISA text tells that stochastic rounding is biased, not which bits it gives; "
                "a conversion that it calls identity, bitcast or truncation may go with it, and "
                "stochastic = SEED, up or down chooses a model"
                if "srnd" in name
                else "must be 0",
            ),
        )
        for name in unsupported.split()
    ]


_ZERO = _must_be_zero()
_EARLY = next(rule for f, rule in _ZERO if f is cf.ALU_ROUNDING_MODE_Gasket_srnd_en)
_LATE = next(rule for f, rule in _ZERO if f is cf.ALU_ROUNDING_MODE_Packer_srnd_en)
_ZERO_FIELD = np.array([(f.word, f.shift, f.mask) for f, _ in _ZERO], np.int64)
_ZERO_RULE = np.array([rule for _, rule in _ZERO], np.int64)
_WORDS = sorted({f.word for f, _ in _ZERO})
_ZERO_WORD = np.array(
    [(w, sum(f.mask << f.shift for f, _ in _ZERO if f.word == w)) for w in _WORDS], np.int64
)


class Mode(NamedTuple):
    """Config bank, intermediate and output format codes, and modes (1 = on)."""

    bank: int
    fmt: int
    out: int
    wide: int  # Dst is read in 32-bit datums
    round_fp16: int
    raw: int  # Read_int8
    relu: int
    accumulate: int


@njit
def mode_of(s: Any, t: Any) -> Any:
    """Mode of the packer for thread `t`."""
    b = config.bank(s, t)
    fmt = config.get(s, b, cf.THCON_SEC0_REG1_In_data_format)
    out = config.get(s, b, cf.THCON_SEC0_REG1_Out_data_format)
    wide = config.get(s, b, cf.PCK_DEST_RD_CTRL_Read_32b_data)
    rounding = config.get(s, b, cf.PCK_DEST_RD_CTRL_Round_10b_mant)
    raw = config.get(s, b, cf.PCK_DEST_RD_CTRL_Read_int8)
    relu = config.get(s, b, cf.STACC_RELU_ApplyRelu)
    accumulate = config.get(s, b, cf.THCON_SEC0_REG1_Pack_L1_Acc)
    return Mode(b, fmt, out, wide, rounding, raw, relu, accumulate)


@njit
def compresses(s: Any, b: Any) -> Any:
    """Not 0 when datums are to be compressed."""
    return config.get(s, b, cf.THCON_SEC0_REG1_Disable_zero_compress) ^ 1


@njit
def lower_counts(m: Any) -> Any:
    """1 when the low halves of 32-bit Dst datums take part; opaque 16 bits are the high half."""
    opaque = m.fmt == UINT16 or (m.fmt == BF16 and m.raw and not m.round_fp16)
    return 1 if m.wide and not opaque else 0


@njit
def zero_fields(s: Any, b: Any) -> Any:
    """Not 0 when a field that must be zero is not."""
    used = np.int64(0)
    for i in range(_ZERO_WORD.shape[0]):
        used |= np.int64(s.cfg[b, _ZERO_WORD[i, 0]]) & _ZERO_WORD[i, 1]
    return used


@njit
def _rounds(m: Any, rule: Any) -> Any:
    # Whether stochastic rounding can show, by the tables of FormatConversion.  A conversion that
    # they call rounding is one even where nothing is to be rounded (bf16 to bf16 among them): by a
    # defect of the hardware it may then increase magnitudes.
    return m.accumulate or _converts(m, rule)


@njit
def _converts(m: Any, rule: Any) -> Any:
    # The same of the conversion alone, without the sum in L1.
    if rule == _LATE:
        return formats.is_bfp(m.out)
    if m.fmt == UINT16:
        return m.wide != 0
    if m.round_fp16:
        return True
    return m.raw == 0 and not (m.wide and (m.fmt == FP32 or m.fmt == INT32))


@njit
def zero_refused(s: Any, m: Any) -> Any:
    """0, or the error of the first field that must be zero in Mode `m` and is not."""
    if zero_fields(s, m.bank) == 0:
        return 0
    for i in range(_ZERO_FIELD.shape[0]):
        word = np.int64(s.cfg[m.bank, _ZERO_FIELD[i, 0]])
        value = (word >> _ZERO_FIELD[i, 1]) & _ZERO_FIELD[i, 2]
        rule = _ZERO_RULE[i]
        if value and ((rule != _EARLY and rule != _LATE) or _rounds(m, rule)):
            if s.stochastic[0] == stochastic.REFUSED or (rule != _EARLY and rule != _LATE):
                return refuse(s, _ZERO_RULE[i], value=value)
            stochastic.modelled(s)
    return 0


@njit
def early_by_chance(s: Any, m: Any) -> Any:
    """True when the early conversion in Mode `m` rounds stochastically, by a model."""
    if s.stochastic[0] == stochastic.REFUSED or m.fmt == INT8 or m.fmt == UINT16:
        return False  # the last two lose no bits
    if not _converts(m, _EARLY):
        return False
    return config.get(s, m.bank, cf.ALU_ROUNDING_MODE_Gasket_srnd_en) != 0


@njit
def late_by_chance(s: Any, m: Any) -> Any:
    """True when bfp datums are rounded stochastically, by a model."""
    if s.stochastic[0] == stochastic.REFUSED:
        return False
    return config.get(s, m.bank, cf.ALU_ROUNDING_MODE_Packer_srnd_en) != 0


@njit
def staged(s: Any, b: Any) -> Any:
    """Not 0 when an exponent threshold or downsampling is configured."""
    downsampled = config.get(s, b, cf.THCON_SEC0_REG1_Downsample_mask)
    return config.get(s, b, cf.THCON_SEC0_REG1_Exp_threshold_en) | downsampled


@njit
def stages_refused(s: Any, m: Any) -> Any:
    """0, or the error of the ReLU or of the exponent threshold that Mode `m` asks for."""
    if config.get(s, m.bank, cf.THCON_SEC0_REG1_Exp_threshold_en):
        if m.fmt == INT8 or m.fmt == UINT16 or m.fmt == INT32:
            return refuse(s, _THRESHOLD_FORMAT, fmt=m.fmt)
    if m.relu == 0:
        return 0
    if m.relu > 3:
        return refuse(s, _RELU_MODE, mode=m.relu)
    if (_RELU >> m.fmt) & 1 == 0 and not (m.relu == 1 and (_RELU_1 >> m.fmt) & 1):
        return refuse(s, _RELU_FORMAT, mode=m.relu, fmt=m.fmt)
    threshold = config.get(s, m.bank, cf.STACC_RELU_ReluThreshold)
    if threshold & 0x8000 and m.relu != 1:
        return refuse(s, _RELU_THRESHOLD, threshold=threshold)
    return 0
