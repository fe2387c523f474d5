"""Matrix unit: element-wise arithmetic."""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.operand import choice
from bhemu.tensix import banks, doubt, rwc
from bhemu.tensix.banks import SRCA, SRCB
from bhemu.tensix.formats import TF32
from bhemu.tensix.insn import Instruction
from bhemu.tensix.quirks import refuse, violated
from bhemu.tensix.status import DONE, NCB, error
from bhemu.tensix.units.matrix import (
    accumulate_stochastic,
    doubts,
    element,
    integer,
    matmul,
    operands,
    prepare,
)
from bhemu.tensix.units.matrix.operands import FIVE_BIT, FLOAT, INT8, Elementwise

_ROWS = 8

_PHASE = error(
    "ELW-PHASE",
    NCB,
    "ELWADD or ELWSUB in fidelity phase {phase}",
    "reset the fidelity counter first (SETRWC with bit_mask 8, or FidelityClear)",
)
_ACCUMULATE = error(
    "ELWMUL-ACCUM",
    NCB,
    "ELWMUL with dest_accum_en, which has no effect: it always adds to Dst",
    "clear dest_accum_en",
)


@njit
def _mask(style: Any, fmt: Any) -> Any:
    """Bits of a cell that take part in floating-point arithmetic (uint32)."""
    if style == FIVE_BIT:
        return prepare.mask_of(prepare.FIVE_BIT)
    return prepare.mask_of(prepare.TF32 if fmt == TF32 else prepare.BF16)


@njit
def _blocks(s: Any, t: Any, style: Any, broadcast: Any, flip: Any) -> Any:
    return element.Blocks(
        s.matrix_bank[SRCA] & 1,
        s.rwc[t, rwc.SRCA] & 56,
        s.matrix_bank[SRCB] & 1,
        s.rwc[t, rwc.SRCB] & 56,
        0 if broadcast & 2 else 1,
        0 if broadcast & 1 else 1,
        _mask(style, banks.format_a(s, t, SRCA)),
        _mask(style, banks.format_b(s, t)),
        np.uint32(0x80000000) if flip else np.uint32(0),
        np.uint32(0) if operands.keeps_denormals(s, t) else np.uint32(0x00800000),
    )


@njit
def _dst_row(s: Any, t: Any, dst: Any) -> Any:
    """Dst row, not reduced modulo 1024."""
    return dst + s.rwc[t, rwc.DST] + rwc.dst_offset(s, t)


@njit
def _style(s: Any, t: Any, dst: Any, addr_mode: Any, phase: Any) -> Any:
    """Style of the operands, or the error; `phase`: fidelity phase of an operation without them."""
    status = operands.override_refused(s, t)
    if status:
        return status
    a, b = operands.ELEMENT_A, operands.ELEMENT_B
    style = operands.style_of(s, t, a, b, operands.INT8_OR_BFP2)
    if style < 0:
        return style
    status = operands.src_rows_refused(s, t, _ROWS)
    if status:
        return status
    status = operands.dst_row_refused(s, _dst_row(s, t, dst), _ROWS)
    if status:
        return status
    if phase:
        return refuse(s, _PHASE, phase=phase)
    status = rwc.addr_mod_refused(s, t, addr_mode)
    return status if status else style


@njit
def _doubts(s: Any, k: Any, first: Any, m: Any) -> Any:
    """Not 0 when results are in doubt; `m`: style, wide, whether they multiply, add to Dst."""
    style, wide, multiply, accumulate = m
    found = doubts.from_dst(s, first, _ROWS, wide) if accumulate else doubts.clear(s, _ROWS)
    if s.doubt[1] or style != FLOAT:
        found |= doubts.from_elements(s, k, multiply, doubts.WIDE if style != FLOAT else 0)
    return found


@njit(forceinline=True)
def _may_doubt(s: Any, k: Any, style: Any) -> Any:
    return s.doubt[0] or (style != FLOAT and element.any_bits(s, k, doubts.WIDE))


