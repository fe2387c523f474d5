"""The matrix unit: its operands, rows of SrcA and SrcB, formats, parts of a fidelity phase."""

from typing import Any, NamedTuple

import numpy as np

from bhemu.bits import bits, choice, flags
from bhemu.jit.intrinsics import flat
from bhemu.jit.subset import njit
from bhemu.tensix import banks, config, dest, formats, insn, lanes, spaces
from bhemu.tensix import config_fields as cf
from bhemu.tensix.banks import SRCA, SRCB, STALE
from bhemu.tensix.dest import COLUMNS, LOW_HALF
from bhemu.tensix.insn import Instruction
from bhemu.tensix.rules import UNIMPLEMENTED, UNSUPPORTED, error, refuse
from bhemu.tensix.spaces import Kind
from bhemu.tensix.units import counters
from bhemu.tensix.units.counters import SRC_ROWS

# What most words of the matrix unit read besides cells, and write besides them.
READ = (
    (spaces.BANKS | spaces.DST_ROW | spaces.ADDR_MODS | spaces.STOCHASTIC | spaces.DEBUG)
    | spaces.cfg("ALU_FORMAT_SPEC_REG[01]_*", "ALU_FORMAT_SPEC_REG_Src*", "ALU_ACC_CTRL_*")
    | spaces.cfg("ALU_ROUNDING_MODE_Fpu_srnd_en", "DEST_ACCESS_CFG_*")
    | spaces.thread_cfg("FIDELITY_BASE_Phase", "FP16A_FORCE_Enable", "SFPU_DEST_FMT_*")
    | spaces.thread_cfg("DISABLE_IMPLIED_*", "CLR_DVALID_*")
)
WRITTEN = (spaces.RWC | spaces.LAST_ROW | spaces.STOCHASTIC) | spaces.bank(
    "clear_dvalid", Kind.FREES
)

# What the arithmetic of the matrix unit shares: banks, formats, rows, and the way out; all is asked
# before any effect.  Source: MVMUL, ELWADD and GMPOOL, Wormhole ISA; integer modes, products
# and checks in ttsim's Tensix model.

FLOAT, FIVE_BIT, INT8 = range(3)  # styles: 8-bit exponents, 5-bit exponents, integers

# Formats with an 8-bit exponent that an operand may have, as bit masks over the format codes.
PRODUCT_A = (1 << formats.FP32 | 1 << formats.TF32 | 1 << formats.BF16) | (
    1 << formats.BFP8 | 1 << formats.BFP4 | 1 << formats.BFP2
)
PRODUCT_B = PRODUCT_A | 1 << formats.UINT16
ELEMENT_A = PRODUCT_A
ELEMENT_B = PRODUCT_B | 1 << formats.INT32
INT8_ONLY = 1 << formats.INT8
INT8_OR_BFP2 = 1 << formats.INT8 | 1 << formats.BFP2

_HINT = f"formats come from the banks or from ALU_FORMAT_SPEC; codes: {formats.CODES}"

_DST_FIELD = error("FPU-DST-FIELD", UNSUPPORTED, "the dst field {dst} is not a multiple of {rows}", "matrix operations write aligned blocks: 8 rows, pooling 4")  # fmt: skip
_SRC_ROW = error("FPU-SRC-ROW", UNSUPPORTED, "the Src row counter {row} is not a multiple of {rows}", "SrcA of products and pooling: 16; SrcB, and SrcA of element-wise operations: 8")  # fmt: skip
_DST_ROW = error("FPU-DST-ROW", UNSUPPORTED, "Dst row {row} (dst field + RWC.Dst + math offset) is not a multiple of {rows} below 1024", "align the sum and keep it inside Dst")  # fmt: skip
_OVERRIDE = error("FPU-OVERRIDE", UNSUPPORTED, "matrix operations with ALU_FORMAT_SPEC_REG_SrcA_override are not modelled", "leave the override 0")  # fmt: skip
_FORMATS = error("FPU-FORMATS", UNIMPLEMENTED, "this operation is not modelled for SrcA format {fmt_a} with SrcB format {fmt_b}", _HINT)  # fmt: skip
_INT8_FORMATS = error("FPU-INT8-FORMATS", UNSUPPORTED, "ALU_ACC_CTRL_INT8_math_enabled with SrcA format {fmt_a}, SrcB format {fmt_b}: both must be int8", _HINT)  # fmt: skip
_MIXED = error("FPU-FIVE-BIT", UNSUPPORTED, "SrcA format {fmt_a} has 5-bit exponents, so SrcB needs the same format (is {fmt_b})", _HINT)  # fmt: skip
_STOCHASTIC = error("FPU-STOCHASTIC", UNSUPPORTED, "stochastic rounding of the matrix unit (ALU_ROUNDING_MODE_Fpu_srnd_en): no source says which random bits it takes", "clear the bit, or choose a model: stochastic = SEED, up or down")  # fmt: skip


