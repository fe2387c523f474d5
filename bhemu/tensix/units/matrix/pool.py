"""Pooling and convolution instructions of the matrix unit."""

from typing import Any

import numpy as np

from bhemu.bits import choice
from bhemu.jit.subset import njit
from bhemu.tensix import banks, dest, formats, insn, spaces, unspecified
from bhemu.tensix.banks import SRCA, SRCB
from bhemu.tensix.dest import COLUMNS, LOW_HALF
from bhemu.tensix.insn import Instruction, bits
from bhemu.tensix.rules import MISSING, UNSUPPORTED, error, refuse
from bhemu.tensix.units import counters
from bhemu.tensix.units import matrix as operands
from bhemu.tensix.units.counters import SRC_ROWS
from bhemu.tensix.units.matrix import FIVE_BIT, INT8, arithmetic, matmul, transfer

# Matrix unit: the legacy convolutions and average pools, of which only Dst += 0 is left.
#
# The ISA says no more than that they compute it, and count as instructions of this unit.  That
# they wait for both banks, end as other matrix operations do, and (convolutions) that they write
# eight rows, is what tt-llk's description of their encodings says.  Adding zero turns denormals
# and -0 into +0, NaN into infinity, and rows that are not valid into valid zeros.  Source:
# MatrixUnit, Wormhole ISA, "Legacy instructions".

_ROWS = 8

_FIELD = error("LEGACY-FIELD", UNSUPPORTED, "a legacy instruction of the matrix unit with {value} in a field that takes at most {most}", "dst is below 1024, the address mode below 8, rotate_weights 0 or 1")  # fmt: skip
_WIDE = error("LEGACY-FP16-WIDE", MISSING, "a legacy instruction adds zero of SrcA format {fmt} (5-bit exponent) to 32-bit Dst", "the ISA does not say with which exponent; leave the instruction out")  # fmt: skip
_EXTENT = error("LEGACY-EXTENT", MISSING, "adding zero would change Dst row {row}, and the ISA does not say which cells are added to", "only CONV3S1 and CONV3S2 are known to write 8 rows of 16; for the others Dst must hold neither denormals, -0 and NaN nor rows that ZEROACC cleared")  # fmt: skip


@njit
def fields_refused(s: Any, dst: Any, addr_mode: Any, rotate_weights: Any) -> Any:
    """0, or the error of a field whose width is not known and that is larger than its meaning."""
    if dst >= dest.ROWS:
        return refuse(s, _FIELD, value=dst, most=dest.ROWS - 1)
    if addr_mode >= counters.SECTIONS:
        return refuse(s, _FIELD, value=addr_mode, most=counters.SECTIONS - 1)
    return refuse(s, _FIELD, value=rotate_weights, most=1) if rotate_weights > 1 else 0


@njit
def _unchanged_by_zero(cell: Any, low: Any, style: Any) -> Any:
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
            if not _unchanged_by_zero(cell >> 16, cell & 0xFFFF, style):
                return row
    return -1


@njit
def _add_zero(s: Any, t: Any, dst: Any, addr_mode: Any, clear_dvalid: Any, eight: Any) -> Any:
    """Dst += 0; `eight` 1: on eight rows, 0: on cells that are not known."""
    status = operands.dst_field_refused(s, dst, _ROWS) or operands.waits(s)
    status = status or operands.override_refused(s, t)
    status = status or operands.dst_row_refused(s, counters.dst_row(s, t, dst), _ROWS)
    status = status or counters.addr_mod_refused(s, t, addr_mode)
    if status:
        return status
    a, b = operands.ELEMENT_A, operands.ELEMENT_B
    style = operands.style_of(s, t, a, b, operands.INT8_OR_BFP2)
    if style < 0:
        return style
    wide = operands.wide_dst(s, t) if style != INT8 else np.int64(1)
    if wide and style == FIVE_BIT:
        return refuse(s, _WIDE, fmt=banks.format_a(s, t, SRCA))
    first = counters.dst_row(s, t, dst)
    if eight:
        for i in range(_ROWS * COLUMNS):
            s.term_sum[0, i] = s.term_exponent[0, i] = np.int16(0)
            s.term_magnitude[i] = np.uint32(0)
        if s.doubt[0]:
            transfer.from_dst(s, first, _ROWS, wide)
        if style == INT8:
            operands.add(s, first, np.int64(_ROWS), np.int64(1))
        else:
            arithmetic.add_terms_stochastic(s, t, wide, style == FIVE_BIT, first, np.int64(1))
        if s.doubt[0]:
            unspecified.note_result(s, t, first, np.int64(_ROWS), wide)
    else:
        row = _changed(s, first, style, wide)
        if row >= 0:
            return refuse(s, _EXTENT, row=row)
    return operands.finish(s, t, addr_mode, clear_dvalid)


