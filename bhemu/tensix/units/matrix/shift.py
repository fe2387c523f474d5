"""Matrix unit: shifts of Src by one column, and transposes."""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.operand import choice, number
from bhemu.tensix import banks, rwc, tables
from bhemu.tensix.banks import SRCA, SRCB
from bhemu.tensix.dest import COLUMNS
from bhemu.tensix.insn import NO_TEXT, Argument, Instruction, bits
from bhemu.tensix.quirks import refuse
from bhemu.tensix.status import DONE, MISSING, UB, error

_ROWS = 16
_RIGHT, _LEFT = 2, 3

_DIRECTION = error(
    "SHIFTXA-DIRECTION",
    UB,
    "SHIFTXA with the reserved direction {direction}",
    "2 shifts right, away from column 0; 3 shifts left",
)
_NO_ROW = error(
    "SHIFTXA-ROW",
    MISSING,
    "SHIFTXA reads the block of the last instruction that named a SrcA row, and it is not known",
    "let a move to or from SrcA, a product, pooling or element-wise operation come right before; "
    "the ISA does not say which row MOVD2B and MOVB2D name",
)


@njit
def _shift_block(s: Any, bank: Any, first: Any, direction: Any) -> None:
    """Rows `first` to `first` + 15, shifted, to rows 0 to 15."""
    for i in range(_ROWS):
        out, row = s.src[SRCA, bank, i], s.src[SRCA, bank, (first + i) & 63]
        if direction == _RIGHT:
            for j in range(COLUMNS - 1, 0, -1):
                out[j] = row[j - 1]
            out[0] = np.uint32(0)
        else:
            for j in range(COLUMNS - 1):
                out[j] = row[j + 1]
            out[COLUMNS - 1] = np.uint32(0)


class SHIFTXA(
    Instruction,
    opcode=0x17,
    unit="matrix",
    oracle=False,
    macro=(Argument("log2_amount2", 23, 2),),
):
    """Shift 16 rows of SrcA by one column, into rows 0-15 (SHIFTXA, Wormhole ISA).

    By a defect of the hardware they are the aligned rows that the last instruction of any thread
    with operands in SrcA started from.
    """

    direction = bits(1, 0, choice({2: "right, away from column 0", 3: "left"}), mode=True)

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.direction < _RIGHT:
            return refuse(s, _DIRECTION, direction=f.direction)
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
        _shift_block(s, bank, s.srca_row[0] & 48, f.direction)
        return DONE


class SHIFTXB(Instruction, opcode=0x18, unit="matrix", oracle=False):
    """Shift or rotate one row of SrcB left by one column (SHIFTXB, Wormhole ISA).

    The loop in the page leaves column 14 alone; its
    diagrams move all columns, and so does this.
    """

    shift_row = bits(9, 0, number("row of SrcB"))
    rot_shift = bits(10, 10, choice({0: "rotates", 1: "shifts in zero"}), mode=True)
    addr_mode = bits(16, 14, tables.ADDR_MOD)

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = banks.matrix_ready(s, SRCB) or rwc.addr_mod_refused(s, t, f.addr_mode)
        if status:
            return status
        bank = s.matrix_bank[SRCB] & 1
        banks.changed(s, SRCB, bank)
        row = s.src[SRCB, bank, rwc.src_row(s, t, SRCB, f.shift_row)]
        first = np.uint32(0) if f.rot_shift else row[0]
        for j in range(COLUMNS - 1):
            row[j] = row[j + 1]
        row[COLUMNS - 1] = first
        rwc.apply_addr_mod(s, t, f.addr_mode)
        return DONE


class TRNSPSRCA(Instruction, opcode=0x14, unit="matrix", **NO_TEXT):
    """Transpose SrcA (name only, no text) (opcode table)."""


class TRNSPSRCB(Instruction, opcode=0x16, unit="matrix"):
    """Transpose rows 16-31 of SrcB (TRNSPSRCB, Wormhole ISA)."""

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
        return DONE
