"""Vector unit (SFPU): loads from and stores to Dst, immediates.

Lane l takes part in Dst row (base & ~3) + l/8, column 2*(l & 7) + base[1], where base is the sum of
the address field, RWC.Dst and the math offset.
"""

from typing import Any

import numpy as np

from bhemu.tensix import config, dest, formats, lanes, quirks, rwc
from bhemu.tensix import config_fields as cf
from bhemu.tensix.insn import Instruction, bits
from bhemu.tensix.quirks import refuse
from bhemu.tensix.status import DONE, UNIMPLEMENTED, UNSUPPORTED, error
from bhemu.tensix.subset import njit

_U = np.uint32
_ZERO, _ONE = _U(0), _U(1)
_HALF = _U(0xFFFF)
_UPPER = _U(0xFFFF0000)

_ODD_ADDRESS = error(
    "VECTOR-DST-ODD",
    UNIMPLEMENTED,
    "dest_reg_addr is {0}: bit 0 selects nothing",
    "use an even address",
)
_ODD_ROW = error(
    "VECTOR-DST-ROW",
    UNSUPPORTED,
    "Dst row {0} is odd: address field + RWC.Dst + DEST_TARGET_REG_CFG_MATH_Offset must be even",
    "check the Dst increment of the ADDR_MOD sections and of INCRWC",
)
_IMPLIED = error(
    "VECTOR-IMPLIED-FORMAT",
    UNIMPLEMENTED,
    "instr_mod0 0 takes the format from ALU_FORMAT_SPEC_REG1_SrcB, and format {0} has no model",
    "name the format in instr_mod0",
)

# instr_mod0, as SFPLOAD and SFPSTORE name their formats
_SRCB, _FP16, _BF16, _FP32, _INT32, _UINT16, _HI16 = 0, 1, 2, 3, 4, 6, 7
_LO16, _INT32_SM, _LO16_ONLY, _HI16_ONLY = 9, 12, 14, 15
_MODES_BOTH = (_SRCB, _BF16, _FP32, _INT32, _UINT16, _INT32_SM, _LO16_ONLY, _HI16_ONLY)
_LOAD_MODES = sum(1 << m for m in _MODES_BOTH)
_STORE_MODES = _LOAD_MODES | 1 << _HI16 | 1 << _LO16
_AS_BF16 = (formats.FP32, formats.BF16, formats.BFP8, formats.BFP4, formats.UINT16)
_LOAD_AS_BF16 = sum(1 << f for f in _AS_BF16)
_STORE_AS_BF16 = _LOAD_AS_BF16 | 1 << formats.BFP2
_WIDE = 1 << _FP32 | 1 << _INT32 | 1 << _HI16 | 1 << _LO16 | 1 << _INT32_SM  # 32-bit datums


@njit
def _mode(s: Any, t: Any, mod: Any, accepted: Any, as_bf16: Any) -> Any:
    """Concrete mode of instr_mod0, or an error."""
    if (accepted >> mod) & 1 == 0:
        return refuse(s, lanes.MODE_UNIMPLEMENTED, mod, 0)
    if mod != _SRCB:
        return mod
    b = config.bank(s, t)
    if config.get(s, b, cf.ALU_ACC_CTRL_SFPU_Fp32_enabled):
        return _FP32
    fmt = config.get(s, b, cf.ALU_FORMAT_SPEC_REG1_SrcB)
    if (as_bf16 >> fmt) & 1:
        return _BF16
    return _FP16 if fmt == formats.FP16 else refuse(s, _IMPLIED, fmt, 0)


@njit
def _refused(s: Any, t: Any, reg: Any, address: Any, row: Any, addr_mode: Any) -> Any:
    if reg >= lanes.TEMPLATES:
        return refuse(s, lanes.TEMPLATE_LOAD, reg, 0)
    if address & 1:
        return refuse(s, _ODD_ADDRESS, address, 0)
    if row & 1:
        return refuse(s, _ODD_ROW, row, 0)
    return rwc.addr_mod_refused(s, t, addr_mode)


@njit
def _high_half(s: Any, t: Any, mode: Any) -> Any:
    """True when mode 2 means the high half of a 32-bit datum (reference llk only)."""
    if mode != _BF16 or not quirks.follows_llk(s):
        return False
    return config.get(s, config.bank(s, t), cf.ALU_ACC_CTRL_SFPU_Fp32_enabled) != 0


@njit
def _valid_rows(s: Any, first: Any) -> Any:
    """Valid flags of four rows as uint32, bit j for row first + j."""
    flags = np.int64(0)
    for j in range(4):
        flags |= s.dst_valid[first + j] << j
    return _U(flags)


@njit
def _gather(s: Any, first: Any, shift: Any) -> None:
    """Scratch row = 16-bit cells of four rows, 0 where the row is not valid; shift 0 or 16."""
    out, pairs = s.lane_tmp[lanes.VALUE], lanes.column_pairs(s.dst)[first >> 2]
    valid = _valid_rows(s, first)
    for lane in range(lanes.LANES):
        cell = _U(_U(pairs[lane] >> _U(shift & _U(16))) & _HALF)
        out[lane] = cell if _U(_U(valid >> _U(lane >> 3)) & _ONE) != _ZERO else _ZERO


