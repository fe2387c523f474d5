"""Matrix unit: products of SrcB and SrcA."""

from typing import Any

import numpy as np

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

    dst = bits(9, 0)
    addr_mode = bits(16, 14)
    instr_mod19 = bits(19, mode=True)
    clear_dvalid = bits(23, 22, mode=True)

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
    """Matrix product without broadcast (DOTPV, Wormhole ISA).

    As MVMUL; instr_mod19 and dest_accum_en have no effect.
    """

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = operands.dst_field_refused(s, f.dst, _ROWS)
        if status:
            return status
        return matmul.multiply(s, t, f.dst, f.addr_mode, f.clear_dvalid, np.int64(_ROWS))
