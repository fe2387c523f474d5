"""Instructions that move and shift rows of SrcA, SrcB and Dst."""

from typing import Any

import numpy as np

from bhemu.bits import choice, number
from bhemu.jit.subset import njit
from bhemu.tensix import banks, config, dest, formats, insn, rules, spaces
from bhemu.tensix import config_fields as cf
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.banks import SRCA, SRCB
from bhemu.tensix.dest import COLUMNS
from bhemu.tensix.formats import BF16, BFP2, BFP4, BFP8, FP16, FP32, INT32, TF32, UINT16
from bhemu.tensix.insn import Argument, Instruction, bits
from bhemu.tensix.units import counters
from bhemu.tensix.units import matrix as operands
from bhemu.tensix.units.matrix import transfer

# What a move between Dst and Src carries: kinds of datums, rows, and what it refuses.

# Bit masks over the format codes: 8-bit exponents, and all that the ISA names (ttsim takes fewer).
_EIGHT_BIT = 1 << FP32 | 1 << BF16 | 1 << BFP8 | 1 << BFP4 | 1 << BFP2 | 1 << INT32 | 1 << UINT16
_NAMED = formats.FIVE_BIT_DATUMS | _EIGHT_BIT | 1 << TF32

NO_ROW = -1  # the ISA names MOVD2B and MOVB2D for SHIFTXA, but no SrcA row that they compute

MODE = rules.error("MOV-MODE", rules.UNSUPPORTED, "this move with instr_mod {instr_mod} is not modelled", "MOVD2A, MOVB2A: 2; MOVA2D, MOVDBGA2D, MOVD2B: 0 or 2; MOVB2D: 2 to 5, and 0 and 1 with reference llk")  # fmt: skip
_DST_ROW = rules.error("MOV-DST-ROW", rules.UNSUPPORTED, "Dst row {row} of a move is not a multiple of {rows}", "align the dst field and the sum of dst field, RWC.Dst and math offset")  # fmt: skip
_SRC_ROW = rules.error("MOV-SRC-ROW", rules.UNSUPPORTED, "Src row {row} of a move is not a multiple of {rows} below 64", "align the src field and the sum of src field and RWC")  # fmt: skip
_FORMAT = rules.error("MOV-FORMAT", rules.UNIMPLEMENTED, "this move is not modelled for SrcA format {fmt}", "the format comes from the bank (Out_data_format) or from ALU_FORMAT_SPEC_REG0_SrcA")  # fmt: skip
OVERRIDE = rules.error("MOV-OVERRIDE", rules.UNSUPPORTED, "MOVD2A with ALU_FORMAT_SPEC_REG_SrcA_override is not modelled", "leave the override 0")  # fmt: skip
_TF32_LOW = rules.error("MOV-TF32-LOW", rules.UB, "tf32 is moved to Dst with dest_32b_lo set (erratum TEN-4245)", "clear dest_32b_lo, or use a format other than tf32")  # fmt: skip
_FIVE_BIT_LOW = rules.error("MOV-FP16-LOW", rules.UNSUPPORTED, "a move of SrcA format {fmt} (5-bit exponent) to Dst with dest_32b_lo is not modelled", "clear dest_32b_lo")  # fmt: skip
_FROM_32 = rules.error("MOV-FROM-32", rules.UNIMPLEMENTED, "a move from 32-bit Dst with SrcA format {fmt}, dest_32b_lo {low} is not modelled", "dest_32b_lo: MOVD2B only and not with tf32; fp16: 16-bit Dst only")  # fmt: skip
_LOW_OF_16 = rules.error("MOV-LOW-OF-16", rules.UB, "a move reads the low half (dest_32b_lo) of 16-bit Dst", "set ALU_ACC_CTRL_Fp32_enabled, or clear dest_32b_lo; production kernels let MOVD2B do so with bit 11 of DBG_FEATURE_DISABLE set, and reference llk follows them")  # fmt: skip
_LOW_READ = rules.error("MOV-LOW-READ", rules.UB, "MOVD2B read low halves (dest_32b_lo) with ALU_ACC_CTRL_Fp32_enabled 0 and bit 11 of DBG_FEATURE_DISABLE set: those of 32-bit datums were taken", "production kernels need them; the ISA text leaves it undefined")  # fmt: skip
DEBUG_FORMAT = rules.error("MOVDBGA2D-FORMAT", rules.NCB, "MOVDBGA2D reads a SrcA bank that is not valid, which implies no format", "set DISABLE_IMPLIED_SRCA_FMT_Base and ALU_FORMAT_SPEC_REG0_SrcA")  # fmt: skip
_TF32_OF_16 = rules.error("MOV-TF32-OF-16", rules.UB, "a move reads tf32 from 16-bit Dst, which cannot hold it", "set ALU_ACC_CTRL_Fp32_enabled, or use another SrcA format")  # fmt: skip