# What the legacy instructions declare alike; field widths are those of an opcode table.
LEGACY: dict[str, Any] = {"oracle": False, "uncertain": True}


class _Legacy(Instruction, unit="matrix"):
    """Fields of all of them."""

    reads = spaces.ALL_SRC | spaces.ALL_DST | operands.READ
    writes = spaces.ALL_DST | operands.WRITTEN

    dst = bits(13, 0, insn.DST_ROW)
    clear_dvalid = bits(23, 22, insn.RELEASED, mode=True)


class _Convolution(_Legacy):
    """Fields of the legacy convolutions."""

    addr_mode = bits(16, 14, insn.ADDR_MOD)
    rotate_weights = bits(21, 17, choice("", "no effect: the weights count as zero"))


@njit
def _convolve(s: Any, t: Any, f: Any, eight: Any) -> Any:
    status = fields_refused(s, f.dst, f.addr_mode, f.rotate_weights)
    return status or _add_zero(s, t, f.dst, f.addr_mode, f.clear_dvalid, eight)


class CONV3S1(_Convolution, opcode=0x22, **LEGACY):
    """Legacy convolution: Dst += 0 on 8 rows (MatrixUnit, Wormhole ISA)."""

    def execute(s: Any, t: Any, f: Any) -> Any:
        return _convolve(s, t, f, np.int64(1))


class CONV3S2(_Convolution, opcode=0x23, **LEGACY):
    """Legacy convolution: Dst += 0 on 8 rows (MatrixUnit, Wormhole ISA)."""

    execute = CONV3S1.execute


class LegacyPool(_Legacy):
    """Fields of the legacy pooling instructions."""

    index_en = bits(14, 14, insn.IGNORED, mode=True)
    pool_addr_mode = bits(21, 15, insn.ADDR_MOD)


class APOOL3S1(LegacyPool, opcode=0x25, **LEGACY):
    """Legacy average pool: Dst += 0 (MatrixUnit, Wormhole ISA)."""

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = fields_refused(s, f.dst, f.pool_addr_mode, np.int64(0))
        return status or _add_zero(s, t, f.dst, f.pool_addr_mode, f.clear_dvalid, np.int64(0))


class APOOL3S2(LegacyPool, opcode=0x32, **LEGACY):
    """Legacy average pool: Dst += 0 (MatrixUnit, Wormhole ISA)."""

    execute = APOOL3S1.execute


class MFCONV3S1(_Convolution, opcode=0x3A, **LEGACY):
    """Legacy convolution: Dst += 0 (MatrixUnit, Wormhole ISA)."""

    def execute(s: Any, t: Any, f: Any) -> Any:
        return _convolve(s, t, f, np.int64(0))


# GMPOOL in its general form: 5-bit exponents, integers, and scaling by the exponents of SrcB.
#
# A datum is a sign, an exponent with the bias of two (that of SrcB's exponent is added to SrcA's,
# or once more to Dst's), and ten bits of mantissa or magnitude.  Without scaling and with 8-bit
# exponents it gives what `_pool` gives faster.  Source: GMPOOL, Wormhole ISA; ttsim has none of it.

# Styles of SrcA: mantissas of 7 bits, of 10 bits, 5-bit exponents, 8-bit integers.
BF16, TF32, SCALED_FIVE_BIT, SCALED_INT8 = range(4)
ROWS, DEPTH = 4, 16  # of Dst that pooling writes, of SrcA that are pooled
_LOWEST = -((511 << 10) + 1023)  # what a scale of zero makes of every datum


@njit
def _source(cell: Any, exponent: Any, style: Any) -> Any:
    # Comparable value of a SrcA cell under the exponent of its scale: sign, then exponent and
    # mantissa in one number.
    if exponent == 0:
        return np.int64(_LOWEST)
    own, man = (cell >> 23) & 0xFF, (cell >> 13) & 0x3FF
    if own == 0:
        return np.int64(0)
    if style == SCALED_INT8:
        exp: Any = np.int64(0)
    elif style == SCALED_FIVE_BIT:
        exp = (own & 31) + (exponent & 31)
    else:
        exp = own + exponent
    if style == BF16:
        man &= 0x3F8
    value = (exp << 10) + man
    return -value if cell >> 31 else value


