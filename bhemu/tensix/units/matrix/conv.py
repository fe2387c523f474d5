"""Matrix unit: the legacy convolutions and average pools, of which only Dst += 0 is left.

The ISA says no more than that they compute it, and count as instructions of this unit.  That they
wait for both banks, end as other matrix operations do, and (convolutions) that they write eight
rows, is what tt-llk's description of their encodings says.  Adding zero turns denormals and -0
into +0, NaN into infinity, and rows that are not valid into valid zeros.  Source: MatrixUnit,
Wormhole ISA, "Legacy instructions".
"""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.operand import choice
from bhemu.tensix import banks, dest, doubt, rwc, tables
from bhemu.tensix.banks import SRCA
from bhemu.tensix.dest import COLUMNS
from bhemu.tensix.insn import Instruction, Word, bits
from bhemu.tensix.quirks import refuse
from bhemu.tensix.status import MISSING, UNSUPPORTED, error
from bhemu.tensix.units.matrix import accumulate_stochastic, doubts, integer, operands
from bhemu.tensix.units.matrix.operands import FIVE_BIT, INT8

_ROWS = 8

_FIELD = error(
    "LEGACY-FIELD",
    UNSUPPORTED,
    "a legacy instruction of the matrix unit with {value} in a field that takes at most {most}",
    "dst is below 1024, the address mode below 8, rotate_weights 0 or 1",
)
_WIDE = error(
    "LEGACY-FP16-WIDE",
    MISSING,
    "a legacy instruction adds zero of SrcA format {fmt} (5-bit exponent) to 32-bit Dst",
    "the ISA does not say with which exponent; leave the instruction out",
)
_EXTENT = error(
    "LEGACY-EXTENT",
    MISSING,
    "adding zero would change Dst row {row}, and the ISA does not say which cells are added to",
    "only CONV3S1 and CONV3S2 are known to write 8 rows of 16; for the others Dst must hold "
    "neither denormals, -0 and NaN nor rows that ZEROACC cleared",
)


@njit
def fields_refused(s: Any, dst: Any, addr_mode: Any, rotate_weights: Any) -> Any:
    """0, or the error of a field whose width is not known and that is larger than its meaning."""
    if dst >= dest.ROWS:
        return refuse(s, _FIELD, value=dst, most=dest.ROWS - 1)
    if addr_mode >= rwc.SECTIONS:
        return refuse(s, _FIELD, value=addr_mode, most=rwc.SECTIONS - 1)
    return refuse(s, _FIELD, value=rotate_weights, most=1) if rotate_weights > 1 else 0


@njit
def _kept(cell: Any, low: Any, style: Any) -> Any:
    """Whether adding zero leaves the cell (`low`: of its low half, 0 in 16-bit Dst) as it is."""
    if style == INT8:
        return cell != 0x8000 or low != 0
    if style == FIVE_BIT:
        return cell & 0x1F != 0 or cell == 0
    exponent, fraction = cell & 0xFF, (cell & 0x7F00) | low
    if exponent == 0xFF:
        return fraction == 0
    return exponent != 0 or (cell | low) == 0


@njit
def _changed(s: Any, first: Any, style: Any, wide: Any) -> Any:
    """The first of 8 rows from `first` that adding zero would change, or -1."""
    for r in range(_ROWS):
        row = first + r
        at = dest.adj32(row) if wide else dest.row16(s, row)
        if not s.dst_valid[at]:
            return row
        for j in range(COLUMNS):
            cell = dest.read32(s, row, j) if wide else dest.read16(s, row, j) << 16
            if not _kept(cell >> 16, cell & 0xFFFF, style):
                return row
    return -1


@njit
def _add(s: Any, t: Any, first: Any, style: Any, wide: Any) -> None:
    for i in range(_ROWS * COLUMNS):
        s.term_sum[0, i] = s.term_exponent[0, i] = np.int16(0)
        s.term_magnitude[i] = np.uint32(0)
    doubtful = doubts.from_dst(s, first, _ROWS, wide) if s.doubt[0] else np.int64(0)
    if style == INT8:
        integer.add(s, first, np.int64(_ROWS), np.int64(1))
    else:
        accumulate_stochastic.add_terms(s, t, wide, style == FIVE_BIT, first, np.int64(1))
    if doubtful:
        doubt.note_result(s, t, first, np.int64(_ROWS), wide)