@njit
def unaligned(s: Any, dst: Any, src: Any, rows: Any) -> Any:
    """0, or the error of a Dst or Src row that is not a multiple of `rows` (4 or 8).

    By the ISA text moves leave out the low bits; fast tilize begins with whatever RWC.Dst holds.
    """
    status = np.int64(0)
    if dst & (rows - 1):
        status = rules.undefined_unless_llk(s, _DST_ROW, row=dst, rows=rows)
    if status == 0 and (src & (rows - 1) or src >= counters.SRC_ROWS):
        status = rules.undefined_unless_llk(s, _SRC_ROW, row=src, rows=rows)
    return status


@njit(inline="always")
def down(row: Any, rows: Any) -> Any:
    """The multiple of `rows` (1, 4 or 8) below a Dst row."""
    return row & ~(rows - 1)


@njit(inline="always")
def src_down(row: Any, rows: Any) -> Any:
    """The same for a Src row."""
    return row & (counters.SRC_ROWS - rows)


@njit
def put_kind(s: Any, fmt: Any, low: Any) -> Any:
    """How a move stores format `fmt` into Dst, or the error."""
    if not (_NAMED >> fmt) & 1:
        return rules.refuse(s, _FORMAT, fmt=fmt)
    if fmt == TF32:
        if low:
            status = rules.undefined(s, _TF32_LOW)
            return status if status else transfer.PUT_32_LOW
        return transfer.PUT_32
    if (formats.FIVE_BIT_DATUMS >> fmt) & 1:
        return rules.refuse(s, _FIVE_BIT_LOW, fmt=fmt) if low else transfer.PUT_FP16
    return transfer.PUT_LOW if low else transfer.PUT_BF16


@njit
def get_kind(s: Any, t: Any, fmt: Any, low: Any, low_ok: Any) -> Any:
    """How a move reads Dst for format `fmt`, or the error."""
    if not (_NAMED >> fmt) & 1:
        return rules.refuse(s, _FORMAT, fmt=fmt)
    b = config.bank(s, t)
    wide = config.get(s, b, cf.ALU_ACC_CTRL_Fp32_enabled)
    wide |= config.get(s, b, cf.ALU_ACC_CTRL_INT8_math_enabled)
    if wide & ~banks.fp16_forced(s, t):
        if (formats.FIVE_BIT_DATUMS >> fmt) & 1 or (low and (fmt == TF32 or not low_ok)):
            return rules.refuse(s, _FROM_32, fmt=fmt, low=low)
        if fmt == TF32:
            return transfer.GET_TF32
        return transfer.GET_LOW if low else transfer.GET_HIGH
    if low:
        # How a move reads low halves of Dst with 16-bit datums, or the error.
        if low_ok and rules.follows_llk(s) and dest.halves(s) and (_EIGHT_BIT >> fmt) & 1:
            rules.note_rule(s, _LOW_READ)
            return transfer.GET_LOW
        return _LOW_OF_16
    if fmt == TF32:
        return _TF32_OF_16
    return transfer.GET_FP16 if (formats.FIVE_BIT_DATUMS >> fmt) & 1 else transfer.GET_BF16