@njit
def _maximum(s: Any, j: Any, high: Any, low: Any, rows: Any, style: Any, wide: Any) -> Any:
    # The new Dst datum of column j; `rows`: first row of SrcA and row of SrcB.
    cells = s.src[SRCA, s.matrix_bank[SRCA] & 1]
    scale = s.src[SRCB, s.matrix_bank[SRCB] & 1, rows[1] & (SRC_ROWS - 1)]
    # Comparable value of a Dst datum; of integers only 19 bits of magnitude count.
    if style == SCALED_INT8:
        value = low | (((high >> 8) & 7) << 16)
    elif style == SCALED_FIVE_BIT:
        value = (((high & 31) + 15) << 10) + ((high >> 5) & 0x3FF)
    else:
        man = ((high >> 8) & 0x7F) << 3
        if wide:
            man += low >> 13
        value = (((high & 0xFF) + 127) << 10) + man
    best, negative = (-value if high >> 15 else value), high >> 15
    for i in range(DEPTH):
        exponent = (np.int64(scale[i]) >> 23) & 0xFF
        value = _source(np.int64(cells[(rows[0] + i) & (SRC_ROWS - 1), j]), exponent, style)
        if value >= best:
            best, negative = value, np.int64(1 if value < 0 else 0)
    sign = negative << 31
    magnitude = abs(best)
    exp, man = magnitude >> 10, magnitude & 0x3FF
    if style == SCALED_INT8:
        return sign | ((exp & 7) << 10) | man
    if style == SCALED_FIVE_BIT:
        return sign | (man << 21) | (((exp - 15) & 31) << 16) if exp & 0x3F else np.int64(0)
    cell = ((man & 0x3F8) << 21) | (((exp - 127) & 0xFF) << 16)
    if wide:
        cell |= (man & 7) << 13
    return sign | cell if exp else np.int64(0)


@njit
def pool(s: Any, row: Any, rows: Any, style: Any, wide: Any) -> None:
    """Maxima of the columns of 16 rows of SrcA and of Dst row `row`, into that row.

    `rows`: first row of SrcA, and row of SrcB, whose datum i scales row i.  `wide` = 1: 32-bit Dst.
    """
    at = dest.adj32(row & (dest.ROWS - 1)) if wide else dest.row16(s, row)
    fill = 0 if s.dst_valid[at] & 1 else 0xFFFF  # rows that are not valid: minus infinity
    for j in range(COLUMNS):
        high, low = np.int64(s.dst[at, j]) | fill, np.int64(0)
        if wide:
            low = np.int64(s.dst[(at + LOW_HALF) & (dest.ROWS - 1), j]) | fill
        s.lane_tmp[0, j] = np.uint32(_maximum(s, np.int64(j), high, low, rows, style, wide))
    for i in range(ROWS):
        for j in range(COLUMNS):
            cell = np.int64(0) if i else np.int64(s.lane_tmp[0, j])
            if wide:
                dest.write32(s, row + i, j, cell)
            else:
                dest.write16(s, row + i, j, cell >> 16)


_MODE = error("POOL-MODE", UNSUPPORTED, "pooling with instr_mod19 {instr_mod19}, max_pool_index_en {max_pool_index_en} is not modelled", "instr_mod19 must be 1 (16 x 16), max_pool_index_en 0")  # fmt: skip
_MAX_FORMATS = error("GMPOOL-FORMATS", UNSUPPORTED, "GMPOOL is not specified for SrcA format {fmt_a} with SrcB format {fmt_b}", f'both need exponents of the same size, and ALU_ACC_CTRL_INT8_math_enabled needs int8 in SrcA; codes: {formats.CODES}')  # fmt: skip
_MAX_WIDE = error("GMPOOL-FP16-WIDE", UNSUPPORTED, "GMPOOL of SrcA format {fmt}, with 5-bit exponents, into 32-bit Dst is not modelled", "the ISA text allows it, but the exponents of its model would turn 1.0 into 2^32: use 16-bit Dst or bf16")  # fmt: skip
_MAX_SCALE = error("GMPOOL-SCALE", UNSUPPORTED, "a legacy max pool with {scale:#010x} in column {column} of its SrcB row: only 1.0 (0x3f800000) is modelled", "fill the row with 1.0; GMPOOL scales by the row's exponents")  # fmt: skip

_U, _I = np.uint32, np.int32
_ZERO, _ALL = _U(0), _U(0xFFFFFFFF)
_BF16, _TF32 = _U(0xFFFF0000), _U(0xFFFFE000)
_ONE = 0x3F800000


