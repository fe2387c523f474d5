"""Matrix unit: moves between SrcA, SrcB and Dst."""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.operand import choice
from bhemu.tensix import banks, config, rwc, tables
from bhemu.tensix import config_fields as cf
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.banks import SRCA, SRCB
from bhemu.tensix.effects import Values
from bhemu.tensix.formats import (
    FIVE_BIT_DATUMS,
    FP16,
    TF32,
)
from bhemu.tensix.insn import NO_TEXT, Instruction, Word, bits
from bhemu.tensix.quirks import excused, follows_llk, refuse
from bhemu.tensix.status import DONE
from bhemu.tensix.units.matrix import doubts, transfer

# Bit masks over the format codes: 8-bit exponents, and all that the ISA names (ttsim takes fewer).
from bhemu.tensix.units.matrix.move_kinds import (
    DEBUG_FORMAT,
    MODE,
    NO_ROW,
    OVERRIDE,
    down,
    get_kind,
    put_kind,
    src_down,
    unaligned,
)

_NO_MASK, _FP16_MASK, _BF16_MASK = 0xFFFFE000, 0x8FFFE000, 0xFFFF0000


_LOW = choice({0: "16-bit datums, or high halves of 32-bit ones", 1: "low halves of 32-bit datums"})
_FOUR = choice({2: "four rows"})
_ONE_OR_EIGHT = choice({0: "one row", 2: "eight rows"})


class _Move(Word):
    """Fields of the moves between Dst and a source register."""

    dst = bits(9, 0, tables.DST_ROW)
    instr_mod = bits(13, 12, mode=True)
    addr_mode = bits(16, 14, tables.ADDR_MOD)
    src = bits(22, 17, tables.SRC_ROW)
    dest_32b_lo = bits(23, 23, _LOW, mode=True)


class MOVD2A(_Move, Instruction, opcode=0x08, unit="matrix", formats="src", dst_rows=4):
    """Copy four rows of Dst to SrcA, without waiting for the bank (MOVD2A, Wormhole ISA)."""

    dest_32b_lo = _Move.dest_32b_lo.meaning(
        choice({0: "16-bit datums, or high halves of 32-bit ones"})
    )

    instr_mod = _Move.instr_mod.meaning(_FOUR)

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.instr_mod != 2:
            return refuse(s, MODE, instr_mod=f.instr_mod)
        if config.get(s, config.bank(s, t), cf.ALU_FORMAT_SPEC_REG_SrcA_override):
            return OVERRIDE
        kind = get_kind(s, t, banks.format_a(s, t, SRCA), f.dest_32b_lo, False)
        if kind < 0:
            return kind
        first = rwc.dst_row(s, t, f.dst)
        row = rwc.src_row(s, t, SRCA, f.src)  # modulo 64, unlike the other moves
        status = unaligned(s, f.dst | first, f.src | row, 4)
        status = status or rwc.addr_mod_refused(s, t, f.addr_mode)
        if status:
            return status
        first, row = down(first, 4), src_down(row, 4)
        transfer.get(s, kind, first, 4)
        transfer.store(s, SRCA, row, 4)
        if s.doubt[0]:
            doubts.copied_to_src(s, SRCA, kind, first, row, 4)
        s.srca_row[0] = row
        rwc.apply_addr_mod(s, t, f.addr_mode)
        return DONE


class MOVD2B(_Move, Instruction, opcode=0x0A, unit="matrix", formats="src", dst_rows=4):
    """Copy one or four rows of Dst to SrcB, without waiting for the bank (MOVD2B, Wormhole ISA)."""

    instr_mod = _Move.instr_mod.meaning(choice({0: "one row", 2: "four rows"}))

    @classmethod
    def dst_rows_of(cls, values: Values) -> int:
        return 4 if values["instr_mod"] else 1

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.instr_mod & 1:
            return refuse(s, MODE, instr_mod=f.instr_mod)
        kind = get_kind(s, t, banks.moved_format(s, t), f.dest_32b_lo, True)
        if kind < 0:
            return kind
        first = rwc.dst_row(s, t, f.dst)
        row = f.src + s.rwc[t, rwc.SRCB]
        status = unaligned(s, f.dst | first, f.src | row, 4)
        status = status or rwc.addr_mod_refused(s, t, f.addr_mode)
        if status:
            return status
        rows = 4 if f.instr_mod else 1
        first, row = down(first, rows), src_down(row, rows)
        transfer.get(s, kind, first, rows)
        transfer.store(s, SRCB, row, rows)
        if s.doubt[0]:
            doubts.copied_to_src(s, SRCB, kind, first, row, rows)
        s.srca_row[0] = NO_ROW
        rwc.apply_addr_mod(s, t, f.addr_mode)
        return DONE


class MOVB2A(Instruction, opcode=0x0B, unit="matrix", formats="src"):
    """Copy four rows of SrcB to SrcA (dest-srca-srcb-registers.md)."""

    srcb = bits(5, 0, tables.SRC_ROW)
    instr_mod = bits(13, 12, _FOUR, mode=True)
    addr_mode = bits(16, 14, tables.ADDR_MOD)
    srca = bits(22, 17, tables.SRC_ROW)

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.instr_mod != 2:
            return refuse(s, MODE, instr_mod=f.instr_mod)
        status = banks.matrix_ready(s, SRCB)
        if status:
            return status
        row_a = f.srca + s.rwc[t, rwc.SRCA]
        row_b = f.srcb + s.rwc[t, rwc.SRCB]
        status = unaligned(s, 0, f.srca | row_a, 4) or unaligned(s, 0, f.srcb | row_b, 4)
        status = status or rwc.addr_mod_refused(s, t, f.addr_mode)
        if status:
            return status
        row_a, row_b = src_down(row_a, 4), src_down(row_b, 4)
        transfer.fetch(s, SRCB, row_b, 4, _NO_MASK, transfer.smallest_exponent(s, t))
        transfer.store(s, SRCA, row_a, 4)
        if s.doubt[1]:
            doubts.within_src(s, row_a, row_b, 4)
        s.srca_row[0] = row_a
        rwc.apply_addr_mod(s, t, f.addr_mode)
        return DONE