_NO_MASK, _FP16_MASK, _BF16_MASK = 0xFFFFE000, 0x8FFFE000, 0xFFFF0000


_LOW = choice("16-bit datums, or high halves of 32-bit ones", "low halves of 32-bit datums")
_FOUR = choice({2: "four rows"})
_ONE_OR_EIGHT = choice({0: "one row", 2: "eight rows"})


class _Move(Instruction, unit="matrix"):
    """Fields of the moves between Dst and a source register."""

    dst = bits(9, 0, insn.DST_ROW)
    instr_mod = bits(13, 12, mode=True)
    addr_mode = bits(16, 14, insn.ADDR_MOD)
    src = bits(22, 17, insn.SRC_ROW)
    dest_32b_lo = bits(23, 23, _LOW, mode=True)


# Low halves alone: rows that were not valid get high halves of zero.
_LOW_HALVES = spaces.ALL_DST.when("dest_32b_lo")


@njit
def _to_src(s: Any, t: Any, f: Any, which: Any, kind: Any, row: Any, rows: Any) -> Any:
    """MOVD2A and MOVD2B, which read Dst in the GET way `kind`, or an error."""
    if kind < 0:
        return kind
    first = counters.dst_row(s, t, f.dst)
    status = unaligned(s, f.dst | first, f.src | row, 4)
    status = status or counters.addr_mod_refused(s, t, f.addr_mode)
    if status:
        return status
    first, row = down(first, rows), src_down(row, rows)
    transfer.get(s, kind, first, rows)
    transfer.store(s, which, row, rows)
    if s.doubt[0]:
        transfer.copied_to_src(s, which, kind, first, row, rows)
    s.srca_row[0] = row if which == SRCA else NO_ROW
    return counters.apply_addr_mod(s, t, f.addr_mode)


class MOVD2A(_Move, opcode=0x08, formats="src"):
    """Copy four rows of Dst to SrcA, without waiting for the bank (MOVD2A, Wormhole ISA)."""

    reads = spaces.dst("dst", 4) | operands.READ
    writes = spaces.src(1) | spaces.RWC | spaces.LAST_ROW

    dest_32b_lo = _Move.dest_32b_lo.meaning(choice("16-bit datums, or high halves of 32-bit ones"))
    instr_mod = _Move.instr_mod.meaning(_FOUR)

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.instr_mod != 2:
            return rules.refuse(s, MODE, instr_mod=f.instr_mod)
        if config.get(s, config.bank(s, t), cf.ALU_FORMAT_SPEC_REG_SrcA_override):
            return OVERRIDE
        kind = get_kind(s, t, banks.format_a(s, t, SRCA), f.dest_32b_lo, False)
        row = counters.src_row(s, t, SRCA, f.src)  # modulo 64, unlike the other moves
        return _to_src(s, t, f, SRCA, kind, row, 4)


class MOVD2B(_Move, opcode=0x0A, formats="src"):
    """Copy one or four rows of Dst to SrcB, without waiting for the bank (MOVD2B, Wormhole ISA)."""

    reads = spaces.dst("dst", "4 if instr_mod else 1") | operands.READ
    writes = spaces.src(2) | spaces.RWC | spaces.LAST_ROW

    instr_mod = _Move.instr_mod.meaning(choice({0: "one row", 2: "four rows"}))

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.instr_mod & 1:
            return rules.refuse(s, MODE, instr_mod=f.instr_mod)
        kind = get_kind(s, t, banks.moved_format(s, t), f.dest_32b_lo, True)
        row = f.src + s.rwc[t, counters.SRCB]
        return _to_src(s, t, f, SRCB, kind, row, 4 if f.instr_mod else 1)


