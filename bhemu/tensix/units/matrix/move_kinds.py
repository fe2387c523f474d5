"""What a move between Dst and Src carries: kinds of datums, rows, and what it refuses."""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import banks, config, dest, rwc
from bhemu.tensix import config_fields as cf
from bhemu.tensix.formats import (
    BF16,
    BFP2,
    BFP4,
    BFP8,
    FIVE_BIT_DATUMS,
    FP32,
    INT32,
    TF32,
    UINT16,
)
from bhemu.tensix.quirks import excused, follows_llk, noted, refuse, violated
from bhemu.tensix.status import NCB, UB, UNIMPLEMENTED, UNSUPPORTED, error
from bhemu.tensix.units.matrix import transfer

# Bit masks over the format codes: 8-bit exponents, and all that the ISA names (ttsim takes fewer).
_EIGHT_BIT = 1 << FP32 | 1 << BF16 | 1 << BFP8 | 1 << BFP4 | 1 << BFP2 | 1 << INT32 | 1 << UINT16
_NAMED = FIVE_BIT_DATUMS | _EIGHT_BIT | 1 << TF32

NO_ROW = -1  # the ISA names MOVD2B and MOVB2D for SHIFTXA, but no SrcA row that they compute

MODE = error(
    "MOV-MODE",
    UNSUPPORTED,
    "this move with instr_mod {instr_mod} is not modelled",
    "MOVD2A, MOVB2A: 2; MOVA2D, MOVDBGA2D, MOVD2B: 0 or 2; MOVB2D: 2 to 5, and 0 and 1 "
    "with reference llk",
)
_DST_ROW = error(
    "MOV-DST-ROW",
    UNSUPPORTED,
    "Dst row {row} of a move is not a multiple of {rows}",
    "align the dst field and the sum of dst field, RWC.Dst and math offset",
)
_SRC_ROW = error(
    "MOV-SRC-ROW",
    UNSUPPORTED,
    "Src row {row} of a move is not a multiple of {rows} below 64",
    "align the src field and the sum of src field and RWC",
)
_FORMAT = error(
    "MOV-FORMAT",
    UNIMPLEMENTED,
    "this move is not modelled for SrcA format {fmt}",
    "the format comes from the bank (Out_data_format) or from ALU_FORMAT_SPEC_REG0_SrcA",
)
OVERRIDE = error(
    "MOV-OVERRIDE",
    UNSUPPORTED,
    "MOVD2A with ALU_FORMAT_SPEC_REG_SrcA_override is not modelled",
    "leave the override 0",
)
_TF32_LOW = error(
    "MOV-TF32-LOW",
    UB,
    "tf32 is moved to Dst with dest_32b_lo set (erratum TEN-4245)",
    "clear dest_32b_lo, or use a format other than tf32",
)
_FIVE_BIT_LOW = error(
    "MOV-FP16-LOW",
    UNSUPPORTED,
    "a move of SrcA format {fmt} (5-bit exponent) to Dst with dest_32b_lo is not modelled",
    "clear dest_32b_lo",
)
_FROM_32 = error(
    "MOV-FROM-32",
    UNIMPLEMENTED,
    "a move from 32-bit Dst with SrcA format {fmt}, dest_32b_lo {low} is not modelled",
    "dest_32b_lo: MOVD2B only and not with tf32; fp16: 16-bit Dst only",
)
_LOW_OF_16 = error(
    "MOV-LOW-OF-16",
    UB,
    "a move reads the low half (dest_32b_lo) of 16-bit Dst",
    "set ALU_ACC_CTRL_Fp32_enabled, or clear dest_32b_lo; production kernels let MOVD2B do so with "
    "bit 11 of DBG_FEATURE_DISABLE set, and reference llk follows them",
)
_LOW_READ = error(
    "MOV-LOW-READ",
    UB,
    "MOVD2B read low halves (dest_32b_lo) with ALU_ACC_CTRL_Fp32_enabled 0 and bit 11 of "
    "DBG_FEATURE_DISABLE set: those of 32-bit datums were taken",
    "production kernels need them; the ISA text leaves it undefined",
)
DEBUG_FORMAT = error(
    "MOVDBGA2D-FORMAT",
    NCB,
    "MOVDBGA2D reads a SrcA bank that is not valid, which implies no format",
    "set DISABLE_IMPLIED_SRCA_FMT_Base and ALU_FORMAT_SPEC_REG0_SrcA",
)
_TF32_OF_16 = error(
    "MOV-TF32-OF-16",
    UB,
    "a move reads tf32 from 16-bit Dst, which cannot hold it",
    "set ALU_ACC_CTRL_Fp32_enabled, or use another SrcA format",
)


