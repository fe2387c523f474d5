"""What the arithmetic of the matrix unit has in common: banks, formats, rows, and the way out.

Everything here is asked before any effect.  Source: MVMUL, ELWADD and GMPOOL, Wormhole ISA; the
checks of ttsim's Tensix model.
"""

from typing import Any

from bhemu.bits import Word, bits
from bhemu.jit.subset import njit
from bhemu.operand import choice, flags
from bhemu.tensix import banks, config, dest, formats, rwc, stochastic, tables
from bhemu.tensix import config_fields as cf
from bhemu.tensix.banks import SRCA, SRCB
from bhemu.tensix.quirks import refuse
from bhemu.tensix.status import UNIMPLEMENTED, UNSUPPORTED, error

FLOAT, FIVE_BIT, INT8 = range(3)  # styles: 8-bit exponents, 5-bit exponents, integers

# Formats with an 8-bit exponent that an operand may have, as bit masks over the format codes.
PRODUCT_A = (
    1 << formats.FP32
    | 1 << formats.TF32
    | 1 << formats.BF16
    | 1 << formats.BFP8
    | 1 << formats.BFP4
    | 1 << formats.BFP2
)
PRODUCT_B = PRODUCT_A | 1 << formats.UINT16
ELEMENT_A = PRODUCT_A
ELEMENT_B = PRODUCT_B | 1 << formats.INT32
INT8_ONLY = 1 << formats.INT8
INT8_OR_BFP2 = 1 << formats.INT8 | 1 << formats.BFP2

_HINT = f"formats come from the banks or from ALU_FORMAT_SPEC; codes: {formats.CODES}"

_DST_FIELD = error(
    "FPU-DST-FIELD",
    UNSUPPORTED,
    "the dst field {dst} is not a multiple of {rows}",
    "matrix operations write aligned blocks: 8 rows, pooling 4",
)
_SRC_ROW = error(
    "FPU-SRC-ROW",
    UNSUPPORTED,
    "the Src row counter {row} is not a multiple of {rows}",
    "SrcA of products and pooling: 16; SrcB, and SrcA of element-wise operations: 8",
)
_DST_ROW = error(
    "FPU-DST-ROW",
    UNSUPPORTED,
    "Dst row {row} (dst field + RWC.Dst + math offset) is not a multiple of {rows} below 1024",
    "align the sum and keep it inside Dst",
)
_OVERRIDE = error(
    "FPU-OVERRIDE",
    UNSUPPORTED,
    "matrix operations with ALU_FORMAT_SPEC_REG_SrcA_override are not modelled",
    "leave the override 0",
)
_FORMATS = error(
    "FPU-FORMATS",
    UNIMPLEMENTED,
    "this operation is not modelled for SrcA format {fmt_a} with SrcB format {fmt_b}",
    _HINT,
)
_INT8_FORMATS = error(
    "FPU-INT8-FORMATS",
    UNSUPPORTED,
    "ALU_ACC_CTRL_INT8_math_enabled with SrcA format {fmt_a}, SrcB format {fmt_b}: both must be "
    "int8",
    _HINT,
)
_MIXED = error(
    "FPU-FIVE-BIT",
    UNSUPPORTED,
    "SrcA format {fmt_a} has 5-bit exponents, so SrcB needs the same format (is {fmt_b})",
    _HINT,
)
_STOCHASTIC = error(
    "FPU-STOCHASTIC",
    UNSUPPORTED,
    "stochastic rounding of the matrix unit (ALU_ROUNDING_MODE_Fpu_srnd_en): no source says which "
    "random bits it takes",
    "clear the bit, or choose a model: stochastic = SEED, up or down",
)


SUMS = (cf.ALU_ROUNDING_MODE_Fpu_srnd_en,)
"""Makes instructions that add to Dst round by chance."""


class Elementwise(Word):
    """Fields of the operations that broadcast SrcB or not, and add to Dst or not."""

    dst = bits(9, 0, tables.DST_ROW)
    addr_mode = bits(16, 14, tables.ADDR_MOD)
    instr_mod19 = bits(
        20,
        19,
        flags(
            "column 0 of SrcB for all columns",
            "the first row of SrcB for all rows",
            about="broadcast",
        ),
        mode=True,
    )
    dest_accum_en = bits(21, 21, choice({0: "replaces Dst", 1: "adds to Dst"}), mode=True)
    clear_dvalid = bits(23, 22, tables.RELEASED, mode=True)