@njit
def _refused(s: Any, t: Any, dst: Any, addr_mode: Any) -> Any:
    status = operands.dst_field_refused(s, dst, _ROWS) or operands.waits(s)
    status = status or operands.override_refused(s, t)
    if status == 0:
        status = operands.dst_row_refused(s, rwc.dst_row(s, t, dst), _ROWS)
    return status if status else rwc.addr_mod_refused(s, t, addr_mode)


@njit
def _add_zero(s: Any, t: Any, dst: Any, addr_mode: Any, clear_dvalid: Any, eight: Any) -> Any:
    """Dst += 0; `eight` 1: on eight rows, 0: on cells that are not known."""
    status = _refused(s, t, dst, addr_mode)
    if status:
        return status
    a, b = operands.ELEMENT_A, operands.ELEMENT_B
    style = operands.style_of(s, t, a, b, operands.INT8_OR_BFP2)
    if style < 0:
        return style
    wide = operands.wide_dst(s, t) if style != INT8 else np.int64(1)
    if wide and style == FIVE_BIT:
        return refuse(s, _WIDE, fmt=banks.format_a(s, t, SRCA))
    first = rwc.dst_row(s, t, dst)
    if eight:
        _add(s, t, first, style, wide)
    else:
        row = _changed(s, first, style, wide)
        if row >= 0:
            return refuse(s, _EXTENT, row=row)
    return operands.finish(s, t, addr_mode, clear_dvalid)


# What the legacy instructions declare alike; field widths are those of an opcode table.
LEGACY: dict[str, Any] = {"oracle": False, "uncertain": True}


class _Convolution(Word):
    """Fields of the legacy convolutions."""

    dst = bits(13, 0, tables.DST_ROW)
    addr_mode = bits(16, 14, tables.ADDR_MOD)
    rotate_weights = bits(21, 17, choice({0: "", 1: "no effect: the weights count as zero"}))
    clear_dvalid = bits(23, 22, tables.RELEASED, mode=True)


@njit
def _convolve(s: Any, t: Any, f: Any, eight: Any) -> Any:
    status = fields_refused(s, f.dst, f.addr_mode, f.rotate_weights)
    return status if status else _add_zero(s, t, f.dst, f.addr_mode, f.clear_dvalid, eight)


class CONV3S1(_Convolution, Instruction, opcode=0x22, unit="matrix", **LEGACY):
    """Legacy convolution: Dst += 0 on 8 rows (MatrixUnit, Wormhole ISA)."""

    def execute(s: Any, t: Any, f: Any) -> Any:
        return _convolve(s, t, f, np.int64(1))


class CONV3S2(_Convolution, Instruction, opcode=0x23, unit="matrix", **LEGACY):
    """Legacy convolution: Dst += 0 on 8 rows (MatrixUnit, Wormhole ISA)."""

    execute = CONV3S1.execute


class LegacyPool(Word):
    """Fields of the legacy pooling instructions."""

    dst = bits(13, 0, tables.DST_ROW)
    index_en = bits(14, 14, tables.IGNORED, mode=True)
    pool_addr_mode = bits(21, 15, tables.ADDR_MOD)
    clear_dvalid = bits(23, 22, tables.RELEASED, mode=True)


class APOOL3S1(LegacyPool, Instruction, opcode=0x25, unit="matrix", **LEGACY):
    """Legacy average pool: Dst += 0 (MatrixUnit, Wormhole ISA)."""

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = fields_refused(s, f.dst, f.pool_addr_mode, np.int64(0))
        if status:
            return status
        return _add_zero(s, t, f.dst, f.pool_addr_mode, f.clear_dvalid, np.int64(0))


class APOOL3S2(LegacyPool, Instruction, opcode=0x32, unit="matrix", **LEGACY):
    """Legacy average pool: Dst += 0 (MatrixUnit, Wormhole ISA)."""

    execute = APOOL3S1.execute


class MFCONV3S1(_Convolution, Instruction, opcode=0x3A, unit="matrix", **LEGACY):
    """Legacy convolution: Dst += 0 (MatrixUnit, Wormhole ISA)."""

    def execute(s: Any, t: Any, f: Any) -> Any:
        return _convolve(s, t, f, np.int64(0))
