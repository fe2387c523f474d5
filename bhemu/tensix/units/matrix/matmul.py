"""MVMUL, DOTPV and the element-wise instructions of the matrix unit."""

from typing import Any

import numpy as np

from bhemu.bits import choice
from bhemu.jit.subset import njit
from bhemu.tensix import banks, formats, insn, lanes, spaces, unspecified
from bhemu.tensix.banks import SRCA, SRCB
from bhemu.tensix.formats import TF32
from bhemu.tensix.insn import Instruction, bits
from bhemu.tensix.rules import NCB, UNIMPLEMENTED, UNSUPPORTED, error, refuse, undefined
from bhemu.tensix.units import counters
from bhemu.tensix.units import matrix as operands
from bhemu.tensix.units.matrix import FIVE_BIT, FLOAT, INT8, Elementwise, arithmetic, transfer

# The product of a block of SrcB and a block of SrcA, added to Dst: MVMUL, DOTPV and GAPOOL.
#
# Source: MVMUL and GAPOOL, Wormhole ISA; ttsim's Tensix model.

_K = 16  # length of a product's sum: columns of SrcB, rows of SrcA

_DST_ROW = error("MATMUL-DST-ROW", UNIMPLEMENTED, "Dst row {row} of a product is not a multiple of {rows}", "align the sum of dst field, RWC.Dst and math offset")  # fmt: skip


@njit(forceinline=True)
def _form(style: Any, fmt: Any) -> Any:
    if style == FLOAT:
        return operands.TF32 if fmt == formats.TF32 else operands.BF16
    return operands.PREPARED_FIVE_BIT if style == FIVE_BIT else operands.PREPARED_INT8


@njit(forceinline=True)
def bias_of(style: Any, wide: Any, phase: Any) -> Any:
    """What is added to the sum of two exponents, by style, width of Dst and fidelity phase."""
    if style == FLOAT:
        bias = -127
    else:
        bias = 127 - 30 if wide else -15
    return bias - 5 * (phase & 1) - 7 * (phase >> 1)


@njit(forceinline=True)
def _wide(s: Any, bank_a: Any, row_a: Any, bank_b: Any, row_b: Any, rows: Any) -> Any:
    """Not 0 when a datum of either block has exponent bits beyond 5."""
    a, b = s.src_wide[SRCA, bank_a], s.src_wide[SRCB, bank_b]
    group = (row_a & 48) // operands.GROUP
    found = a[group] | a[group + 1] | a[group + 2] | a[group + 3]
    group = (row_b & 56) // operands.GROUP
    return found | (b[group] | b[group + 1] if rows > operands.GROUP else b[group])


@njit
def _doubts(s: Any, t: Any, k: Any, m: Any, first: Any, rows: Any) -> None:
    """The doubts of the results; `m`: style, wide, bias and keeps of `multiply`."""
    style, wide, bias, keeps = m
    transfer.from_dst(s, first, rows, wide)
    if s.doubt[1] or style != FLOAT:
        transfer.from_products(s, k, rows, transfer.WIDE if style != FLOAT else 0)
    if keeps:
        mask = np.int64(operands.mask_of(_form(style, banks.format_b(s, t))))
        transfer.from_denormals(s, k, rows, mask, bias)