class MOVB2A(Instruction, opcode=0x0B, unit="matrix", formats="src"):
    """Copy four rows of SrcB to SrcA (dest-srca-srcb-registers.md)."""

    reads = spaces.src(2) | operands.READ
    writes = spaces.src(1) | spaces.RWC | spaces.LAST_ROW

    srcb = bits(5, 0, insn.SRC_ROW)
    instr_mod = bits(13, 12, _FOUR, mode=True)
    addr_mode = bits(16, 14, insn.ADDR_MOD)
    srca = bits(22, 17, insn.SRC_ROW)

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.instr_mod != 2:
            return rules.refuse(s, MODE, instr_mod=f.instr_mod)
        status = banks.matrix_ready(s, SRCB)
        if status:
            return status
        row_a = f.srca + s.rwc[t, counters.SRCA]
        row_b = f.srcb + s.rwc[t, counters.SRCB]
        status = unaligned(s, 0, f.srca | row_a, 4) or unaligned(s, 0, f.srcb | row_b, 4)
        status = status or counters.addr_mod_refused(s, t, f.addr_mode)
        if status:
            return status
        row_a, row_b = src_down(row_a, 4), src_down(row_b, 4)
        transfer.fetch(s, SRCB, row_b, 4, _NO_MASK, transfer.smallest_exponent(s, t))
        transfer.store(s, SRCA, row_a, 4)
        if s.doubt[1]:
            transfer.within_src(s, row_a, row_b)
        s.srca_row[0] = row_a
        return counters.apply_addr_mod(s, t, f.addr_mode)


@njit
def _a2d(s: Any, t: Any, f: Any, fmt: Any, rows: Any) -> Any:
    """MOVA2D once its bank is there: one row, or eight aligned ones, of SrcA format `fmt`."""
    first = counters.dst_row(s, t, f.dst)
    row = f.src + s.rwc[t, counters.SRCA]
    row = row & (counters.SRC_ROWS - 1) if rows == 1 else row
    status = unaligned(s, f.dst | first, f.src | row, rows)
    status = status or counters.addr_mod_refused(s, t, f.addr_mode)
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
        transfer.from_src(s, SRCA, row, (1, 15), rows)
        transfer.note_moved(s, t, kind, first, rows)
    return counters.apply_addr_mod(s, t, f.addr_mode)


class MOVA2D(_Move, opcode=0x12, formats="src"):
    """Copy one row or eight rows of SrcA to Dst (MOVA2D, Wormhole ISA)."""

    reads = spaces.src(1) | operands.READ | _LOW_HALVES
    writes = spaces.dst("dst", "8 if instr_mod else 1") | spaces.RWC | spaces.LAST_ROW

    instr_mod = _Move.instr_mod.meaning(_ONE_OR_EIGHT)

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.instr_mod & 1:
            return rules.refuse(s, MODE, instr_mod=f.instr_mod)
        status = banks.matrix_ready(s, SRCA)
        if status:
            return status
        fmt, rows = banks.format_a(s, t, SRCA), np.int64(8 if f.instr_mod else 1)
        start = f.src + s.rwc[t, counters.SRCA]
        status = _a2d(s, t, f, fmt, rows)
        if status == rules.DONE:
            s.srca_row[0] = start
        return status


class MOVDBGA2D(_Move, opcode=0x09, oracle=False):
    """MOVA2D without waiting for the bank to be valid (MOVDBGA2D, Wormhole ISA).

    The ISA does not name it among the instructions whose SrcA row SHIFTXA takes.
    """

    reads = spaces.src(1) | operands.READ | _LOW_HALVES
    writes = spaces.ALL_DST | spaces.RWC | spaces.LAST_ROW

    instr_mod = _Move.instr_mod.meaning(_ONE_OR_EIGHT)

    def ready(s: Any, t: Any, f: Any) -> Any:
        return 0  # it waits for no bank

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.instr_mod & 1:
            return rules.refuse(s, MODE, instr_mod=f.instr_mod)
        fmt, valid = banks.format_a(s, t, SRCA), s.src_valid[SRCA, s.matrix_bank[SRCA] & 1]
        if not valid and not config.thread(s, t, tf.DISABLE_IMPLIED_SRCA_FMT_Base):
            # A bank that is not valid implies none.
            status = rules.undefined_unless_llk(s, DEBUG_FORMAT)
            if status:
                return status
            fmt = config.thread(s, t, tf.SFPU_DEST_FMT_Base)
        return _a2d(s, t, f, fmt, np.int64(8 if f.instr_mod else 1))


