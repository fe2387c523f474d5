"""Matrix unit: products of SrcB and SrcA."""

from typing import Any

import numpy as np

from bhemu.operand import choice
from bhemu.tensix import tables
from bhemu.tensix.insn import Instruction, bits
from bhemu.tensix.quirks import refuse
from bhemu.tensix.status import UNSUPPORTED, error
from bhemu.tensix.units.matrix import matmul, operands
from bhemu.tensix.units.matrix.operands import Elementwise

_ROWS = 8

_MODE = error(
    "MVMUL-MODE",
    UNSUPPORTED,
    "MVMUL with instr_mod19 {instr_mod19} (broadcast of one SrcB row) is not modelled",
    "leave instr_mod19 0",
)


class MVMUL(
    Instruction, opcode=0x26, unit="matrix", formats="src", dst_rows=_ROWS, by_chance=operands.SUMS
):
    """Matrix product of SrcB and SrcA added to Dst (MVMUL, Wormhole ISA)."""

    dst = bits(9, 0, tables.DST_ROW)
    addr_mode = bits(16, 14, tables.ADDR_MOD)
    instr_mod19 = bits(19, 19, choice({0: "eight rows of SrcB"}), mode=True)
    clear_dvalid = bits(23, 22, tables.RELEASED, mode=True)

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.instr_mod19:
            return refuse(s, _MODE, instr_mod19=f.instr_mod19)
        status = operands.dst_field_refused(s, f.dst, _ROWS)
        if status:
            return status
        return matmul.multiply(s, t, f.dst, f.addr_mode, f.clear_dvalid, np.int64(_ROWS))


class DOTPV(
    Elementwise,
    Instruction,
    opcode=0x29,
    unit="matrix",
    oracle=False,
    formats="src",
    dst_rows=_ROWS,
    by_chance=operands.SUMS,
):
    """Matrix product without broadcast (DOTPV, Wormhole ISA)."""

    dest_accum_en = Elementwise.dest_accum_en.meaning(tables.IGNORED)

    instr_mod19 = Elementwise.instr_mod19.meaning(tables.IGNORED)

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = operands.dst_field_refused(s, f.dst, _ROWS)
        if status:
            return status
        return matmul.multiply(s, t, f.dst, f.addr_mode, f.clear_dvalid, np.int64(_ROWS))
