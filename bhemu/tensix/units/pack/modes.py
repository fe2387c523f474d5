"""How the packer is configured: formats, ReLU, L1 accumulation, and the modes that are refused.

The intermediate format (In_data_format, equal to Dstacc) is what Dst datums are read as, the output
format what is written to L1.  Source: PACR, Blackhole ISA; the checks from ttsim's Tensix model.
"""

from typing import Any, NamedTuple

import numpy as np

from bhemu.tensix import config, formats
from bhemu.tensix import config_fields as cf
from bhemu.tensix.config_fields import Field
from bhemu.tensix.formats import BF16, BFP2, BFP4, BFP8, BFP8A, FP8, FP16, FP32, INT8, INT32, UINT16
from bhemu.tensix.status import UB, UNIMPLEMENTED, UNSUPPORTED, error
from bhemu.tensix.subset import njit

# Output formats (bit sets) of each intermediate format.
_FROM_16 = {
    FP16: 1 << FP32 | 1 << FP16 | 1 << BF16 | 1 << FP8,
    BFP8A: 1 << BFP8,
    BF16: 1 << FP32 | 1 << BF16 | 1 << BFP8 | 1 << BFP4 | 1 << BFP2,
    BFP8: 1 << FP32 | 1 << BF16 | 1 << BFP8 | 1 << BFP4,
    UINT16: 1 << UINT16,
}
_FROM_32 = {
    FP32: 1 << FP32 | 1 << FP16 | 1 << BFP8 | 1 << BFP4 | 1 << BFP2,
    FP16: 1 << FP16 | 1 << FP8,
    BF16: 1 << BF16,
    BFP8: 1 << BFP8 | 1 << BFP4,
    INT32: 1 << INT32,
    UINT16: 1 << UINT16,
    INT8: 1 << INT8,
}
_PAIRS = np.array([kind.get(f, 0) for kind in (_FROM_16, _FROM_32) for f in range(16)], np.int64)

# Intermediate formats (bit sets): converted on the way (refused with Read_int8), known to ReLU.
_CONVERTED_16 = 1 << FP16 | 1 << BFP8A | 1 << BF16 | 1 << BFP8
_CONVERTED_32 = 1 << BF16 | 1 << BFP8 | 1 << INT8
_RELU = 1 << FP32 | 1 << FP16 | 1 << BFP8A | 1 << BF16 | 1 << BFP8 | 1 << INT32
_ACCUMULATED = 1 << FP32 | 1 << FP16 | 1 << BF16
_CODES = f"format codes: {formats.CODES}"

# Words of the sentences: {0} intermediate format, {1} output format, {2} Read_32b_data, {3} as
# written.
_DSTACC = error(
    "PACR-DSTACC",
    UB,
    "ALU_FORMAT_SPEC_REG2_Dstacc is {3}, but In_data_format is {0}",
    "both must name the intermediate format",
)
_PAIR = error(
    "PACR-FORMATS",
    UNIMPLEMENTED,
    "packing intermediate format {0} as {1} with Read_32b_data {2} is not modelled",
    _CODES,
)
_ROUND = error(
    "PACR-ROUND",
    UNIMPLEMENTED,
    "packing format {0} as {1} with Read_32b_data {2} and Round_10b_mant is not modelled",
    _CODES,
)
_NO_ROUND = error(
    "PACR-NO-ROUND",
    UNSUPPORTED,
    "packing 32-bit Dst as fp16 (intermediate format 1) without Round_10b_mant is not modelled",
    "set PCK_DEST_RD_CTRL_Round_10b_mant",
)
_READ_RAW = error(
    "PACR-READ-INT8",
    UNIMPLEMENTED,
    "PCK_DEST_RD_CTRL_Read_int8 with intermediate format {0} is not modelled",
)
_FP8 = error(
    "PACR-FP8",
    UNIMPLEMENTED,
    "packing fp8 without Pac_LF8_4b_exp (e5m2) is not modelled",
    "set THCON_SEC0_REG1_Pac_LF8_4b_exp for e4m3",
)
_L1_ACC = error(
    "PACR-L1-ACC",
    UNSUPPORTED,
    "Pack_L1_Acc with output format {1} is not modelled",
    "L1 accumulation takes fp32 (0), fp16 (1) and bf16 (5)",
)
_RELU_MODE = error("PACR-RELU-MODE", UNSUPPORTED, "STACC_RELU_ApplyRelu is {3}; 0 to 3 are known")
_RELU_THRESHOLD = error(
    "PACR-RELU-THRESHOLD", UB, "STACC_RELU_ReluThreshold {3:#x} is negative; its sign bit is set"
)
_RELU_FORMAT = error(
    "PACR-RELU-FORMAT",
    UNIMPLEMENTED,
    "ReLU mode {3} with intermediate format {0} is not modelled",
    "int32 (8) takes mode 1 only, integer formats 9 and 14 none",
)


