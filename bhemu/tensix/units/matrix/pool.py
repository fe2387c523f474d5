"""Matrix unit: pooling."""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.operand import choice
from bhemu.tensix import banks, dest, doubt, formats, rwc, tables
from bhemu.tensix.banks import SRCA, SRCB
from bhemu.tensix.dest import COLUMNS, LOW_HALF
from bhemu.tensix.insn import Instruction, Word, bits
from bhemu.tensix.quirks import refuse
from bhemu.tensix.status import UNSUPPORTED, error
from bhemu.tensix.units.matrix import conv, doubts, matmul, operands, pool_scaled, prepare
from bhemu.tensix.units.matrix.conv import LEGACY, LegacyPool
from bhemu.tensix.units.matrix.pool_scaled import DEPTH as _DEPTH
from bhemu.tensix.units.matrix.pool_scaled import ROWS as _ROWS

_MODE = error(
    "POOL-MODE",
    UNSUPPORTED,
    "pooling with instr_mod19 {instr_mod19}, max_pool_index_en {max_pool_index_en} is not modelled",
    "instr_mod19 must be 1 (16 x 16), max_pool_index_en 0",
)
_MAX_FORMATS = error(
    "GMPOOL-FORMATS",
    UNSUPPORTED,
    "GMPOOL is not specified for SrcA format {fmt_a} with SrcB format {fmt_b}",
    "both need exponents of the same size, and ALU_ACC_CTRL_INT8_math_enabled needs int8 in SrcA; "
    f"codes: {formats.CODES}",
)
_MAX_WIDE = error(
    "GMPOOL-FP16-WIDE",
    UNSUPPORTED,
    "GMPOOL of SrcA format {fmt}, with 5-bit exponents, into 32-bit Dst is not modelled",
    "the ISA text allows it, but the exponents of its model would turn 1.0 into 2^32: use 16-bit "
    "Dst or bf16",
)
_MAX_SCALE = error(
    "GMPOOL-SCALE",
    UNSUPPORTED,
    "a legacy max pool with {scale:#010x} in column {column} of its SrcB row: only 1.0 "
    "(0x3f800000) is modelled",
    "fill the row with 1.0; GMPOOL scales by the row's exponents",
)

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
        return pool_scaled.INT8 if fits else refuse(s, _MAX_FORMATS, fmt_a=a, fmt_b=b)
    if (formats.FIVE_BIT_DATUMS >> a) & (formats.FIVE_BIT_DATUMS >> b) & 1:
        return pool_scaled.FIVE_BIT
    if (operands.ELEMENT_B >> a) & (operands.ELEMENT_B >> b) & 1:
        return pool_scaled.TF32 if a == formats.TF32 else pool_scaled.BF16
    return refuse(s, _MAX_FORMATS, fmt_a=a, fmt_b=b)


@njit
def _scaled(s: Any, t: Any) -> Any:
    """(first column of the SrcB row that does not hold 1.0, what it holds), or (16, 0)."""
    scale = s.src[SRCB, s.matrix_bank[SRCB] & 1, s.rwc[t, rwc.SRCB] & 56]
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
    status = operands.src_rows_refused(s, t, _DEPTH) or operands.dst_row_refused(s, row, _ROWS)
    if status:
        return status
    if style == pool_scaled.FIVE_BIT and operands.wide_dst(s, t):
        return refuse(s, _MAX_WIDE, fmt=banks.format_a(s, t, SRCA))
    return rwc.addr_mod_refused(s, t, addr_mode)


@njit(forceinline=True)
def _key(v: Any) -> Any:
    """Orders sign-magnitude patterns as signed integers."""
    return _I(v ^ (_U(0x7FFFFFFF) if v >> _U(31) else _ZERO))


@njit
def _maxima(s: Any, best: Any, row: Any, mask: Any) -> None:
    """Replace `best` (16 patterns) by greater cells of 16 SrcA rows; denormals count as +0."""
    bank = s.matrix_bank[SRCA] & 1
    for i in range(_DEPTH):
        cells = s.src[SRCA, bank, (row + i) & 63]
        for j in range(COLUMNS):
            v = _U(cells[j] & mask)
            v = v if v & _U(0x7F800000) else _ZERO
            best[j] = v if _key(v) > _key(best[j]) else best[j]


@njit
def _pool_16(s: Any, row: Any, row_a: Any, mask: Any) -> None:
    best, cells = s.lane_tmp[0, :COLUMNS], s.dst[dest.row16(s, row)]
    fill = _ZERO if dest.valid16(s, row) else _ALL
    for j in range(COLUMNS):
        best[j] = _U(_U(dest.dec_bf16(_U(_U(cells[j]) | fill))) << _U(16))
    _maxima(s, best, row_a, mask)
    dest.spoil(s, row, np.int64(1))
    for j in range(COLUMNS):
        cells[j] = np.uint16(dest.enc_bf16(_U(best[j] >> _U(16))))
    dest.mark16(s, row, 1)
    for i in range(1, _ROWS):
        for j in range(COLUMNS):
            dest.write16(s, row + i, j, 0)


@njit
def _pool_32(s: Any, row: Any, row_a: Any, mask: Any) -> None:
    high_row = dest.adj32(row & (dest.ROWS - 1))
    best, high, low = s.lane_tmp[0, :COLUMNS], s.dst[high_row], s.dst[high_row + LOW_HALF]
    fill = _ZERO if s.dst_valid[high_row] else _ALL
    for j in range(COLUMNS):
        old = _U(_U(_U(_U(high[j]) << _U(16)) | _U(low[j])) | fill)
        best[j] = _U(_U(dest.dec_32(old)) & _TF32)
    _maxima(s, best, row_a, mask)
    for j in range(COLUMNS):
        high[j] = np.uint16(dest.enc_bf16(_U(best[j] >> _U(16))))
        low[j] = np.uint16(_U(best[j] & _U(0xFFFF)))
    s.dst_valid[high_row] = 1
    dest.written(s, high_row + LOW_HALF)
    for i in range(1, _ROWS):
        for j in range(COLUMNS):
            dest.write32(s, row + i, j, 0)