@njit(forceinline=True)
def multiply(s: Any, t: Any, dst: Any, addr_mode: Any, clear_dvalid: Any, rows: Any) -> Any:
    """Dst[rows x 16] += SrcB[rows x 16] @ SrcA[16 x 16]; the caller has checked its mode."""
    status = operands.dst_field_refused(s, dst, rows) or operands.waits(s)
    status = status or operands.override_refused(s, t)
    if status:
        return status
    style = operands.style_of(s, t, operands.PRODUCT_A, operands.PRODUCT_B, operands.INT8_ONLY)
    if style < 0:
        return style
    first = counters.dst_row(s, t, dst)
    status = operands.src_rows_refused(s, t, _K)
    if status == 0 and first & (rows - 1):
        status = refuse(s, _DST_ROW, row=first, rows=rows)
    status = status or counters.addr_mod_refused(s, t, addr_mode)
    if status:
        return status
    a = operands.prepare(s, np.int64(SRCA), _form(style, banks.format_a(s, t, SRCA)))
    b = operands.prepare(s, np.int64(SRCB), _form(style, banks.format_b(s, t)))
    row_a, row_b = s.rwc[t, counters.SRCA], s.rwc[t, counters.SRCB]
    phase, wide = counters.fidelity_phase(s, t), operands.wide_dst(s, t) | (style == INT8)
    keeps = operands.keeps_denormals(s, t)
    if style == INT8:
        operands.sums(s, a, row_a, b, row_b, phase, rows)
    else:
        arithmetic.sums(s, a, row_a, b, row_b, phase, rows)
    doubtful = s.doubt[0] or keeps or (style != FLOAT and _wide(s, a, row_a, b, row_b, rows))
    if doubtful:
        shift = 0 if style == INT8 else bias_of(style, wide, phase)
        _doubts(s, t, (a, row_a, b, row_b), (style, wide, shift, keeps), first, rows)
    five_bit, bias = style == FIVE_BIT, bias_of(style, wide, phase)
    if style == INT8:
        operands.add(s, first, rows, np.int64(1))
    elif s.stochastic[0] and operands.stochastically(s, t) and lanes.rounding_modelled(s):
        arithmetic.add(s, t, (wide, five_bit, 0), first, rows, 1, bias)
    else:
        arithmetic.add_sums(s, wide, five_bit, first, rows, bias)
    if doubtful:
        unspecified.note_result(s, t, first, rows, wide)
    return operands.finish(s, t, addr_mode, clear_dvalid)


# Matrix unit: products of SrcB and SrcA.

_ROWS = 8

_MODE = error("MVMUL-MODE", UNSUPPORTED, "MVMUL with instr_mod19 {instr_mod19} (broadcast of one SrcB row) is not modelled", "leave instr_mod19 0")  # fmt: skip


class MVMUL(Instruction, opcode=0x26, unit="matrix", formats="src", by_chance=operands.SUMS):
    """Matrix product of SrcB and SrcA added to Dst (MVMUL, Wormhole ISA)."""

    reads = spaces.ALL_SRC | spaces.dst("dst", 8) | operands.READ
    writes = spaces.dst("dst", 8) | operands.WRITTEN

    dst = bits(9, 0, insn.DST_ROW)
    addr_mode = bits(16, 14, insn.ADDR_MOD)
    instr_mod19 = bits(19, 19, choice("eight rows of SrcB"), mode=True)
    clear_dvalid = bits(23, 22, insn.RELEASED, mode=True)

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.instr_mod19:
            return refuse(s, _MODE, instr_mod19=f.instr_mod19)
        return multiply(s, t, f.dst, f.addr_mode, f.clear_dvalid, np.int64(_ROWS))


class DOTPV(Elementwise, opcode=0x29, oracle=False, formats="src", by_chance=operands.SUMS):
    """Matrix product without broadcast (DOTPV, Wormhole ISA)."""

    dest_accum_en = Elementwise.dest_accum_en.meaning(insn.IGNORED)
    instr_mod19 = Elementwise.instr_mod19.meaning(insn.IGNORED)

    def execute(s: Any, t: Any, f: Any) -> Any:
        return multiply(s, t, f.dst, f.addr_mode, f.clear_dvalid, np.int64(_ROWS))


# Matrix unit: element-wise arithmetic.

_PHASE = error("ELW-PHASE", NCB, "ELWADD or ELWSUB in fidelity phase {phase}", "reset the fidelity counter first (SETRWC with bit_mask 8, or FidelityClear)")  # fmt: skip
_ACCUMULATE = error("ELWMUL-ACCUM", NCB, "ELWMUL with dest_accum_en, which has no effect: it always adds to Dst", "clear dest_accum_en")  # fmt: skip


@njit
def _mask(style: Any, fmt: Any) -> Any:
    """Bits of a cell that take part in floating-point arithmetic (uint32)."""
    if style == FIVE_BIT:
        return operands.mask_of(operands.PREPARED_FIVE_BIT)
    return operands.mask_of(operands.TF32 if fmt == TF32 else operands.BF16)


@njit
def _blocks(s: Any, t: Any, style: Any, broadcast: Any, flip: Any) -> Any:
    return arithmetic.Blocks(
        s.matrix_bank[SRCA] & 1,
        s.rwc[t, counters.SRCA] & 56,
        s.matrix_bank[SRCB] & 1,
        s.rwc[t, counters.SRCB] & 56,
        0 if broadcast & 2 else 1,
        0 if broadcast & 1 else 1,
        _mask(style, banks.format_a(s, t, SRCA)),
        _mask(style, banks.format_b(s, t)),
        np.uint32(0x80000000) if flip else np.uint32(0),
        transfer.smallest_exponent(s, t),
    )