def _must_be_zero() -> list[tuple[Field, int]]:
    # Each field that must be zero, with its rule.
    unsupported = """PACK_COUNTERS_SEC0_pack_yz_transposed DEST_TARGET_REG_CFG_PACK_SEC0_ZOffset
        THCON_SEC0_REG1_Row_start_section_size THCON_SEC0_REG1_Dis_shared_exp_assembler
        THCON_SEC0_REG1_Enable_out_fifo THCON_SEC0_REG1_Add_l1_dest_addr_offset
        THCON_SEC0_REG1_Sub_l1_tile_header_size THCON_SEC0_REG1_Source_interface_selection
        THCON_SEC0_REG1_Exp_threshold_en THCON_SEC0_REG1_Add_tile_header_size
        THCON_SEC0_REG1_Downsample_mask THCON_SEC0_REG1_Downsample_rate
        THCON_SEC0_REG1_Auto_set_last_pacr_intf_sel THCON_SEC0_REG1_pack_start_intf_pos"""
    names = [(name, UNSUPPORTED) for name in unsupported.split()]
    names.append(("PCK_EDGE_MODE_mode", UNIMPLEMENTED))
    return [
        (
            getattr(cf, name),
            error(f"PACR-{name}", category, f"PACR with {name}={{3}} is not modelled", "must be 0"),
        )
        for name, category in names
    ]


_ZERO = _must_be_zero()
_ZERO_FIELD = np.array([(f.word, f.shift, f.mask, rule) for f, rule in _ZERO], np.int64)
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
    relu: int
    accumulate: int


@njit
def mode_of(s: Any, t: Any) -> Any:
    """Mode of the packer for thread `t`; notes the words of this file's sentences."""
    b = config.bank(s, t)
    fmt = config.get(s, b, cf.THCON_SEC0_REG1_In_data_format)
    out = config.get(s, b, cf.THCON_SEC0_REG1_Out_data_format)
    wide = config.get(s, b, cf.PCK_DEST_RD_CTRL_Read_32b_data)
    rounding = config.get(s, b, cf.PCK_DEST_RD_CTRL_Round_10b_mant)
    relu = config.get(s, b, cf.STACC_RELU_ApplyRelu)
    accumulate = config.get(s, b, cf.THCON_SEC0_REG1_Pack_L1_Acc)
    s.detail[0] = fmt
    s.detail[1] = out
    s.detail[2] = wide
    return Mode(b, fmt, out, wide, rounding, relu, accumulate)


@njit
def zero_refused(s: Any, b: Any) -> Any:
    """0, or the error of the first field that must be zero and is not."""
    used = np.int64(0)
    for i in range(_ZERO_WORD.shape[0]):
        used |= np.int64(s.cfg[b, _ZERO_WORD[i, 0]]) & _ZERO_WORD[i, 1]
    if used == 0:
        return 0
    for i in range(_ZERO_FIELD.shape[0]):
        word = np.int64(s.cfg[b, _ZERO_FIELD[i, 0]])
        s.detail[3] = (word >> _ZERO_FIELD[i, 1]) & _ZERO_FIELD[i, 2]
        if s.detail[3]:
            return _ZERO_FIELD[i, 3]
    return 0


@njit
def formats_refused(s: Any, m: Any) -> Any:
    """0, or the error of the formats of Mode `m`."""
    s.detail[3] = config.get(s, m.bank, cf.ALU_FORMAT_SPEC_REG2_Dstacc)
    if s.detail[3] != m.fmt:
        return _DSTACC
    if (_PAIRS[16 * m.wide + m.fmt] >> m.out) & 1 == 0:
        return _PAIR
    if m.fmt == FP16 and m.wide:
        if m.round_fp16 == 0:
            return _NO_ROUND
    elif m.round_fp16 and not (m.fmt == FP16 and m.out == FP8):
        return _ROUND
    converted = _CONVERTED_32 if m.wide else _CONVERTED_16
    raw = config.get(s, m.bank, cf.PCK_DEST_RD_CTRL_Read_int8)
    if raw and (converted >> m.fmt) & 1 and not m.round_fp16:
        return _READ_RAW
    if m.out == FP8 and not config.get(s, m.bank, cf.THCON_SEC0_REG1_Pac_LF8_4b_exp):
        return _FP8
    if m.accumulate and (_ACCUMULATED >> m.out) & 1 == 0:
        return _L1_ACC
    return 0


@njit
def relu_refused(s: Any, m: Any) -> Any:
    """0, or the error of the ReLU that Mode `m` asks for."""
    if m.relu == 0:
        return 0
    s.detail[3] = m.relu
    if m.relu > 3:
        return _RELU_MODE
    if (_RELU >> m.fmt) & 1 == 0 or (m.fmt == INT32 and m.relu != 1):
        return _RELU_FORMAT
    s.detail[3] = config.get(s, m.bank, cf.STACC_RELU_ReluThreshold)
    return _RELU_THRESHOLD if s.detail[3] & 0x8000 else 0