@njit
def _legacy_refused(s: Any, t: Any, as_float: Any, column: Any, scale: Any) -> Any:
    """The error of a legacy max pool that would scale, or has no 8-bit exponents."""
    if as_float:
        return refuse(s, _MAX_SCALE, scale=scale, column=column)
    return refuse(s, _MAX_FORMATS, fmt_a=banks.format_a(s, t, SRCA), fmt_b=banks.format_b(s, t))


@njit
def _doubts(s: Any, row: Any, rows: Any, wide: Any, cells: Any) -> Any:
    """Not 0 when the maxima that go to Dst row `row` are in doubt."""
    found = doubts.from_dst(s, row, 1, wide)
    if s.doubt[1] and cells != _ZERO:
        found |= doubts.from_pool(s, rows[0], rows[1])
    return found


@njit
def _pool(s: Any, t: Any, dst: Any, addr_mode: Any, clear_dvalid: Any, cells: Any) -> Any:
    """GMPOOL once its mode is known; `cells`: bits of SrcA cells that take part, besides format."""
    status = operands.dst_field_refused(s, dst, _ROWS) or operands.waits(s)
    if status:
        return status
    row = dst + s.rwc[t, rwc.DST] + rwc.dst_offset(s, t)
    status = _refused(s, t, addr_mode, row)
    if status:
        return status
    style, wide = _style_of(s, t), operands.wide_dst(s, t)
    as_float = style == pool_scaled.BF16 or style == pool_scaled.TF32
    column, scale = _scaled(s, t)
    scales = not as_float or column < COLUMNS
    if scales and cells == _ZERO:
        return _legacy_refused(s, t, as_float, column, scale)
    wide = wide if as_float else np.int64(style == pool_scaled.INT8)
    rows = (s.rwc[t, rwc.SRCA], s.rwc[t, rwc.SRCB] & 56)
    doubtful = _doubts(s, row, rows, wide, cells) if s.doubt[0] else np.int64(0)
    tf32 = style == pool_scaled.TF32
    mask = _U(prepare.mask_of(prepare.TF32 if tf32 else prepare.BF16) & cells)
    if scales:
        pool_scaled.pool(s, row, rows, style, wide)
    elif wide:
        _pool_32(s, row, rows[0], mask)
    else:
        _pool_16(s, row, rows[0], mask)
    if doubtful:
        doubt.note_result(s, t, row, np.int64(1), wide)
    return operands.finish(s, t, addr_mode, clear_dvalid)


class _Pool(Word):
    """Fields of pooling."""

    dst = bits(9, 0, tables.DST_ROW)
    max_pool_index_en = bits(14, 14, choice({0: "values alone"}), mode=True)
    pool_addr_mode = bits(17, 15, tables.ADDR_MOD)
    instr_mod19 = bits(19, 19, choice({1: "16 rows of 16 columns"}), mode=True)
    clear_dvalid = bits(23, 22, tables.RELEASED, mode=True)


class GMPOOL(_Pool, Instruction, opcode=0x33, unit="matrix", formats="src", dst_rows=_ROWS):
    """Column maxima of SrcA and Dst (GMPOOL, Wormhole ISA).

    The result goes to one row of Dst, the next three become zero; a row that is not valid counts
    as minus infinity.  Row i of SrcA is scaled by the exponent of datum i of a row of SrcB.
    """

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.max_pool_index_en or not f.instr_mod19:
            return refuse(
                s, _MODE, instr_mod19=f.instr_mod19, max_pool_index_en=f.max_pool_index_en
            )
        return _pool(s, t, f.dst, f.pool_addr_mode, f.clear_dvalid, _ALL)


class GAPOOL(
    _Pool,
    Instruction,
    opcode=0x34,
    unit="matrix",
    formats="src",
    dst_rows=_ROWS,
    by_chance=operands.SUMS,
):
    """Matrix product of four SrcB rows with SrcA (GAPOOL, Wormhole ISA)."""

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.max_pool_index_en or not f.instr_mod19:
            return refuse(
                s, _MODE, instr_mod19=f.instr_mod19, max_pool_index_en=f.max_pool_index_en
            )
        status = operands.dst_field_refused(s, f.dst, _ROWS)
        if status:
            return status
        return matmul.multiply(s, t, f.dst, f.pool_addr_mode, f.clear_dvalid, np.int64(_ROWS))


class MPOOL3S1(LegacyPool, Instruction, opcode=0x24, unit="matrix", **LEGACY):
    """Legacy max pool: GMPOOL as if SrcA were zero (MatrixUnit, Wormhole ISA)."""

    index_en = LegacyPool.index_en.meaning(choice({0: "maxima alone"}))

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.index_en:
            return refuse(s, _MODE, instr_mod19=1, max_pool_index_en=f.index_en)
        status = conv.fields_refused(s, f.dst, f.pool_addr_mode, np.int64(0))
        return status if status else _pool(s, t, f.dst, f.pool_addr_mode, f.clear_dvalid, _ZERO)


class MPOOL3S2(LegacyPool, Instruction, opcode=0x31, unit="matrix", **LEGACY):
    """Legacy max pool: GMPOOL as if SrcA were zero (MatrixUnit, Wormhole ISA)."""

    index_en = LegacyPool.index_en.meaning(choice({0: "maxima alone"}))

    execute = MPOOL3S1.execute
