"""The PACR word and the modes that Config gives the packer: selections, formats, refusals.

Source of this package: PACR and FloatBitPatterns, Blackhole ISA; FormatConversion, address
generators, EdgeMasking and ExponentThresholding of the packer, Wormhole ISA; rounding, the strided
mode and checks from ttsim's Tensix model, bit for bit.
"""

from typing import Any, NamedTuple

import numpy as np

from bhemu.bits import Word, bits, choice, flags, number
from bhemu.jit.subset import njit
from bhemu.tensix import config, formats, insn, lanes, spaces
from bhemu.tensix import config_fields as cf
from bhemu.tensix.config_fields import Field
from bhemu.tensix.rules import UB, UNIMPLEMENTED, UNSUPPORTED, error, refuse, unmodelled

# Config that PACR reads.
READ_CONFIG = (
    spaces.cfg("ALU_FORMAT_SPEC_REG2_Dstacc", "ALU_FORMAT_SPEC_REG_Dstacc_*")
    | spaces.cfg("ALU_ROUNDING_MODE_[!F]*", "DEST_ACCESS_CFG_*")
    | spaces.cfg("DEST_TARGET_REG_CFG_PACK_SEC0_*", "STACC_RELU_*")
    | spaces.cfg("INT_DESCALE_*", "PACK_COUNTERS_SEC0_*", "PCK0_*", "PCK_*")
    | spaces.cfg("THCON_SEC0_REG1_[!Uo]*", "THCON_SEC0_REG9_Pack_0_2_*")
    | spaces.thread_cfg("ENABLE_ACC_STATS_Enable", "ADDR_MOD_PACK_*")
)

# How the packer is configured: its Mode, ReLU, exponent threshold, fields that must be zero.

# Intermediate formats (bit sets) that ReLU knows in all modes, and in mode 1 only.
_RELU = (1 << formats.FP32 | 1 << formats.FP16 | 1 << formats.BFP8A) | (
    1 << formats.BF16 | 1 << formats.BFP8 | 1 << formats.TF32
)
_RELU_1 = 1 << formats.INT32 | 1 << formats.UINT16 | 1 << formats.INT8

_RELU_MODE = error("PACR-RELU-MODE", UNSUPPORTED, "STACC_RELU_ApplyRelu is {mode}; 0 to 3 are known")  # fmt: skip
_RELU_THRESHOLD = error("PACR-RELU-THRESHOLD", UB, "STACC_RELU_ReluThreshold {threshold:#x} is negative; its sign bit is set")  # fmt: skip
_THRESHOLD_FORMAT = error("PACR-EXP-THRESHOLD", UNSUPPORTED, "Exp_threshold_en with intermediate format {fmt} is not modelled", "it compares exponents; integers have none")  # fmt: skip
_RELU_FORMAT = error("PACR-RELU-FORMAT", UNIMPLEMENTED, "ReLU mode {mode} with intermediate format {fmt} is not modelled", "integer formats take mode 1 only, fp8 (10) none")  # fmt: skip


_UNSUPPORTED = """PACK_COUNTERS_SEC0_pack_yz_transposed DEST_TARGET_REG_CFG_PACK_SEC0_ZOffset
    THCON_SEC0_REG1_Row_start_section_size THCON_SEC0_REG1_Dis_shared_exp_assembler
    THCON_SEC0_REG1_Enable_out_fifo THCON_SEC0_REG1_Add_l1_dest_addr_offset
    THCON_SEC0_REG1_Source_interface_selection
    THCON_SEC0_REG1_Add_tile_header_size THCON_SEC0_REG1_Downsample_rate
    THCON_SEC0_REG1_Auto_set_last_pacr_intf_sel THCON_SEC0_REG1_pack_start_intf_pos
    PCK_EDGE_TILE_FACE_SET_SELECT_enable ALU_ROUNDING_MODE_Gasket_srnd_en
    ALU_ROUNDING_MODE_Packer_srnd_en ALU_ROUNDING_MODE_GS_LF ALU_ROUNDING_MODE_Bfp8_HF"""
