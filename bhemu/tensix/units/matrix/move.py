"""Matrix unit: moves between SrcA, SrcB and Dst."""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import banks, config, dest, rwc
from bhemu.tensix import config_fields as cf
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.banks import SRCA, SRCB
from bhemu.tensix.formats import (
    BF16,
    BFP2,
    BFP4,
    BFP8,
    FIVE_BIT_DATUMS,
    FP16,
    FP32,
    INT32,
    TF32,
    UINT16,
)
from bhemu.tensix.insn import NO_TEXT, Instruction, Word, bits
from bhemu.tensix.quirks import excused, follows_llk, noted, refuse, violated
from bhemu.tensix.status import DONE, NCB, UB, UNIMPLEMENTED, UNSUPPORTED, error
from bhemu.tensix.units.matrix import doubts, transfer

# Bit masks over the format codes: 8-bit exponents, and all that the ISA names (ttsim takes fewer).
_EIGHT_BIT = 1 << FP32 | 1 << BF16 | 1 << BFP8 | 1 << BFP4 | 1 << BFP2 | 1 << INT32 | 1 << UINT16
_NAMED = FIVE_BIT_DATUMS | _EIGHT_BIT | 1 << TF32

_NO_ROW = -1  # the ISA names MOVD2B and MOVB2D for SHIFTXA, but no SrcA row that they compute

_NO_MASK, _FP16_MASK, _BF16_MASK = 0xFFFFE000, 0x8FFFE000, 0xFFFF0000