@njit
def unaligned(s: Any, dst: Any, src: Any, rows: Any) -> Any:
    """0, or the error of a Dst or Src row that is not a multiple of `rows` (4 or 8).

    By the ISA text moves leave out the low bits; fast tilize begins with whatever RWC.Dst holds.
    """
    status = np.int64(0)
    if dst & (rows - 1):
        status = excused(s, _DST_ROW, row=dst, rows=rows)
    if status == 0 and (src & (rows - 1) or src >= rwc.SRC_ROWS):
        status = excused(s, _SRC_ROW, row=src, rows=rows)
    return status


@njit(inline="always")
def down(row: Any, rows: Any) -> Any:
    """The multiple of `rows` (1, 4 or 8) below a Dst row."""
    return row & ~(rows - 1)


@njit(inline="always")
def src_down(row: Any, rows: Any) -> Any:
    """The same for a Src row."""
    return row & (rwc.SRC_ROWS - rows)


@njit
def put_kind(s: Any, fmt: Any, low: Any) -> Any:
    """How a move stores format `fmt` into Dst, or the error."""
    if not (_NAMED >> fmt) & 1:
        return refuse(s, _FORMAT, fmt=fmt)
    if fmt == TF32:
        if low:
            status = violated(s, _TF32_LOW)
            return status if status else transfer.PUT_32_LOW
        return transfer.PUT_32
    if (FIVE_BIT_DATUMS >> fmt) & 1:
        return refuse(s, _FIVE_BIT_LOW, fmt=fmt) if low else transfer.PUT_FP16
    return transfer.PUT_LOW if low else transfer.PUT_BF16


@njit
def _low_of_16(s: Any, fmt: Any, low_ok: Any) -> Any:
    """How a move reads low halves of Dst with 16-bit datums, or the error.

    By production kernels, MOVD2B reads those of 32-bit rows where 16-bit datums are high halves.
    """
    if low_ok and follows_llk(s) and dest.halves(s) and (_EIGHT_BIT >> fmt) & 1:
        noted(s, _LOW_READ)
        return transfer.GET_LOW
    return _LOW_OF_16


@njit
def get_kind(s: Any, t: Any, fmt: Any, low: Any, low_ok: Any) -> Any:
    """How a move reads Dst for format `fmt`, or the error."""
    if not (_NAMED >> fmt) & 1:
        return refuse(s, _FORMAT, fmt=fmt)
    b = config.bank(s, t)
    wide = config.get(s, b, cf.ALU_ACC_CTRL_Fp32_enabled)
    wide |= config.get(s, b, cf.ALU_ACC_CTRL_INT8_math_enabled)
    if wide & ~banks.fp16_forced(s, t):
        if (FIVE_BIT_DATUMS >> fmt) & 1 or (low and (fmt == TF32 or not low_ok)):
            return refuse(s, _FROM_32, fmt=fmt, low=low)
        if fmt == TF32:
            return transfer.GET_TF32
        return transfer.GET_LOW if low else transfer.GET_HIGH
    if low:
        return _low_of_16(s, fmt, low_ok)
    if fmt == TF32:
        return _TF32_OF_16
    return transfer.GET_FP16 if (FIVE_BIT_DATUMS >> fmt) & 1 else transfer.GET_BF16