@njit
def _style_of(s: Any, t: Any) -> Any:
    """Style of SrcA (pool_scaled), or the error (< 0) of formats that do not go together."""
    a, b = banks.format_a(s, t, SRCA), banks.format_b(s, t)
    if operands.integers(s, t):
        fits = (operands.INT8_ONLY >> a) & 1
        return SCALED_INT8 if fits else refuse(s, _MAX_FORMATS, fmt_a=a, fmt_b=b)
    if (formats.FIVE_BIT_DATUMS >> a) & (formats.FIVE_BIT_DATUMS >> b) & 1:
        return SCALED_FIVE_BIT
    if (operands.ELEMENT_B >> a) & (operands.ELEMENT_B >> b) & 1:
        return TF32 if a == formats.TF32 else BF16
    return refuse(s, _MAX_FORMATS, fmt_a=a, fmt_b=b)


@njit
def _scaled(s: Any, t: Any) -> Any:
    """(first column of the SrcB row that does not hold 1.0, what it holds), or (16, 0)."""
    scale = s.src[SRCB, s.matrix_bank[SRCB] & 1, s.rwc[t, counters.SRCB] & 56]
    for j in range(COLUMNS):
        if np.int64(scale[j]) != _ONE:
            return np.int64(j), np.int64(scale[j])
    return np.int64(COLUMNS), np.int64(0)


@njit
def _refused(s: Any, t: Any, addr_mode: Any, row: Any) -> Any:
    """0, or the error of GMPOOL on Dst row `row`."""
    status = operands.override_refused(s, t)
    if status:
        return status
    style = _style_of(s, t)
    if style < 0:
        return style
    status = operands.src_rows_refused(s, t, DEPTH) or operands.dst_row_refused(s, row, ROWS)
    if status:
        return status
    if style == SCALED_FIVE_BIT and operands.wide_dst(s, t):
        return refuse(s, _MAX_WIDE, fmt=banks.format_a(s, t, SRCA))
    return counters.addr_mod_refused(s, t, addr_mode)


@njit(forceinline=True)
def _key(v: Any) -> Any:
    """Orders sign-magnitude patterns as signed integers."""
    return _I(v ^ (_U(0x7FFFFFFF) if v >> _U(31) else _ZERO))


@njit
def _maxima(s: Any, best: Any, row: Any, mask: Any) -> None:
    """Replace `best` (16 patterns) by greater cells of 16 SrcA rows; denormals count as +0."""
    bank = s.matrix_bank[SRCA] & 1
    for i in range(DEPTH):
        cells = s.src[SRCA, bank, (row + i) & 63]
        for j in range(COLUMNS):
            v = _U(cells[j] & mask)
            v = v if v & _U(0x7F800000) else _ZERO
            best[j] = v if _key(v) > _key(best[j]) else best[j]