_BIASED = (
    "the ISA text tells that stochastic rounding is biased, not which bits it gives; "
    "a conversion that it calls identity, bitcast or truncation may go with it, and "
    "stochastic = SEED, up or down chooses a model"
)
# Each field that must be zero, with its rule.
_ZERO: list[tuple[Field, int]] = [
    (getattr(cf, name), unmodelled("PACR", name, _BIASED if "srnd" in name else "must be 0"))
    for name in _UNSUPPORTED.split()
]
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
    opaque = m.fmt == formats.UINT16 or (m.fmt == formats.BF16 and m.raw and not m.round_fp16)
    return 1 if m.wide and not opaque else 0


@njit
def zero_fields(s: Any, b: Any) -> Any:
    """Not 0 when a field that must be zero is not."""
    used = np.int64(0)
    for i in range(_ZERO_WORD.shape[0]):
        used |= np.int64(s.cfg[b, _ZERO_WORD[i, 0]]) & _ZERO_WORD[i, 1]
    return used


@njit
def _converts(m: Any, rule: Any) -> Any:
    # The same of the conversion alone, without the sum in L1.
    if rule == _LATE:
        return formats.is_bfp(m.out)
    if m.fmt == formats.UINT16:
        return m.wide != 0
    if m.round_fp16:
        return True
    return m.raw == 0 and not (m.wide and (m.fmt == formats.FP32 or m.fmt == formats.INT32))


@njit
def zero_refused(s: Any, m: Any) -> Any:
    """0, or the error of the first field that must be zero in Mode `m` and is not."""
    if zero_fields(s, m.bank) == 0:
        return 0
    for i in range(_ZERO_FIELD.shape[0]):
        word = np.int64(s.cfg[m.bank, _ZERO_FIELD[i, 0]])
        value = (word >> _ZERO_FIELD[i, 1]) & _ZERO_FIELD[i, 2]
        rule = _ZERO_RULE[i]
        if value and ((rule != _EARLY and rule != _LATE) or (m.accumulate or _converts(m, rule))):
            if s.stochastic[0] == lanes.REFUSED or (rule != _EARLY and rule != _LATE):
                return refuse(s, _ZERO_RULE[i], value=value)
            lanes.rounding_modelled(s)
    return 0


@njit
def early_by_chance(s: Any, m: Any) -> Any:
    """True when the early conversion in Mode `m` rounds stochastically, by a model."""
    if s.stochastic[0] == lanes.REFUSED or m.fmt == formats.INT8 or m.fmt == formats.UINT16:
        return False  # the last two lose no bits
    if not _converts(m, _EARLY):
        return False
    return config.get(s, m.bank, cf.ALU_ROUNDING_MODE_Gasket_srnd_en) != 0


@njit
def late_by_chance(s: Any, m: Any) -> Any:
    """True when bfp datums are rounded stochastically, by a model."""
    if s.stochastic[0] == lanes.REFUSED:
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
        if m.fmt == formats.INT8 or m.fmt == formats.UINT16 or m.fmt == formats.INT32:
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


# The word of PACR: its fields, and those that are not specified.


class PackWord(Word):
    """Fields of PACR, for its own entry and for its second entry."""

    last = bits(0, 0, choice("the tile goes on", "ends the tile"))
    flush = bits(1, 1, choice("packs", "ends the tile, packs nothing"), mode=True)
    ctxt_ctrl = bits(3, 2, insn.ZERO)
    concat = bits(4, 4, insn.IGNORED, mode=True)
    ovrd_thread_id = bits(
        7, 7, choice("counters of the issuing thread", "counters of thread addr_cnt_context")
    )
    read_intf_sel = bits(11, 8, mode=True).meaning(
        flags(
            *(f"row {i}" for i in range(4)),
            about="rows of the four from the first on",
            none="all four rows",
        )
    )
    zero_write = bits(12, 12, choice("datums from Dst", "zeros"), mode=True)
    addr_cnt_context = bits(14, 13, choice("thread 0", "thread 1", "thread 2"))
    addr_mode = bits(16, 15, number("ADDR_MOD_PACK section, applied to the counters afterwards"))
    dst_access_mode = bits(17, 17, mode=True).meaning("""
        0: rows that follow each other
        1: rows that lie 16 apart (read_intf_sel 0, 1 or 3)""")
    row_pad_zero = bits(20, 18, insn.ZERO)
    cfg_context = bits(22, 21, insn.ZERO)


