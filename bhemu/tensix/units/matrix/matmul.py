"""The product of a block of SrcB and a block of SrcA, added to Dst: MVMUL, DOTPV and GAPOOL.

Source: MVMUL and GAPOOL, Wormhole ISA; ttsim's Tensix model.
"""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import banks, doubt, formats, rwc, stochastic
from bhemu.tensix.banks import SRCA, SRCB
from bhemu.tensix.quirks import refuse
from bhemu.tensix.status import UNIMPLEMENTED, error
from bhemu.tensix.units.matrix import (
    accumulate,
    accumulate_stochastic,
    doubts,
    integer,
    operands,
    prepare,
    product,
)
from bhemu.tensix.units.matrix.operands import FIVE_BIT, FLOAT, INT8

_K = 16  # length of a product's sum: columns of SrcB, rows of SrcA

_DST_ROW = error(
    "MATMUL-DST-ROW",
    UNIMPLEMENTED,
    "Dst row {row} of a product is not a multiple of {rows}",
    "align the sum of dst field, RWC.Dst and math offset",
)


@njit(forceinline=True)
def _form(style: Any, fmt: Any) -> Any:
    if style == FLOAT:
        return prepare.TF32 if fmt == formats.TF32 else prepare.BF16
    return prepare.FIVE_BIT if style == FIVE_BIT else prepare.INT8


@njit(forceinline=True)
def bias_of(style: Any, wide: Any, phase: Any) -> Any:
    """What is added to the sum of two exponents, by style, width of Dst and fidelity phase."""
    if style == FLOAT:
        bias = -127
    else:
        bias = 127 - 30 if wide else -15
    return bias - 5 * (phase & 1) - 7 * (phase >> 1)


@njit(forceinline=True)
def _refused(s: Any, t: Any, addr_mode: Any, first: Any, rows: Any) -> Any:
    status = operands.src_rows_refused(s, t, _K)
    if status:
        return status
    if first & (rows - 1):
        return refuse(s, _DST_ROW, row=first, rows=rows)
    return rwc.addr_mod_refused(s, t, addr_mode)


@njit(forceinline=True)
def _wide(s: Any, bank_a: Any, row_a: Any, bank_b: Any, row_b: Any, rows: Any) -> Any:
    """Not 0 when a datum of either block has exponent bits beyond 5."""
    a, b = s.src_wide[SRCA, bank_a], s.src_wide[SRCB, bank_b]
    group = (row_a & 48) // prepare.GROUP
    found = a[group] | a[group + 1] | a[group + 2] | a[group + 3]
    group = (row_b & 56) // prepare.GROUP
    return found | (b[group] | b[group + 1] if rows > prepare.GROUP else b[group])


@njit(forceinline=True)
def _add_sums(s: Any, t: Any, m: Any, first: Any, rows: Any, bias: Any) -> None:
    """Sums of products to Dst; `m`: wide and five_bit of accumulate.add_sums."""
    if s.stochastic[0] and operands.stochastically(s, t) and stochastic.modelled(s):
        accumulate_stochastic.add(s, t, (m[0], m[1], 0), first, rows, 1, bias)
    else:
        accumulate.add_sums(s, m[0], m[1], first, rows, bias)


@njit
def _doubts(s: Any, t: Any, k: Any, m: Any, first: Any, rows: Any) -> Any:
    """Not 0 when results are in doubt; `m`: style, wide, bias and keeps of `multiply`."""
    style, wide, bias, keeps = m
    found = doubts.from_dst(s, first, rows, wide)
    if s.doubt[1] or style != FLOAT:
        found |= doubts.from_products(s, k, rows, doubts.WIDE if style != FLOAT else 0)
    if keeps:
        mask = np.int64(prepare.mask_of(_form(style, banks.format_b(s, t))))
        found |= doubts.from_denormals(s, k, rows, mask, bias)
    return found


@njit(forceinline=True)
def multiply(s: Any, t: Any, dst: Any, addr_mode: Any, clear_dvalid: Any, rows: Any) -> Any:
    """Dst[rows x 16] += SrcB[rows x 16] @ SrcA[16 x 16]; the caller has checked its fields."""
    status = operands.waits(s) or operands.override_refused(s, t)
    if status:
        return status
    style = operands.style_of(s, t, operands.PRODUCT_A, operands.PRODUCT_B, operands.INT8_ONLY)
    if style < 0:
        return style
    first = rwc.dst_row(s, t, dst)
    status = _refused(s, t, addr_mode, first, rows)
    if status:
        return status
    a = prepare.prepare(s, np.int64(SRCA), _form(style, banks.format_a(s, t, SRCA)))
    b = prepare.prepare(s, np.int64(SRCB), _form(style, banks.format_b(s, t)))
    row_a, row_b = s.rwc[t, rwc.SRCA], s.rwc[t, rwc.SRCB]
    phase, wide = rwc.fidelity_phase(s, t), operands.wide_dst(s, t) | (style == INT8)
    keeps = operands.keeps_denormals(s, t)
    if style == INT8:
        integer.sums(s, a, row_a, b, row_b, phase, rows)
    else:
        product.sums(s, a, row_a, b, row_b, phase, rows)
    doubtful = np.int64(0)
    if s.doubt[0] or keeps or (style != FLOAT and _wide(s, a, row_a, b, row_b, rows)):
        bias = 0 if style == INT8 else bias_of(style, wide, phase)
        doubtful = _doubts(s, t, (a, row_a, b, row_b), (style, wide, bias, keeps), first, rows)
    if style == INT8:
        integer.add(s, first, rows, np.int64(1))
    else:
        _add_sums(s, t, (wide, style == FIVE_BIT), first, rows, bias_of(style, wide, phase))
    if doubtful:
        doubt.note_result(s, t, first, rows, wide)
    return operands.finish(s, t, addr_mode, clear_dvalid)