@njit
def _pool(s: Any, t: Any, dst: Any, addr_mode: Any, clear_dvalid: Any, cells: Any) -> Any:
    """GMPOOL once its mode is known; `cells`: bits of SrcA cells that take part, besides format."""
    status = operands.dst_field_refused(s, dst, ROWS) or operands.waits(s)
    if status:
        return status
    row = dst + s.rwc[t, counters.DST] + counters.dst_offset(s, t)
    status = _refused(s, t, addr_mode, row)
    if status:
        return status
    style, wide = _style_of(s, t), operands.wide_dst(s, t)
    as_float = style == BF16 or style == TF32
    column, scale = _scaled(s, t)
    scales = not as_float or column < COLUMNS
    if scales and cells == _ZERO:
        if as_float:
            return refuse(s, _MAX_SCALE, scale=scale, column=column)
        return refuse(s, _MAX_FORMATS, fmt_a=banks.format_a(s, t, SRCA), fmt_b=banks.format_b(s, t))
    wide = wide if as_float else np.int64(style == SCALED_INT8)
    rows = (s.rwc[t, counters.SRCA], s.rwc[t, counters.SRCB] & 56)
    if s.doubt[0]:
        transfer.from_dst(s, row, 1, wide)
        if s.doubt[1] and cells != _ZERO:
            transfer.from_pool(s, rows[0], rows[1])
    tf32 = style == TF32
    mask = _U(operands.mask_of(operands.TF32 if tf32 else operands.BF16) & cells)
    if scales:
        pool(s, row, rows, style, wide)
    elif wide:
        high_row = dest.adj32(row & (dest.ROWS - 1))
        best, high, low = s.lane_tmp[0, :COLUMNS], s.dst[high_row], s.dst[high_row + LOW_HALF]
        fill = _ZERO if s.dst_valid[high_row] else _ALL
        for j in range(COLUMNS):
            old = _U(_U(_U(_U(high[j]) << _U(16)) | _U(low[j])) | fill)
            best[j] = _U(_U(dest.dec_32(old)) & _TF32)
        _maxima(s, best, rows[0], mask)
        for j in range(COLUMNS):
            high[j] = np.uint16(dest.enc_bf16(_U(best[j] >> _U(16))))
            low[j] = np.uint16(_U(best[j] & _U(0xFFFF)))
        s.dst_valid[high_row] = 1
        dest.written(s, high_row + LOW_HALF)
        for i in range(1, ROWS):
            for j in range(COLUMNS):
                dest.write32(s, row + i, j, 0)
    else:
        best, cells = s.lane_tmp[0, :COLUMNS], s.dst[dest.row16(s, row)]
        fill = _ZERO if dest.valid16(s, row) else _ALL
        for j in range(COLUMNS):
            best[j] = _U(_U(dest.dec_bf16(_U(_U(cells[j]) | fill))) << _U(16))
        _maxima(s, best, rows[0], mask)
        dest.spoil(s, row, np.int64(1))
        for j in range(COLUMNS):
            cells[j] = np.uint16(dest.enc_bf16(_U(best[j] >> _U(16))))
        dest.mark16(s, row, 1)
        for i in range(1, ROWS):
            for j in range(COLUMNS):
                dest.write16(s, row + i, j, 0)
    if s.doubt[0]:
        unspecified.note_result(s, t, row, np.int64(1), wide)
    return operands.finish(s, t, addr_mode, clear_dvalid)


class _Pool(Instruction, unit="matrix"):
    """Fields of pooling."""

    reads = spaces.ALL_SRC | spaces.dst("dst", ROWS) | operands.READ
    writes = spaces.dst("dst", ROWS) | operands.WRITTEN

    dst = bits(9, 0, insn.DST_ROW)
    max_pool_index_en = bits(14, 14, choice("values alone"), mode=True)
    pool_addr_mode = bits(17, 15, insn.ADDR_MOD)
    instr_mod19 = bits(19, 19, choice({1: "16 rows of 16 columns"}), mode=True)
    clear_dvalid = bits(23, 22, insn.RELEASED, mode=True)


@njit
def _mode_refused(s: Any, f: Any) -> Any:
    if f.max_pool_index_en or not f.instr_mod19:
        return refuse(s, _MODE, instr_mod19=f.instr_mod19, max_pool_index_en=f.max_pool_index_en)
    return 0


class GMPOOL(_Pool, opcode=0x33, formats="src"):
    """Column maxima of SrcA and Dst (GMPOOL, Wormhole ISA).

    The result goes to one row of Dst, the next three become zero; a row that is not valid counts
    as minus infinity.  Row i of SrcA is scaled by the exponent of datum i of a row of SrcB.
    """

    def execute(s: Any, t: Any, f: Any) -> Any:
        status = _mode_refused(s, f)
        return status or _pool(s, t, f.dst, f.pool_addr_mode, f.clear_dvalid, _ALL)


class GAPOOL(_Pool, opcode=0x34, formats="src", by_chance=operands.SUMS):
    """Matrix product of four SrcB rows with SrcA (GAPOOL, Wormhole ISA)."""

    def execute(s: Any, t: Any, f: Any) -> Any:
        status, rows = _mode_refused(s, f), np.int64(ROWS)
        return status or matmul.multiply(s, t, f.dst, f.pool_addr_mode, f.clear_dvalid, rows)


class MPOOL3S1(LegacyPool, opcode=0x24, **LEGACY):
    """Legacy max pool: GMPOOL as if SrcA were zero (MatrixUnit, Wormhole ISA)."""

    index_en = LegacyPool.index_en.meaning(choice("maxima alone"))

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.index_en:
            return refuse(s, _MODE, instr_mod19=1, max_pool_index_en=f.index_en)
        status = fields_refused(s, f.dst, f.pool_addr_mode, np.int64(0))
        return status or _pool(s, t, f.dst, f.pool_addr_mode, f.clear_dvalid, _ZERO)


class MPOOL3S2(LegacyPool, opcode=0x31, **LEGACY):
    """Legacy max pool: GMPOOL as if SrcA were zero (MatrixUnit, Wormhole ISA)."""

    index_en, execute = MPOOL3S1.index_en, MPOOL3S1.execute