UNKNOWN = PackWord.ctxt_ctrl.mask | PackWord.row_pad_zero.mask | PackWord.cfg_context.mask


# Formats of the packer: the intermediate format (In_data_format, equal to Dstacc) is what datums of
# Dst are read as, the output format what is written to L1.

_BFP_A = 1 << formats.BFP8A | 1 << formats.BFP4A | 1 << formats.BFP2A
_BFP_B = 1 << formats.BFP8 | 1 << formats.BFP4 | 1 << formats.BFP2
_FLOATS = (
    1 << formats.FP32 | 1 << formats.FP16 | 1 << formats.BF16 | 1 << formats.FP8 | _BFP_A | _BFP_B
)
_ALL = _FLOATS | 1 << formats.TF32

# Output formats (bit sets) of each intermediate format: from 16-bit Dst, from 32-bit Dst, and
# either with Round_10b_mant or with Read_int8 ("raw", no rounding).
_PAIRS_OF = {
    (0, 0): dict.fromkeys(
        (formats.FP16, formats.BFP8A, formats.BF16, formats.BFP8, formats.TF32), _ALL
    )
    | {formats.UINT16: 1 << formats.UINT16},
    (0, 1): {formats.FP32: _FLOATS, formats.TF32: _ALL, formats.BF16: _ALL, formats.BFP8: _ALL}
    | {f: 1 << f for f in (formats.INT32, formats.UINT16, formats.INT8)},
    (1, 0): {formats.FP16: 1 << formats.FP8},
    (1, 1): {formats.FP16: 1 << formats.FP16 | 1 << formats.FP8},
    (2, 0): {f: 1 << f for f in (formats.FP16, formats.FP8, formats.INT8, formats.UINT16)}
    | {formats.BF16: 1 << formats.FP32 | 1 << formats.BF16},
    (2, 1): {f: 1 << f for f in (formats.INT32, formats.UINT16, formats.INT8)}
    | {formats.FP32: _FLOATS, formats.BF16: 1 << formats.FP32 | 1 << formats.BF16},
}
_PAIRS = np.array(
    [[_PAIRS_OF[how, wide].get(f, 0) for wide in range(2) for f in range(16)] for how in range(3)],
    np.int64,
)
_ACCUMULATED = 1 << formats.FP32 | 1 << formats.FP16 | 1 << formats.BF16 | 1 << formats.INT32
_CODES = f"format codes: {formats.CODES}"