@njit
def _gather_wide(s: Any, first: Any, shift: Any) -> None:
    """As `_gather` for 32-bit cells whose high halves are in the four rows."""
    out, pairs = s.lane_tmp[lanes.VALUE], lanes.column_pairs(s.dst)
    high, low = pairs[first >> 2], pairs[(first + dest.LOW_HALF) >> 2]
    valid = _valid_rows(s, first)
    for lane in range(lanes.LANES):
        upper = _U(_U(high[lane] >> _U(shift & _U(16))) << _U(16))
        cell = _U(upper | _U(_U(low[lane] >> _U(shift & _U(16))) & _HALF))
        out[lane] = cell if _U(_U(valid >> _U(lane >> 3)) & _ONE) != _ZERO else _ZERO


@njit(inline="always")
def _widen_fp16(cell: Any) -> Any:
    sign = _U(_U(cell >> _U(15)) << _U(31))
    exponent = _U(cell & _U(31))
    exponent = _U(exponent + _U(112)) if exponent != _ZERO else _ZERO
    fraction = _U(_U(cell >> _U(5)) & _U(0x3FF))
    return _U(sign | _U(exponent << _U(23)) | _U(fraction << _U(13)))


@njit
def _decode(s: Any, mode: Any, reg: Any) -> None:
    """Scratch row from cells to the values that the lanes receive."""
    row, old = s.lane_tmp[lanes.VALUE], s.lreg[reg]
    if mode == _FP16:
        for lane in range(lanes.LANES):
            row[lane] = _widen_fp16(row[lane])
    elif mode == _BF16:
        for lane in range(lanes.LANES):
            row[lane] = _U(_U(dest.dec_bf16(row[lane])) << _U(16))
    elif mode == _LO16_ONLY:
        for lane in range(lanes.LANES):
            row[lane] = _U(_U(old[lane] & _UPPER) | row[lane])
    elif mode == _HI16_ONLY:
        for lane in range(lanes.LANES):
            row[lane] = _U(_U(row[lane] << _U(16)) | _U(old[lane] & _HALF))
    elif mode != _UINT16:
        for lane in range(lanes.LANES):
            row[lane] = _U(dest.dec_32(row[lane]))


class SFPLOAD(Instruction, opcode=0x70, unit="vector", stall="B8"):
    """Load 32 lanes from Dst (SFPLOAD, Blackhole ISA)."""

    dest_reg_addr = bits(9, 0)
    sfpu_addr_mode = bits(15, 13)
    instr_mod0 = bits(19, 16)
    lreg_ind = bits(23, 20)

    def execute(
        s: Any, t: Any, dest_reg_addr: Any, sfpu_addr_mode: Any, instr_mod0: Any, lreg_ind: Any
    ) -> Any:
        mode = _mode(s, t, instr_mod0, _LOAD_MODES, _LOAD_AS_BF16)
        if mode < 0:
            return mode
        row = rwc.dst_row(s, t, dest_reg_addr)
        status = _refused(s, t, lreg_ind, dest_reg_addr, row, sfpu_addr_mode)
        if status != DONE:
            return status
        if lreg_ind < lanes.WRITABLE:  # LReg 8-11: only the counters move
            first, wide = row & ~3, (_WIDE >> mode) & 1
            if wide or _high_half(s, t, mode):
                first = dest.adj32(first)
            shift = _U((row & 2) << 3)
            if wide:
                _gather_wide(s, first, shift)
            else:
                _gather(s, first, shift)
            _decode(s, mode, lreg_ind)
            lanes.write(s, lreg_ind)
        rwc.apply_addr_mod_sfpu(s, t, sfpu_addr_mode)
        return DONE


@njit(inline="always")
def _flushed(x: Any) -> Any:
    """Denormals as zeros of the same sign."""
    return _U(x & _U(0x80000000)) if _U(x & _U(0x7F800000)) == _ZERO else x


@njit(inline="always")
def _narrow_fp16(x: Any) -> Any:
    """fp16 cell of an fp32 pattern: truncated, saturated at the largest exponent, no denormals."""
    sign = _U(_U(x >> _U(31)) << _U(15))
    magnitude = _U(x & _U(0x7FFFFFFF))
    value = _U(_U(magnitude >> _U(13)) - _U(112 << 10)) if magnitude >= _U(113 << 23) else _ZERO
    value = value if magnitude < _U(144 << 23) else _U(0x7FFF)
    return _U(dest.enc_fp16(_U(sign | value)))