_FILLED = spaces.dst("dst", "8 if movb2d_instr_mod & 2 else (4 if movb2d_instr_mod & 4 else 1)")


class MOVB2D(Instruction, opcode=0x13, unit="matrix", formats="src"):
    """Copy rows of SrcB to Dst (MOVB2D, Wormhole ISA).

    ttsim has no modes 0 and 1, a kernel of tt-llk has: they need reference llk.
    """

    reads = spaces.src(2) | operands.READ | _LOW_HALVES
    writes = _FILLED | spaces.RWC | spaces.LAST_ROW

    dst = bits(9, 0, insn.DST_ROW)
    movb2d_instr_mod = bits(13, 11, mode=True).meaning("""
        0: one row (reference llk)
        1: column 0 of one row to all its columns (reference llk)
        2: one row to eight
        3: column 0 of one row to all columns of eight rows
        4: four rows
        5: column 0 of each of four rows to all its columns""")
    addr_mode = bits(16, 14, insn.ADDR_MOD)
    src = bits(22, 17, insn.SRC_ROW)
    dest_32b_lo = bits(23, 23, _LOW, mode=True)

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.movb2d_instr_mod > 5:
            return rules.refuse(s, MODE, instr_mod=f.movb2d_instr_mod)
        status = banks.matrix_ready(s, SRCB)
        if status == 0 and f.movb2d_instr_mod < 2:
            status = rules.undefined_unless_llk(s, MODE, instr_mod=f.movb2d_instr_mod)
        if status:
            return status
        rows = 8 if f.movb2d_instr_mod & 2 else (4 if f.movb2d_instr_mod & 4 else 1)
        first = counters.dst_row(s, t, f.dst)
        row = f.src + s.rwc[t, counters.SRCB]
        status = unaligned(s, f.dst & 3 | first, f.src & 3 | row, rows)
        status = status or counters.addr_mod_refused(s, t, f.addr_mode)
        if status:
            return status
        first, row = down(first, rows), src_down(row, 4 if rows == 4 else 1)
        # Its SrcA format is that of the SrcB bank.
        kind = put_kind(s, banks.moved_format(s, t), f.dest_32b_lo)
        if kind < 0:
            return kind
        if kind == transfer.PUT_BF16 and rules.follows_llk(s):
            # By tt-llk's tests, of formats with an 8-bit exponent, 32-bit Dst takes 32-bit datums.
            if config.get(s, config.bank(s, t), cf.ALU_ACC_CTRL_Fp32_enabled):
                kind = transfer.PUT_32
        step = 0 if rows == 8 else 1
        columns = 0 if f.movb2d_instr_mod & 1 else 15
        # Bits of a cell that are moved; where ttsim moves it, those that its own format has.
        fmt, smallest = banks.format_b(s, t), transfer.smallest_exponent(s, t)
        mask = _NO_MASK if fmt == TF32 else _BF16_MASK
        narrow = formats.FIVE_BIT_DATUMS & ~(1 << FP16)
        if fmt == FP16 or narrow >> banks.format_a(s, t, SRCB) & 1:
            mask = _FP16_MASK
        transfer.fetch_broadcast(s, row, rows, step, columns, mask, smallest)
        transfer.put(s, kind, first, rows)
        if s.doubt[1]:
            transfer.from_src(s, SRCB, row, (step, columns), rows)
            transfer.note_moved(s, t, kind, first, rows)
        s.srca_row[0] = NO_ROW
        return counters.apply_addr_mod(s, t, f.addr_mode)


# Matrix unit: shifts of Src by one column, and transposes.

_ROWS = 16
_RIGHT, _LEFT = 2, 3