@njit
def _sum(s: Any, t: Any, f: Any, subtract: Any) -> Any:
    """ELWADD and ELWSUB up to the store; DONE or the status."""
    status = operands.dst_field_refused(s, f.dst, _ROWS)
    if status == 0:
        status = operands.waits(s)
    if status:
        return status
    style = _style(s, t, f.dst, f.addr_mode, rwc.fidelity_phase(s, t))
    if style < 0:
        return style
    k = _blocks(s, t, style, f.instr_mod19, subtract)
    first, wide = _dst_row(s, t, f.dst), operands.wide_dst(s, t) | (style == INT8)
    doubtful = np.int64(0)
    if _may_doubt(s, k, style):
        doubtful = _doubts(s, k, first, (style, wide, False, f.dest_accum_en))
    if style == INT8:
        element.integers(s, k, False, 0x3FF, 0x3FF)
        integer.add(s, first, np.int64(_ROWS), f.dest_accum_en)
    else:
        rebias = wide and style == FIVE_BIT
        element.sums(s, k, 112 if rebias else 0, 97 if rebias else 0)
        accumulate_stochastic.add_terms(s, t, wide, style == FIVE_BIT, first, f.dest_accum_en)
    if doubtful:
        doubt.note_result(s, t, first, np.int64(_ROWS), wide)
    return DONE


@njit
def _product(s: Any, t: Any, f: Any) -> Any:
    """ELWMUL up to the store; DONE or the status."""
    status = operands.waits(s)
    if status == 0 and f.dest_accum_en:
        status = violated(s, _ACCUMULATE)
    if status:
        return status
    style = _style(s, t, f.dst, f.addr_mode, 0)
    if style < 0:
        return style
    k = _blocks(s, t, style, f.instr_mod19, False)
    first, phase = _dst_row(s, t, f.dst), rwc.fidelity_phase(s, t)
    wide = operands.wide_dst(s, t) | (style == INT8)
    doubtful = np.int64(0)
    if _may_doubt(s, k, style):
        doubtful = _doubts(s, k, first, (style, wide, True, np.int64(1)))
    if style == INT8:
        a, b = prepare.INT8_A, prepare.INT8_B
        mask_a = a.low_mask if phase & 1 else a.high_mask
        element.integers(s, k, True, mask_a, b.low_mask if phase & 2 else b.high_mask)
        integer.add(s, first, np.int64(_ROWS), np.int64(1))
    else:
        element.products(s, k, phase, matmul.bias_of(style, wide, phase))
        accumulate_stochastic.add_terms(s, t, wide, style == FIVE_BIT, first, np.int64(1))
    if doubtful:
        doubt.note_result(s, t, first, np.int64(_ROWS), wide)
    return DONE


class ELWADD(
    Elementwise,
    Instruction,
    opcode=0x28,
    unit="matrix",
    formats="src",
    dst_rows=_ROWS,
    by_chance=operands.SUMS,
):
    """Element-wise sum of SrcA and SrcB (ELWADD, Wormhole ISA)."""

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = _sum(s, t, f, False)
        return status if status else operands.finish(s, t, f.addr_mode, f.clear_dvalid)


class ELWSUB(
    Elementwise,
    Instruction,
    opcode=0x30,
    unit="matrix",
    formats="src",
    dst_rows=_ROWS,
    by_chance=operands.SUMS,
):
    """Element-wise difference of SrcA and SrcB (ELWSUB, Wormhole ISA)."""

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = _sum(s, t, f, True)
        return status if status else operands.finish(s, t, f.addr_mode, f.clear_dvalid)


class ELWMUL(
    Elementwise,
    Instruction,
    opcode=0x27,
    unit="matrix",
    formats="src",
    dst_rows=_ROWS,
    by_chance=operands.SUMS,
):
    """Element-wise product of SrcA and SrcB added to Dst (ELWMUL, Wormhole ISA).

    It takes the slices of the mantissas that the fidelity phase names.
    """

    dest_accum_en = Elementwise.dest_accum_en.meaning(choice({0: "adds to Dst", 1: "adds to Dst"}))

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = operands.dst_field_refused(s, f.dst, _ROWS)
        if status:
            return status
        status = _product(s, t, f)
        return status if status else operands.finish(s, t, f.addr_mode, f.clear_dvalid)
