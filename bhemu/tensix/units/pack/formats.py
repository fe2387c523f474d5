"""Formats of the packer: which intermediate format may become which output format.

The intermediate format (In_data_format, equal to Dstacc) is what Dst datums are read as, the output
format what is written to L1.  Source: PACR, Blackhole ISA; the checks from ttsim's Tensix model.
"""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import config, formats
from bhemu.tensix import config_fields as cf
from bhemu.tensix.formats import (
    BF16,
    BFP2,
    BFP2A,
    BFP4,
    BFP4A,
    BFP8,
    BFP8A,
    FP8,
    FP16,
    FP32,
    INT8,
    INT32,
    TF32,
    UINT16,
)
from bhemu.tensix.quirks import refuse
from bhemu.tensix.status import UB, UNIMPLEMENTED, UNSUPPORTED, error

_BFP_A = 1 << BFP8A | 1 << BFP4A | 1 << BFP2A
_BFP_B = 1 << BFP8 | 1 << BFP4 | 1 << BFP2
_FLOATS = 1 << FP32 | 1 << FP16 | 1 << BF16 | 1 << FP8 | _BFP_A | _BFP_B
_ALL = _FLOATS | 1 << TF32

# Output formats (bit sets) of each intermediate format: from 16-bit Dst, from 32-bit Dst, and
# either with Round_10b_mant or with Read_int8 ("raw", no rounding).
_PAIRS_OF = {
    (0, 0): dict.fromkeys((FP16, BFP8A, BF16, BFP8, TF32), _ALL) | {UINT16: 1 << UINT16},
    (0, 1): {FP32: _FLOATS, TF32: _ALL, BF16: _ALL, BFP8: _ALL}
    | {f: 1 << f for f in (INT32, UINT16, INT8)},
    (1, 0): {FP16: 1 << FP8},
    (1, 1): {FP16: 1 << FP16 | 1 << FP8},
    (2, 0): {f: 1 << f for f in (FP16, FP8, INT8, UINT16)} | {BF16: 1 << FP32 | 1 << BF16},
    (2, 1): {f: 1 << f for f in (INT32, UINT16, INT8)}
    | {FP32: _FLOATS, BF16: 1 << FP32 | 1 << BF16},
}
_PAIRS = np.array(
    [[_PAIRS_OF[how, wide].get(f, 0) for wide in range(2) for f in range(16)] for how in range(3)],
    np.int64,
)
_ACCUMULATED = 1 << FP32 | 1 << FP16 | 1 << BF16 | 1 << INT32
_CODES = f"format codes: {formats.CODES}"

# In the sentences: fmt intermediate format, out output format, wide Read_32b_data.
_DSTACC = error(
    "PACR-DSTACC",
    UB,
    "ALU_FORMAT_SPEC_REG2_Dstacc is {dstacc}, but In_data_format is {fmt}",
    "both must name the intermediate format; with Round_10b_mant bf16 (5) may become fp16 (1)",
)
_PAIR = error(
    "PACR-FORMATS",
    UNSUPPORTED,
    "packing intermediate format {fmt} as {out} with Read_32b_data {wide} is no conversion of "
    "the packer",
    _CODES,
)
_ROUND = error(
    "PACR-ROUND",
    UNIMPLEMENTED,
    "packing format {fmt} as {out} with Read_32b_data {wide} and Round_10b_mant is not modelled",
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
    "packing format {fmt} as {out} with Read_32b_data {wide} and Read_int8 is not modelled",
    "Read_int8 keeps denormals and NaN: it takes fp32, bf16, fp16 and integers as they are",
)
_FP8 = error(
    "PACR-FP8",
    UNSUPPORTED,
    "packing format {fmt} as e4m3 (Pac_LF8_4b_exp) is not modelled",
    "the intermediate format must be fp16 (1)",
)
_INT_DESCALE = error(
    "PACR-INT-DESCALE",
    UNIMPLEMENTED,
    "packing int8 with INT_DESCALE_Enable is not modelled",
    "clear INT_DESCALE_Enable and shift in the vector unit",
)
_L1_ACC = error(
    "PACR-L1-ACC",
    UNSUPPORTED,
    "Pack_L1_Acc with output format {out} is not modelled",
    "L1 adds 32- and 16-bit datums: fp32 (0), fp16 (1), bf16 (5) and int32 (8)",
)


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
    if dstacc != m.fmt and not (m.round_fp16 and m.fmt == FP16 and dstacc == BF16):
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
    if m.out == FP8 and four and m.fmt != FP16 and m.fmt != BFP8A:
        return refuse(s, _FP8, fmt=m.fmt)
    if m.accumulate and (_ACCUMULATED >> m.out) & 1 == 0:
        return refuse(s, _L1_ACC, out=m.out)
    unsigned = config.get(s, m.bank, cf.PCK_DEST_RD_CTRL_Read_unsigned)
    if m.fmt == INT8 and m.raw and unsigned and not m.wide:
        return refuse(s, _READ_RAW, fmt=m.fmt, out=m.out, wide=m.wide)
    if m.fmt == INT8 and config.get(s, m.bank, cf.INT_DESCALE_Enable):
        return _INT_DESCALE
    return 0