@njit
def _encode(s: Any, mode: Any, reg: Any) -> None:
    """Scratch row = the cells that store LReg[reg]."""
    out, value = s.lane_tmp[lanes.VALUE], s.lreg[reg]
    if mode == _FP16:
        for lane in range(lanes.LANES):
            out[lane] = _narrow_fp16(value[lane])
    elif mode == _BF16:
        for lane in range(lanes.LANES):
            out[lane] = _U(dest.enc_bf16(_U(_flushed(value[lane]) >> _U(16))))
    elif mode == _FP32:
        for lane in range(lanes.LANES):
            out[lane] = _U(dest.enc_32(_flushed(value[lane])))
    elif mode in (_INT32, _INT32_SM):
        for lane in range(lanes.LANES):
            out[lane] = _U(dest.enc_32(value[lane]))
    elif mode == _LO16:
        for lane in range(lanes.LANES):
            out[lane] = _U(_U(value[lane] << _U(16)) | _U(value[lane] >> _U(16)))
    elif mode == _HI16_ONLY:
        for lane in range(lanes.LANES):
            out[lane] = _U(value[lane] >> _U(16))
    else:  # raw low half, or all 32 bits
        for lane in range(lanes.LANES):
            out[lane] = value[lane]


@njit
def _scatter(s: Any, first: Any, column: Any, half: Any) -> None:
    """Bits [half + 15 : half] of the scratch row into one column parity of four rows, masked.

    `column` = 0 for the even columns, 16 for the odd ones.
    """
    new, flags, on = s.lane_tmp[lanes.VALUE], s.cc, lanes.unmasked(s)
    pairs, keep = lanes.column_pairs(s.dst)[first >> 2], _U(_UPPER >> column)
    for lane in range(lanes.LANES):
        cell = _U(_U(_U(new[lane] >> _U(half & _U(16))) & _HALF) << _U(column & _U(16)))
        take = _U(flags[lane] | on) != _ZERO
        pairs[lane] = _U(_U(pairs[lane] & keep) | cell) if take else pairs[lane]


@njit
def _mark(s: Any, first: Any) -> None:
    """A row becomes valid as soon as one of its lanes is stored, whatever the others hold."""
    for j in range(4):
        if s.dst_valid[first + j] == 0:
            stored = lanes.unmasked(s)
            for k in range(8):
                stored |= s.cc[8 * j + k]
            if stored != _ZERO:
                s.dst_valid[first + j] = 1


class SFPSTORE(Instruction, opcode=0x72, unit="vector", stall="B8"):
    """Store 32 lanes to Dst (SFPSTORE, Blackhole ISA)."""

    dest_reg_addr = bits(9, 0)
    sfpu_addr_mode = bits(15, 13)
    instr_mod0 = bits(19, 16)
    lreg_ind = bits(23, 20)

    def execute(
        s: Any, t: Any, dest_reg_addr: Any, sfpu_addr_mode: Any, instr_mod0: Any, lreg_ind: Any
    ) -> Any:
        mode = _mode(s, t, instr_mod0, _STORE_MODES, _STORE_AS_BF16)
        if mode < 0:
            return mode
        row = rwc.dst_row(s, t, dest_reg_addr)
        status = _refused(s, t, lreg_ind, dest_reg_addr, row, sfpu_addr_mode)
        if status != DONE:
            return status
        first, wide = row & ~3, (_WIDE >> mode) & 1
        if wide or _high_half(s, t, mode):
            first = dest.adj32(first)
        column = _U((row & 2) << 3)
        _encode(s, mode, lreg_ind)
        if wide:
            _scatter(s, first + dest.LOW_HALF, column, _ZERO)
            _scatter(s, first, column, _U(16))
        else:
            _scatter(s, first, column, _ZERO)
        _mark(s, first)
        rwc.apply_addr_mod_sfpu(s, t, sfpu_addr_mode)
        return DONE


@njit
def _immediate(mod: Any, imm: Any) -> Any:
    """Bits that SFPLOADI writes (int64), or -1 for an undefined mode."""
    if mod in (0, 8):  # bf16, upper half
        return imm << 16
    if mod == 1:  # fp16, exponent widened without special cases
        return ((imm & 0x8000) << 16) | (((imm & 0x7FFF) + (112 << 10)) << 13)
    if mod in (2, 10):  # unsigned, lower half
        return imm
    if mod == 4:  # signed
        return imm | ((imm >> 15) * 0xFFFF0000)
    return -1


class SFPLOADI(Instruction, opcode=0x71, unit="vector", stall="B8"):
    """Load an immediate into all enabled lanes (SFPLOADI, Blackhole ISA)."""

    imm16 = bits(15, 0)
    instr_mod0 = bits(19, 16)
    lreg_ind = bits(23, 20)

    def execute(s: Any, t: Any, imm16: Any, instr_mod0: Any, lreg_ind: Any) -> Any:
        if lreg_ind >= lanes.WRITABLE:
            return refuse(s, lanes.NOT_WRITABLE, lreg_ind, 0)
        value = _immediate(instr_mod0, imm16)
        if value < 0:
            return refuse(s, lanes.MODE_UNDEFINED, instr_mod0, 0)
        keep = _HALF if instr_mod0 == 8 else (_UPPER if instr_mod0 == 10 else _ZERO)
        new, on = _U(value), lanes.unmasked(s)
        out, flags = s.lreg[lreg_ind], s.cc
        for lane in range(lanes.LANES):
            take = _U(flags[lane] | on) != _ZERO
            out[lane] = _U(_U(out[lane] & keep) | new) if take else out[lane]
        return DONE