class MOVDBGB2D(Instruction, opcode=0x0C, unit="matrix", **NO_TEXT):
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
    status = unaligned(s, f.dst | first, f.src | row, rows)
    status = status or rwc.addr_mod_refused(s, t, f.addr_mode)
    if status:
        return status
    first, row = down(first, rows), src_down(row, rows)
    status = banks.doubtful(s, row, rows)
    if status:
        return status
    kind = put_kind(s, fmt, f.dest_32b_lo)
    if kind < 0:
        return kind
    transfer.fetch(s, SRCA, row, rows, _NO_MASK, transfer.smallest_exponent(s, t))
    transfer.put(s, kind, first, rows)
    if s.doubt[1]:
        doubts.from_src(s, SRCA, row, (1, 15), rows)
        doubts.note_moved(s, t, kind, first, rows)
    rwc.apply_addr_mod(s, t, f.addr_mode)
    return DONE


class MOVA2D(_Move, Instruction, opcode=0x12, unit="matrix", formats="src", dst_rows=8):
    """Copy one row or eight rows of SrcA to Dst (MOVA2D, Wormhole ISA)."""

    instr_mod = _Move.instr_mod.meaning(_ONE_OR_EIGHT)

    @classmethod
    def dst_rows_of(cls, values: Values) -> int:
        return 8 if values["instr_mod"] else 1

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.instr_mod & 1:
            return refuse(s, MODE, instr_mod=f.instr_mod)
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
    status = excused(s, DEBUG_FORMAT)
    return status if status else config.thread(s, t, tf.SFPU_DEST_FMT_Base)


class MOVDBGA2D(_Move, Instruction, opcode=0x09, unit="matrix", oracle=False):
    """MOVA2D without waiting for the bank to be valid (MOVDBGA2D, Wormhole ISA).

    The ISA does not name it among the instructions whose SrcA row SHIFTXA takes.
    """

    instr_mod = _Move.instr_mod.meaning(_ONE_OR_EIGHT)

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.instr_mod & 1:
            return refuse(s, MODE, instr_mod=f.instr_mod)
        fmt = _debug_format(s, t)
        if fmt < 0:
            return fmt
        return _a2d(s, t, f, fmt, np.int64(8 if f.instr_mod else 1))


@njit
def _b2d_kind(s: Any, t: Any, low: Any) -> Any:
    """How MOVB2D stores into Dst, or the error; by tt-llk's tests 32-bit Dst takes 32-bit datums.

    Its SrcA format is that of the SrcB bank.  The tests cover formats with an 8-bit exponent only.
    """
    kind = put_kind(s, banks.moved_format(s, t), low)
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


class MOVB2D(Instruction, opcode=0x13, unit="matrix", formats="src", dst_rows=8):
    """Copy rows of SrcB to Dst (MOVB2D, Wormhole ISA).

    ttsim has no modes 0 and 1, a kernel of tt-llk has: they need reference llk.
    """

    dst = bits(9, 0, tables.DST_ROW)
    movb2d_instr_mod = bits(
        13,
        11,
        choice(
            {
                0: "one row (reference llk)",
                1: "column 0 of one row to all its columns (reference llk)",
                2: "one row to eight",
                3: "column 0 of one row to all columns of eight rows",
                4: "four rows",
                5: "column 0 of each of four rows to all its columns",
            }
        ),
        mode=True,
    )
    addr_mode = bits(16, 14, tables.ADDR_MOD)
    src = bits(22, 17, tables.SRC_ROW)
    dest_32b_lo = bits(23, 23, _LOW, mode=True)

    @classmethod
    def dst_rows_of(cls, values: Values) -> int:
        mode = values["movb2d_instr_mod"]
        return 8 if mode & 2 else (4 if mode & 4 else 1)

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.movb2d_instr_mod > 5:
            return refuse(s, MODE, instr_mod=f.movb2d_instr_mod)
        status = banks.matrix_ready(s, SRCB)
        if status == 0 and f.movb2d_instr_mod < 2:
            status = excused(s, MODE, instr_mod=f.movb2d_instr_mod)
        if status:
            return status
        rows = 8 if f.movb2d_instr_mod & 2 else (4 if f.movb2d_instr_mod & 4 else 1)
        first = rwc.dst_row(s, t, f.dst)
        row = f.src + s.rwc[t, rwc.SRCB]
        status = unaligned(s, f.dst & 3 | first, f.src & 3 | row, rows)
        status = status or rwc.addr_mod_refused(s, t, f.addr_mode)
        if status:
            return status
        first, row = down(first, rows), src_down(row, 4 if rows == 4 else 1)
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
        s.srca_row[0] = NO_ROW
        rwc.apply_addr_mod(s, t, f.addr_mode)
        return DONE