# In the sentences: fmt intermediate format, out output format, wide Read_32b_data.
_DSTACC = error("PACR-DSTACC", UB, "ALU_FORMAT_SPEC_REG2_Dstacc is {dstacc}, but In_data_format is {fmt}", "both must name the intermediate format; with Round_10b_mant bf16 (5) may become fp16 (1)")  # fmt: skip
_PAIR = error("PACR-FORMATS", UNSUPPORTED, "packing intermediate format {fmt} as {out} with Read_32b_data {wide} is no conversion of the packer", _CODES)  # fmt: skip
_ROUND = error("PACR-ROUND", UNIMPLEMENTED, "packing format {fmt} as {out} with Read_32b_data {wide} and Round_10b_mant is not modelled", _CODES)  # fmt: skip
_NO_ROUND = error("PACR-NO-ROUND", UNSUPPORTED, "packing 32-bit Dst as fp16 (intermediate format 1) without Round_10b_mant is not modelled", "set PCK_DEST_RD_CTRL_Round_10b_mant")  # fmt: skip
_READ_RAW = error("PACR-READ-INT8", UNIMPLEMENTED, "packing format {fmt} as {out} with Read_32b_data {wide} and Read_int8 is not modelled", "Read_int8 keeps denormals and NaN: it takes fp32, bf16, fp16 and integers as they are")  # fmt: skip
_FP8 = error("PACR-FP8", UNSUPPORTED, "packing format {fmt} as e4m3 (Pac_LF8_4b_exp) is not modelled", "the intermediate format must be fp16 (1)")  # fmt: skip
_INT_DESCALE = error("PACR-INT-DESCALE", UNIMPLEMENTED, "packing int8 with INT_DESCALE_Enable is not modelled", "clear INT_DESCALE_Enable and shift in the vector unit")  # fmt: skip
_L1_ACC = error("PACR-L1-ACC", UNSUPPORTED, "Pack_L1_Acc with output format {out} is not modelled", "L1 adds 32- and 16-bit datums: fp32 (0), fp16 (1), bf16 (5) and int32 (8)")  # fmt: skip


@njit
def intermediate(s: Any, b: Any) -> Any:
    """The intermediate format of the early conversion: Dstacc, or what overrides it."""
    if config.get(s, b, cf.ALU_FORMAT_SPEC_REG_Dstacc_override):
        return config.get(s, b, cf.ALU_FORMAT_SPEC_REG_Dstacc_val)
    return config.get(s, b, cf.ALU_FORMAT_SPEC_REG2_Dstacc)


@njit(forceinline=True)  # one caller
def formats_refused(s: Any, m: Any) -> Any:
    """0, or the error of the formats of Mode `m`."""
    dstacc = intermediate(s, m.bank)
    if dstacc != m.fmt and not (m.round_fp16 and m.fmt == formats.FP16 and dstacc == formats.BF16):
        return refuse(s, _DSTACC, dstacc=dstacc, fmt=m.fmt)
    if (_PAIRS[0, 16 * m.wide + m.fmt] >> m.out) & 1 == 0:
        how: Any = 1 if m.round_fp16 else 2 if m.raw else 0
        if how == 0 and (_PAIRS[1, 16 * m.wide + m.fmt] >> m.out) & 1:
            return _NO_ROUND
        if (_PAIRS[how, 16 * m.wide + m.fmt] >> m.out) & 1 == 0:
            return refuse(s, _PAIR, fmt=m.fmt, out=m.out, wide=m.wide)
    elif m.round_fp16 and (_PAIRS[1, 16 * m.wide + m.fmt] >> m.out) & 1 == 0:
        return refuse(s, _ROUND, fmt=m.fmt, out=m.out, wide=m.wide)
    elif m.raw and not m.round_fp16 and (_PAIRS[2, 16 * m.wide + m.fmt] >> m.out) & 1 == 0:
        return refuse(s, _READ_RAW, fmt=m.fmt, out=m.out, wide=m.wide)
    four = config.get(s, m.bank, cf.THCON_SEC0_REG1_Pac_LF8_4b_exp)
    if m.out == formats.FP8 and four and m.fmt != formats.FP16 and m.fmt != formats.BFP8A:
        return refuse(s, _FP8, fmt=m.fmt)
    if m.accumulate and (_ACCUMULATED >> m.out) & 1 == 0:
        return refuse(s, _L1_ACC, out=m.out)
    unsigned = config.get(s, m.bank, cf.PCK_DEST_RD_CTRL_Read_unsigned)
    if m.fmt == formats.INT8 and m.raw and unsigned and not m.wide:
        return refuse(s, _READ_RAW, fmt=m.fmt, out=m.out, wide=m.wide)
    if m.fmt == formats.INT8 and config.get(s, m.bank, cf.INT_DESCALE_Enable):
        return _INT_DESCALE
    return 0