_MODE = error(
    "MOV-MODE",
    UNSUPPORTED,
    "this move with instr_mod {instr_mod} is not modelled",
    "MOVD2A, MOVB2A: 2; MOVA2D, MOVDBGA2D, MOVD2B: 0 or 2; MOVB2D: 2 to 5",
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
_OVERRIDE = error(
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
_DEBUG_FORMAT = error(
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
def _unaligned(s: Any, dst: Any, src: Any, rows: Any) -> Any:
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
def _down(row: Any, rows: Any) -> Any:
    """The multiple of `rows` (1, 4 or 8) below a Dst row."""
    return row & ~(rows - 1)


@njit(inline="always")
def _src_down(row: Any, rows: Any) -> Any:
    """The same for a Src row."""
    return row & (rwc.SRC_ROWS - rows)


@njit
def _put_kind(s: Any, fmt: Any, low: Any) -> Any:
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
def _get_kind(s: Any, t: Any, fmt: Any, low: Any, low_ok: Any) -> Any:
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


class _Move(Word):
    """Fields of the moves between Dst and a source register."""

    dst = bits(9, 0)
    instr_mod = bits(13, 12, mode=True)
    addr_mode = bits(16, 14)
    src = bits(22, 17)
    dest_32b_lo = bits(23, mode=True)


class MOVD2A(_Move, Instruction, opcode=0x08, unit="matrix", stall="B6", formats="src"):
    """Copy four rows of Dst to SrcA, without waiting for the bank (MOVD2A, Wormhole ISA)."""

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.instr_mod != 2:
            return refuse(s, _MODE, instr_mod=f.instr_mod)
        if config.get(s, config.bank(s, t), cf.ALU_FORMAT_SPEC_REG_SrcA_override):
            return _OVERRIDE
        kind = _get_kind(s, t, banks.format_a(s, t, SRCA), f.dest_32b_lo, False)
        if kind < 0:
            return kind
        first = rwc.dst_row(s, t, f.dst)
        row = rwc.src_row(s, t, SRCA, f.src)  # modulo 64, unlike the other moves
        status = _unaligned(s, f.dst | first, f.src | row, 4)
        status = status or rwc.addr_mod_refused(s, t, f.addr_mode)
        if status:
            return status
        first, row = _down(first, 4), _src_down(row, 4)
        transfer.get(s, kind, first, 4)
        transfer.store(s, SRCA, row, 4)
        if s.doubt[0]:
            doubts.copied_to_src(s, SRCA, kind, first, row, 4)
        s.srca_row[0] = row
        rwc.apply_addr_mod(s, t, f.addr_mode)
        return DONE


class MOVD2B(_Move, Instruction, opcode=0x0A, unit="matrix", stall="B6", formats="src"):
    """Copy one or four rows of Dst to SrcB, without waiting for the bank (MOVD2B, Wormhole ISA)."""

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.instr_mod & 1:
            return refuse(s, _MODE, instr_mod=f.instr_mod)
        kind = _get_kind(s, t, banks.moved_format(s, t), f.dest_32b_lo, True)
        if kind < 0:
            return kind
        first = rwc.dst_row(s, t, f.dst)
        row = f.src + s.rwc[t, rwc.SRCB]
        status = _unaligned(s, f.dst | first, f.src | row, 4)
        status = status or rwc.addr_mod_refused(s, t, f.addr_mode)
        if status:
            return status
        rows = 4 if f.instr_mod else 1
        first, row = _down(first, rows), _src_down(row, rows)
        transfer.get(s, kind, first, rows)
        transfer.store(s, SRCB, row, rows)
        if s.doubt[0]:
            doubts.copied_to_src(s, SRCB, kind, first, row, rows)
        s.srca_row[0] = _NO_ROW
        rwc.apply_addr_mod(s, t, f.addr_mode)
        return DONE


class MOVB2A(Instruction, opcode=0x0B, unit="matrix", stall="B6", formats="src"):
    """Copy four rows of SrcB to SrcA (dest-srca-srcb-registers.md)."""

    srcb = bits(5, 0)
    instr_mod = bits(13, 12, mode=True)
    addr_mode = bits(16, 14)
    srca = bits(22, 17)

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.instr_mod != 2:
            return refuse(s, _MODE, instr_mod=f.instr_mod)
        status = banks.matrix_ready(s, SRCB)
        if status:
            return status
        row_a = f.srca + s.rwc[t, rwc.SRCA]
        row_b = f.srcb + s.rwc[t, rwc.SRCB]
        status = _unaligned(s, 0, f.srca | row_a, 4) or _unaligned(s, 0, f.srcb | row_b, 4)
        status = status or rwc.addr_mod_refused(s, t, f.addr_mode)
        if status:
            return status
        row_a, row_b = _src_down(row_a, 4), _src_down(row_b, 4)
        transfer.fetch(s, SRCB, row_b, 4, _NO_MASK, transfer.smallest_exponent(s, t))
        transfer.store(s, SRCA, row_a, 4)
        if s.doubt[1]:
            doubts.within_src(s, row_a, row_b, 4)
        s.srca_row[0] = row_a
        rwc.apply_addr_mod(s, t, f.addr_mode)
        return DONE


class MOVDBGB2D(Instruction, opcode=0x0C, unit="matrix", stall="B6", **NO_TEXT):
    """Copy SrcB to Dst through the debug path (opcode table)."""

    dst = bits(10, 0)
    movb2d_instr_mod = bits(13, 11, mode=True)
    addr_mode = bits(16, 14)
    src = bits(22, 17)
    dest_32b_lo = bits(23, mode=True)


@njit
def _a2d(s: Any, t: Any, f: Any, fmt: Any, rows: Any) -> Any:
    """MOVA2D once its bank is there: one row, or eight aligned ones, of SrcA format `fmt`."""
    first = rwc.dst_row(s, t, f.dst)
    row = f.src + s.rwc[t, rwc.SRCA]
    row = row & (rwc.SRC_ROWS - 1) if rows == 1 else row
    status = _unaligned(s, f.dst | first, f.src | row, rows)
    status = status or rwc.addr_mod_refused(s, t, f.addr_mode)
    if status:
        return status
    first, row = _down(first, rows), _src_down(row, rows)
    status = banks.doubtful(s, row, rows)
    if status:
        return status
    kind = _put_kind(s, fmt, f.dest_32b_lo)
    if kind < 0:
        return kind
    transfer.fetch(s, SRCA, row, rows, _NO_MASK, transfer.smallest_exponent(s, t))
    transfer.put(s, kind, first, rows)
    if s.doubt[1]:
        doubts.from_src(s, SRCA, row, (1, 15), rows)
        doubts.note_moved(s, t, kind, first, rows)
    rwc.apply_addr_mod(s, t, f.addr_mode)
    return DONE


class MOVA2D(_Move, Instruction, opcode=0x12, unit="matrix", stall="B6", formats="src"):
    """Copy one row (instr_mod 0) or eight rows (2) of SrcA to Dst (MOVA2D, Wormhole ISA)."""

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.instr_mod & 1:
            return refuse(s, _MODE, instr_mod=f.instr_mod)
        status = banks.matrix_ready(s, SRCA)
        if status:
            return status
        fmt, rows = banks.format_a(s, t, SRCA), np.int64(8 if f.instr_mod else 1)
        start = f.src + s.rwc[t, rwc.SRCA]
        status = _a2d(s, t, f, fmt, rows)
        if status == DONE:
            s.srca_row[0] = start
        return status


@njit
def _debug_format(s: Any, t: Any) -> Any:
    """SrcA format of MOVDBGA2D: as MOVA2D, but a bank that is not valid implies none."""
    if s.src_valid[SRCA, s.matrix_bank[SRCA] & 1]:
        return banks.format_a(s, t, SRCA)
    if config.thread(s, t, tf.DISABLE_IMPLIED_SRCA_FMT_Base):
        return banks.format_a(s, t, SRCA)
    status = excused(s, _DEBUG_FORMAT)
    return status if status else config.thread(s, t, tf.SFPU_DEST_FMT_Base)


class MOVDBGA2D(_Move, Instruction, opcode=0x09, unit="matrix", stall="B6", oracle=False):
    """MOVA2D without waiting for the bank to be valid (MOVDBGA2D, Wormhole ISA).

    The ISA does not name it among the instructions whose SrcA row SHIFTXA takes.
    """

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.instr_mod & 1:
            return refuse(s, _MODE, instr_mod=f.instr_mod)
        fmt = _debug_format(s, t)
        if fmt < 0:
            return fmt
        return _a2d(s, t, f, fmt, np.int64(8 if f.instr_mod else 1))


@njit
def _b2d_kind(s: Any, t: Any, low: Any) -> Any:
    """How MOVB2D stores into Dst, or the error; by tt-llk's tests 32-bit Dst takes 32-bit datums.

    Its SrcA format is that of the SrcB bank.  The tests cover formats with an 8-bit exponent only.
    """
    kind = _put_kind(s, banks.moved_format(s, t), low)
    if kind == transfer.PUT_BF16 and follows_llk(s):
        if config.get(s, config.bank(s, t), cf.ALU_ACC_CTRL_Fp32_enabled):
            return transfer.PUT_32
    return kind


@njit
def _b2d_mask(s: Any, t: Any) -> Any:
    """Bits of a SrcB cell that are moved; where ttsim moves it, those that its own format has."""
    fmt = banks.format_b(s, t)
    if fmt == FP16 or (FIVE_BIT_DATUMS & ~(1 << FP16)) >> banks.format_a(s, t, SRCB) & 1:
        return _FP16_MASK
    return _NO_MASK if fmt == TF32 else _BF16_MASK


class MOVB2D(Instruction, opcode=0x13, unit="matrix", stall="B6", formats="src"):
    """Copy rows of SrcB to Dst (MOVB2D, Wormhole ISA).

    instr_mod 2: one row to eight; 3: its column 0 to all of them; 4: four rows; 5: column 0 of
    each of four rows.
    """

    dst = bits(9, 0)
    movb2d_instr_mod = bits(13, 11, mode=True)
    addr_mode = bits(16, 14)
    src = bits(22, 17)
    dest_32b_lo = bits(23, mode=True)

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.movb2d_instr_mod < 2 or f.movb2d_instr_mod > 5:
            return refuse(s, _MODE, instr_mod=f.movb2d_instr_mod)
        status = banks.matrix_ready(s, SRCB)
        if status:
            return status
        rows = 8 if f.movb2d_instr_mod & 2 else 4
        first = rwc.dst_row(s, t, f.dst)
        row = f.src + s.rwc[t, rwc.SRCB]
        status = _unaligned(s, f.dst & 3 | first, f.src & 3 | row, rows)
        status = status or rwc.addr_mod_refused(s, t, f.addr_mode)
        if status:
            return status
        first, row = _down(first, rows), _src_down(row, 1 if rows == 8 else 4)
        kind = _b2d_kind(s, t, f.dest_32b_lo)
        if kind < 0:
            return kind
        step = 0 if rows == 8 else 1
        columns = 0 if f.movb2d_instr_mod & 1 else 15
        mask, smallest = _b2d_mask(s, t), transfer.smallest_exponent(s, t)
        transfer.fetch_broadcast(s, row, rows, step, columns, mask, smallest)
        transfer.put(s, kind, first, rows)
        if s.doubt[1]:
            doubts.from_src(s, SRCB, row, (step, columns), rows)
            doubts.note_moved(s, t, kind, first, rows)
        s.srca_row[0] = _NO_ROW
        rwc.apply_addr_mod(s, t, f.addr_mode)
        return DONE