@njit(forceinline=True)
def dst_field_refused(s: Any, dst: Any, rows: Any) -> Any:
    """0, or the error of a dst field that is not a multiple of `rows` (4 or 8)."""
    return refuse(s, _DST_FIELD, dst=dst, rows=rows) if dst & (rows - 1) else 0


@njit(forceinline=True)
def waits(s: Any) -> Any:
    """0 when both matrix banks are valid, else the condition."""
    condition = banks.matrix_ready(s, SRCA)
    return condition if condition else banks.matrix_ready(s, SRCB)


@njit(forceinline=True)
def override_refused(s: Any, t: Any) -> Any:
    """0, or the error of a SrcA format override."""
    return (
        _OVERRIDE if config.get(s, config.bank(s, t), cf.ALU_FORMAT_SPEC_REG_SrcA_override) else 0
    )


@njit
def stochastically(s: Any, t: Any) -> Any:
    """1 when sums are rounded stochastically."""
    return config.get(s, config.bank(s, t), cf.ALU_ROUNDING_MODE_Fpu_srnd_en)


@njit
def integers(s: Any, t: Any) -> Any:
    """1 when operands are integers (ALU_ACC_CTRL_INT8_math_enabled)."""
    int8 = config.get(s, config.bank(s, t), cf.ALU_ACC_CTRL_INT8_math_enabled)
    return int8 & ~banks.fp16_forced(s, t)


@njit
def style_of(s: Any, t: Any, accepted_a: Any, accepted_b: Any, int8_b: Any) -> Any:
    """FLOAT, FIVE_BIT or INT8, or the error (< 0) of formats that do not go together."""
    a, b = banks.format_a(s, t, SRCA), banks.format_b(s, t)
    if integers(s, t):
        fits = (INT8_ONLY >> a) & (int8_b >> b) & 1
        return INT8 if fits else refuse(s, _INT8_FORMATS, fmt_a=a, fmt_b=b)
    if s.stochastic[0] == stochastic.REFUSED and stochastically(s, t):
        return _STOCHASTIC
    if (formats.FIVE_BIT >> a) & 1:
        return FIVE_BIT if a == b else refuse(s, _MIXED, fmt_a=a, fmt_b=b)
    if (accepted_a >> a) & (accepted_b >> b) & 1:
        return FLOAT
    return refuse(s, _FORMATS, fmt_a=a, fmt_b=b)


@njit(forceinline=True)
def src_rows_refused(s: Any, t: Any, rows_a: Any) -> Any:
    """0, or the error of a row counter (SrcA in steps of `rows_a`, SrcB of 8) or of SrcA's rows."""
    if s.rwc[t, rwc.SRCA] & (rows_a - 1):
        return refuse(s, _SRC_ROW, row=s.rwc[t, rwc.SRCA], rows=rows_a)
    if s.rwc[t, rwc.SRCB] & 7:
        return refuse(s, _SRC_ROW, row=s.rwc[t, rwc.SRCB], rows=8)
    return banks.doubtful(s, s.rwc[t, rwc.SRCA], rows_a)


@njit(forceinline=True)
def dst_row_refused(s: Any, row: Any, rows: Any) -> Any:
    """0, or the error of a Dst row that is not a multiple of `rows` or not below 1024."""
    if row & (rows - 1) or row >= dest.ROWS:
        return refuse(s, _DST_ROW, row=row, rows=rows)
    return 0


@njit(forceinline=True)
def wide_dst(s: Any, t: Any) -> Any:
    """1 when floating-point results go to a 32-bit Dst (ALU_ACC_CTRL_Fp32_enabled)."""
    wide = config.get(s, config.bank(s, t), cf.ALU_ACC_CTRL_Fp32_enabled)
    return wide & ~banks.fp16_forced(s, t)


@njit(forceinline=True)
def keeps_denormals(s: Any, t: Any) -> Any:
    """1 when SrcB data with exponent 0 count (ALU_ACC_CTRL_Zero_Flag_disabled_src)."""
    return config.get(s, config.bank(s, t), cf.ALU_ACC_CTRL_Zero_Flag_disabled_src)


@njit(forceinline=True)
def finish(s: Any, t: Any, addr_mode: Any, clear_dvalid: Any) -> Any:
    """Note the SrcA row, step the row counters, release the banks that clear_dvalid names."""
    s.srca_row[0] = s.rwc[t, rwc.SRCA]
    rwc.apply_addr_mod(s, t, addr_mode)
    return banks.release(s, t, clear_dvalid) if clear_dvalid else 0