SUMS = (cf.ALU_ROUNDING_MODE_Fpu_srnd_en,)
"""Makes instructions that add to Dst round by chance."""


class Elementwise(Instruction, unit="matrix"):
    """Fields of the operations that broadcast SrcB or not, and add to Dst or not."""

    reads = spaces.ALL_SRC | spaces.dst("dst", 8) | READ
    writes = spaces.dst("dst", 8) | WRITTEN

    dst = bits(9, 0, insn.DST_ROW)
    addr_mode = bits(16, 14, insn.ADDR_MOD)
    instr_mod19 = bits(20, 19, mode=True).meaning(
        flags(
            *("column 0 of SrcB for all columns", "the first row of SrcB for all rows"),
            about="broadcast",
        )
    )
    dest_accum_en = bits(21, 21, choice("replaces Dst", "adds to Dst"), mode=True)
    clear_dvalid = bits(23, 22, insn.RELEASED, mode=True)


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
    b = config.bank(s, t)
    return _OVERRIDE if config.get(s, b, cf.ALU_FORMAT_SPEC_REG_SrcA_override) else 0


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
    if s.stochastic[0] == lanes.REFUSED and stochastically(s, t):
        return _STOCHASTIC
    if (formats.FIVE_BIT >> a) & 1:
        return FIVE_BIT if a == b else refuse(s, _MIXED, fmt_a=a, fmt_b=b)
    if (accepted_a >> a) & (accepted_b >> b) & 1:
        return FLOAT
    return refuse(s, _FORMATS, fmt_a=a, fmt_b=b)


@njit(forceinline=True)
def src_rows_refused(s: Any, t: Any, rows_a: Any) -> Any:
    """0, or the error of a row counter (SrcA in steps of `rows_a`, SrcB of 8) or of SrcA's rows."""
    if s.rwc[t, counters.SRCA] & (rows_a - 1):
        return refuse(s, _SRC_ROW, row=s.rwc[t, counters.SRCA], rows=rows_a)
    if s.rwc[t, counters.SRCB] & 7:
        return refuse(s, _SRC_ROW, row=s.rwc[t, counters.SRCB], rows=8)
    return banks.doubtful(s, s.rwc[t, counters.SRCA], rows_a)


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
    s.srca_row[0] = s.rwc[t, counters.SRCA]
    counters.apply_addr_mod(s, t, addr_mode)
    return banks.release(s, t, clear_dvalid) if clear_dvalid else 0


# Src banks prepared for products: exponents and signed slices of the mantissas, kept per bank.
#
# A multiplier takes 5 bits of SrcA and 7 bits of SrcB; the two bits of the fidelity phase choose
# which.  The slices of a whole bank are cut once, when the first product reads it, and serve all
# phases.  `s.src_prepared` names their form; writers of a bank call `banks.changed`, which forgets
# them.

# Forms of the cells of a bank: as bf16, as tf32, with a 5-bit exponent, as integers.
BF16, TF32, PREPARED_FIVE_BIT, PREPARED_INT8 = range(STALE + 1, STALE + 5)
ABSENT = -2000  # exponent of zeros: no sum with another exponent wins a maximum
GROUP = 4  # rows whose exponents are checked together

_U, _I = np.uint32, np.int32
_WIDE = _U(0x70000000)


class Cut(NamedTuple):
    """Slices of a mantissa m: (m >> high_shift) & high_mask, (m << low_shift) & low_mask."""

    hidden: int
    high_shift: int
    high_mask: int
    low_shift: int
    low_mask: int


# SrcA: bits 10-6 and 5-1, doubled so that products can be rounded; SrcB: bits 10-4, and 3-0 in
# the place of the former.  Integers stay where they are.
_FLOAT_A = Cut(0x400, 5, 0x3E, 0, 0x3E)
_FLOAT_B = Cut(0x400, 4, 0x7F, 3, 0x78)
INT8_A = Cut(0, 0, 0xE0, 0, 0x1F)
INT8_B = Cut(0, 0, 0x3F0, 0, 0x00F)


@njit
def mask_of(form: Any) -> Any:
    """Bits of a cell that the form has (uint32)."""
    if form == BF16:
        return _U(0xFFFF0000)
    return _U(0x8FFFE000) if form == PREPARED_FIVE_BIT else _U(0xFFFFE000)