_DIRECTION = rules.error("SHIFTXA-DIRECTION", rules.UB, "SHIFTXA with the reserved direction {direction}", "2 shifts right, away from column 0; 3 shifts left")  # fmt: skip
_NO_ROW = rules.error("SHIFTXA-ROW", rules.MISSING, "SHIFTXA reads the block of the last instruction that named a SrcA row, and it is not known", "let a move to or from SrcA, a product, pooling or element-wise operation come right before; the ISA does not say which row MOVD2B and MOVB2D name")  # fmt: skip


class SHIFTXA(
    Instruction, opcode=0x17, unit="matrix", oracle=False, macro=(Argument("log2_amount2", 23, 2),)
):
    """Shift 16 rows of SrcA by one column, into rows 0-15 (SHIFTXA, Wormhole ISA).

    By a defect of the hardware they are the aligned rows that the last instruction of any thread
    with operands in SrcA started from.
    """

    reads = spaces.src(1) | spaces.BANKS | spaces.LAST_ROW
    writes = spaces.src(1)

    direction = bits(1, 0, choice({2: "right, away from column 0", 3: "left"}), mode=True)

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.direction < _RIGHT:
            return rules.refuse(s, _DIRECTION, direction=f.direction)
        status = banks.matrix_ready(s, SRCA)
        if status:
            return status
        if s.srca_row[0] < 0:
            return _NO_ROW
        status = banks.doubtful(s, s.srca_row[0] & 48, np.int64(_ROWS))
        if status:
            return status
        bank = s.matrix_bank[SRCA] & 1
        banks.changed(s, SRCA, bank)
        banks.settle(s, bank, np.int64(0), np.int64(_ROWS))
        # Rows `first` to `first` + 15, shifted, to rows 0 to 15.
        first = s.srca_row[0] & 48
        for i in range(_ROWS):
            out, row = s.src[SRCA, bank, i], s.src[SRCA, bank, (first + i) & 63]
            if f.direction == _RIGHT:
                for j in range(COLUMNS - 1, 0, -1):
                    out[j] = row[j - 1]
                out[0] = np.uint32(0)
            else:
                for j in range(COLUMNS - 1):
                    out[j] = row[j + 1]
                out[COLUMNS - 1] = np.uint32(0)
        return rules.DONE


class SHIFTXB(Instruction, opcode=0x18, unit="matrix", oracle=False):
    """Shift or rotate one row of SrcB left by one column (SHIFTXB, Wormhole ISA).

    The loop in the page leaves column 14 alone; its
    diagrams move all columns, and so does this.
    """

    reads = spaces.src(2) | spaces.BANKS | spaces.ADDR_MODS
    writes = spaces.src(2) | spaces.RWC

    shift_row = bits(9, 0, number("row of SrcB"))
    rot_shift = bits(10, 10, choice("rotates", "shifts in zero"), mode=True)
    addr_mode = bits(16, 14, insn.ADDR_MOD)

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = banks.matrix_ready(s, SRCB) or counters.addr_mod_refused(s, t, f.addr_mode)
        if status:
            return status
        bank = s.matrix_bank[SRCB] & 1
        banks.changed(s, SRCB, bank)
        row = s.src[SRCB, bank, counters.src_row(s, t, SRCB, f.shift_row)]
        first = np.uint32(0) if f.rot_shift else row[0]
        for j in range(COLUMNS - 1):
            row[j] = row[j + 1]
        row[COLUMNS - 1] = first
        return counters.apply_addr_mod(s, t, f.addr_mode)


class TRNSPSRCB(Instruction, opcode=0x16, unit="matrix"):
    """Transpose rows 16-31 of SrcB (TRNSPSRCB, Wormhole ISA)."""

    reads = spaces.src(2) | spaces.BANKS
    writes = spaces.src(2)

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = banks.matrix_ready(s, SRCB)
        if status:
            return status
        bank = s.matrix_bank[SRCB] & 1
        banks.changed(s, SRCB, bank)
        for i in range(16):
            for j in range(i):
                above = s.src[SRCB, bank, 16 + i, j]
                s.src[SRCB, bank, 16 + i, j] = s.src[SRCB, bank, 16 + j, i]
                s.src[SRCB, bank, 16 + j, i] = above
        return rules.DONE