@njit(forceinline=True)
def _style(s: Any, t: Any, f: Any, row: Any, phase: Any) -> Any:
    """Style of the operands, or the error; `phase`: fidelity phase of an operation without them."""
    status = operands.override_refused(s, t)
    if status:
        return status
    a, b = operands.ELEMENT_A, operands.ELEMENT_B
    style = operands.style_of(s, t, a, b, operands.INT8_OR_BFP2)
    if style < 0:
        return style
    status = operands.src_rows_refused(s, t, _ROWS) or operands.dst_row_refused(s, row, _ROWS)
    if status == 0 and phase:
        status = refuse(s, _PHASE, phase=phase)
    status = status or counters.addr_mod_refused(s, t, f.addr_mode)
    return status if status else style


@njit(forceinline=True)
def _elementwise(s: Any, t: Any, f: Any, multiplies: Any, subtracts: Any) -> Any:
    """ELWMUL, or ELWADD and ELWSUB."""
    status = operands.dst_field_refused(s, f.dst, _ROWS) or operands.waits(s)
    if status == 0 and multiplies and f.dest_accum_en:
        status = undefined(s, _ACCUMULATE)
    if status:
        return status
    first = f.dst + s.rwc[t, counters.DST] + counters.dst_offset(s, t)  # not modulo 1024
    phase = counters.fidelity_phase(s, t)
    style = _style(s, t, f, first, 0 if multiplies else phase)
    if style < 0:
        return style
    k = _blocks(s, t, style, f.instr_mod19, subtracts)
    wide, five_bit = operands.wide_dst(s, t) | (style == INT8), style == FIVE_BIT
    adds = np.int64(1) if multiplies else f.dest_accum_en
    doubtful = s.doubt[0] or (style != FLOAT and arithmetic.any_bits(s, k, transfer.WIDE))
    if doubtful:
        if adds:
            transfer.from_dst(s, first, _ROWS, wide)
        else:
            transfer.clear(s, _ROWS)
        if s.doubt[1] or style != FLOAT:
            transfer.from_elements(s, k, multiplies, transfer.WIDE if style != FLOAT else 0)
    if style == INT8:
        a, b = operands.INT8_A, operands.INT8_B
        mask_a, mask_b = np.int64(0x3FF), np.int64(0x3FF)
        if multiplies:
            mask_a = np.int64(a.low_mask if phase & 1 else a.high_mask)
            mask_b = np.int64(b.low_mask if phase & 2 else b.high_mask)
        arithmetic.integers(s, k, multiplies, mask_a, mask_b)
        operands.add(s, first, np.int64(_ROWS), adds)
    else:
        if multiplies:
            arithmetic.products(s, k, phase, bias_of(style, wide, phase))
        else:
            rebias = wide and five_bit
            arithmetic.element_sums(s, k, 112 if rebias else 0, 97 if rebias else 0)
        arithmetic.add_terms_stochastic(s, t, wide, five_bit, first, adds)
    if doubtful:
        unspecified.note_result(s, t, first, np.int64(_ROWS), wide)
    return operands.finish(s, t, f.addr_mode, f.clear_dvalid)


class ELWADD(Elementwise, opcode=0x28, formats="src", by_chance=operands.SUMS):
    """Element-wise sum of SrcA and SrcB (ELWADD, Wormhole ISA)."""

    def execute(s: Any, t: Any, f: Any) -> Any:
        return _elementwise(s, t, f, False, False)


class ELWSUB(Elementwise, opcode=0x30, formats="src", by_chance=operands.SUMS):
    """Element-wise difference of SrcA and SrcB (ELWSUB, Wormhole ISA)."""

    def execute(s: Any, t: Any, f: Any) -> Any:
        return _elementwise(s, t, f, False, True)


class ELWMUL(Elementwise, opcode=0x27, formats="src", by_chance=operands.SUMS):
    """Element-wise product of SrcA and SrcB added to Dst (ELWMUL, Wormhole ISA).

    It takes the slices of the mantissas that the fidelity phase names.
    """

    dest_accum_en = Elementwise.dest_accum_en.meaning(choice("adds to Dst", "adds to Dst"))

    def execute(s: Any, t: Any, f: Any) -> Any:
        return _elementwise(s, t, f, True, False)