@njit(forceinline=True)
def _slice(v: Any, magnitude: Any) -> Any:
    """`magnitude` with the sign of cell `v`, 0 when its exponent is 0, as int16."""
    m = _I(magnitude)
    m = _I(-m) if v >> _U(31) else m
    return np.int16(m if v & _U(0x7F800000) else _I(0))


@njit
def _cut(s: Any, which: Any, bank: Any, mask: Any, cut: Any) -> None:
    cells, exponents = flat(s.src[which, bank]), flat(s.src_exponent[which, bank])
    high, low = flat(s.src_slice[which, bank, 0]), flat(s.src_slice[which, bank, 1])
    hidden, high_shift, high_mask = _U(cut.hidden), _U(cut.high_shift & 7), _U(cut.high_mask)
    low_shift, low_mask = _U(cut.low_shift & 7), _U(cut.low_mask)
    for i in range(SRC_ROWS * COLUMNS):
        v = _U(cells[i] & mask)
        m = _U(_U(_U(v >> _U(13)) & _U(0x3FF)) | hidden)
        e = _I(_U(v >> _U(23)) & _U(255))
        exponents[i] = np.int16(e if e != _I(0) else _I(ABSENT))
        high[i] = _slice(v, _U(_U(m >> high_shift) & high_mask))
        low[i] = _slice(v, _U(_U(m << low_shift) & low_mask))


@njit
def prepare(s: Any, which: Any, form: Any) -> Any:
    """Prepare the matrix bank of SRCA or SRCB in `form` unless it is; the number of the bank."""
    bank = s.matrix_bank[which] & 1
    if s.src_prepared[which, bank] != form:
        if form == PREPARED_INT8:
            cut = INT8_A if which == SRCA else INT8_B
        else:
            cut = _FLOAT_A if which == SRCA else _FLOAT_B
        _cut(s, which, bank, mask_of(form), cut)
        if form == PREPARED_INT8 or form == PREPARED_FIVE_BIT:
            for group in range(SRC_ROWS // GROUP):
                found = _U(0)
                for row in range(group * GROUP, group * GROUP + GROUP):
                    for col in range(COLUMNS):
                        found |= _U(s.src[which, bank, row, col] & _WIDE)
                s.src_wide[which, bank, group] = np.int64(found)
        s.src_prepared[which, bank] = form
    return bank


# Integer arithmetic of the matrix unit: 8-bit operands, Dst as saturating 32-bit sign-magnitude.

LARGEST = 0x7FFFFFFF


@njit(forceinline=True)
def _value(pattern: Any) -> Any:
    """int64 value of a sign-magnitude pattern."""
    magnitude = pattern & LARGEST
    return -magnitude if pattern >> 31 else magnitude


@njit
def add(s: Any, first: Any, rows: Any, accumulate: Any) -> None:
    """s.term_magnitude (two's complement) to `rows` rows of 32-bit Dst, added when `accumulate`."""
    for r in range(rows):
        row, at = dest.adj32((first + r) & (dest.ROWS - 1)), (r & 7) * COLUMNS
        high, low = s.dst[row], s.dst[row + LOW_HALF]
        keep = 0xFFFFFFFF if accumulate and s.dst_valid[row] else 0
        for j in range(COLUMNS):
            cell = ((np.int64(high[j]) << 16) | np.int64(low[j])) & keep
            total = _value(dest.dec_32(cell)) + np.int64(_I(s.term_magnitude[at + j]))
            total = min(max(total, -LARGEST), LARGEST)
            new = dest.enc_32(abs(total) | ((total >> 63) & 0x80000000))
            high[j] = np.uint16(new >> 16)
            low[j] = np.uint16(new & 0xFFFF)
        s.dst_valid[row] = 1
        dest.written(s, row + LOW_HALF)


@njit
def sums(s: Any, bank_a: Any, row_a: Any, bank_b: Any, row_b: Any, phase: Any, rows: Any) -> None:
    """Sums of 16 products on prepared banks, `rows` x 16, to s.term_magnitude."""
    a = s.src_slice[SRCA, bank_a, phase & 1]
    b = s.src_slice[SRCB, bank_b, (phase >> 1) & 1]
    for r in range(rows):
        row = b[(row_b + r) & 63]
        at = (r & 7) * COLUMNS
        for j in range(COLUMNS):
            s.term_magnitude[at + j] = np.uint32(0)
        for k in range(16):
            factor, column = _I(row[k]), a[(row_a & 48) + k]
            for j in range(COLUMNS):
                total = _I(s.term_magnitude[at + j]) + _I(_I(column[j]) * factor)
                s.term_magnitude[at + j] = np.uint32(_I(total))
