"""SFPLOAD and SFPSTORE, and the datum formats of Dst as lanes see them."""

from typing import Any

import numpy as np

from bhemu.bits import number
from bhemu.jit.subset import njit
from bhemu.tensix import config, dest, formats, lanes, rules, spaces, unspecified
from bhemu.tensix import config_fields as cf
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.insn import Instruction, bits
from bhemu.tensix.rules import DONE, MISSING, UB, UNIMPLEMENTED, UNSUPPORTED, error, refuse
from bhemu.tensix.spaces import LANES, lreg
from bhemu.tensix.state import column_pairs
from bhemu.tensix.units import counters
from bhemu.tensix.units.vector import sfpu
from bhemu.tensix.units.vector.sfpu import LOAD, LREG, STORE, WIDE_ADDRESS, DstAccess, Sfpu

# Datums of Dst on their way to and from the lanes.
#
# Lane l takes part in Dst row (base & ~3) + l/8, column 2*(l & 7) + base[1], where base is the sum
# of the address field, RWC.Dst and the math offset.  Source: SFPLOAD and SFPSTORE, Blackhole ISA.

_U = np.uint32
_ZERO, _ONE = _U(0), _U(1)
_HALF = _U(0xFFFF)
_UPPER = _U(0xFFFF0000)

_IMPLIED = error("VECTOR-IMPLIED-FORMAT", UB, "instr_mod0 0 takes the format from the configuration, and {fmt} is no format", "name the format in instr_mod0, or set ALU_FORMAT_SPEC_REG1_SrcB")  # fmt: skip
_STACK = error("VECTOR-STACK", MISSING, "instr_mod0 10 (INT32_ALL) addresses Dst through the RWC Sp: the ISA text tells neither its width nor what resets it", "use instr_mod0 4 and the Dst counter")  # fmt: skip
_STACK_BASE = error("VECTOR-STACK-BASE", MISSING, "DEST_SP_BASE_Base is {base:#x}: its low two bits are added to the RWC Sp, which has no model", "leave DEST_SP_BASE_Base 0")  # fmt: skip

# instr_mod0, as SFPLOAD and SFPSTORE name their formats
_SRCB, _FP16, _BF16, _FP32, _INT32, _INT8, _UINT16, _HI16, _INT16, _LO16 = range(10)
_ZEROS, _INT32_SM, _INT8_COMP, _LO16_ONLY, _HI16_ONLY = 11, 12, 13, 14, 15
_INT32_ALL = 10

_AS_BF16 = (formats.FP32, formats.TF32, formats.BF16, formats.BFP8, formats.BFP4, formats.BFP2)
_IMPLY_BF16 = sum(1 << f for f in (*_AS_BF16, formats.INT32, formats.UINT16))
_NO_FORMAT = 1 << 12 | 1 << 13
_WIDE_LOAD = 1 << _FP32 | 1 << _INT32 | 1 << _INT32_SM  # 32-bit datums
_WIDE_STORE = _WIDE_LOAD | 1 << _HI16 | 1 << _LO16


@njit
def concrete_mode(s: Any, t: Any, mod: Any) -> Any:
    """Concrete mode of the instr_mod0 of an SFPLOAD or SFPSTORE, 0 as configured, or an error."""
    b = config.bank(s, t)
    base = config.get(s, b, cf.DEST_SP_BASE_Base)
    if base & 3:
        return refuse(s, _STACK_BASE, base=base)
    if mod == _INT32_ALL:
        return _STACK
    if mod != _SRCB:
        return mod
    if config.get(s, b, cf.ALU_ACC_CTRL_SFPU_Fp32_enabled):
        return _FP32
    fmt = config.get(s, b, cf.ALU_FORMAT_SPEC_REG1_SrcB)
    if config.get(s, b, cf.ALU_FORMAT_SPEC_REG_SrcB_override):
        fmt = config.get(s, b, cf.ALU_FORMAT_SPEC_REG_SrcB_val)
    if config.thread(s, t, tf.SFPU_DEST_FMT_Enable):
        fmt = config.thread(s, t, tf.SFPU_DEST_FMT_Base)
    if (_NO_FORMAT >> fmt) & 1:
        return refuse(s, _IMPLIED, fmt=fmt)
    return _BF16 if (_IMPLY_BF16 >> fmt) & 1 else _FP16


@njit
def _valid_rows(s: Any, first: Any) -> Any:
    """Valid flags of four rows as uint32, bit j for row first + j."""
    flags = np.int64(0)
    for j in range(4):
        flags |= (s.dst_valid[first + j] & 1) << j
    return _U(flags)


@njit
def _decode(s: Any, mode: Any, reg: Any) -> None:
    """Scratch row from cells to the values that the lanes receive."""
    row, old = s.lane_tmp[lanes.VALUE], s.lreg[reg & 15]
    if mode == _FP16:
        for lane in range(lanes.LANES):
            cell = row[lane]
            sign = _U(_U(cell >> _U(15)) << _U(31))
            exponent = _U(cell & _U(31))
            exponent = _U(exponent + _U(112)) if exponent != _ZERO else _ZERO
            fraction = _U(_U(cell >> _U(5)) & _U(0x3FF))
            row[lane] = _U(sign | _U(exponent << _U(23)) | _U(fraction << _U(13)))
    elif mode == _BF16:
        for lane in range(lanes.LANES):
            row[lane] = _U(_U(dest.dec_bf16(row[lane])) << _U(16))
    elif mode == _LO16_ONLY:
        for lane in range(lanes.LANES):
            row[lane] = _U(_U(old[lane] & _UPPER) | row[lane])
    elif mode == _HI16_ONLY:
        for lane in range(lanes.LANES):
            row[lane] = _U(_U(row[lane] << _U(16)) | _U(old[lane] & _HALF))
    elif (_WIDE_LOAD >> mode) & 1:
        for lane in range(lanes.LANES):
            row[lane] = _U(dest.dec_32(row[lane]))
    elif mode != _UINT16 and mode != _LO16:
        # Sign-magnitude integers, the upper half alone, zeros (ISA text only)
        left = _U(16 if mode == _HI16 else 0)
        right, keep = _U(0 if mode == _INT16 or mode == _HI16 else 5), _U(0x7FFF)
        if mode == _INT8 or mode == _INT8_COMP:
            keep = _U(0xFF if mode == _INT8 else 0x3FF)
        keep = _HALF if mode == _HI16 else (_ZERO if mode == _ZEROS else keep)
        sign = _ZERO if mode == _HI16 or mode == _ZEROS else _U(0x8000)
        for lane in range(lanes.LANES):
            magnitude = _U(_U(row[lane] >> right) & keep)
            row[lane] = _U(_U(magnitude << left) | _U(_U(row[lane] & sign) << _U(16)))


@njit
def _first_row(s: Any, t: Any, mode: Any, row: Any, wide: Any) -> Any:
    """Storage row of the first of four Dst rows; of a 32-bit datum that of the high half."""
    first = row & ~3
    if mode == _BF16 and rules.follows_llk(s):  # then the high half of a 32-bit datum
        wide |= config.get(s, config.bank(s, t), cf.ALU_ACC_CTRL_SFPU_Fp32_enabled)
    return dest.adj32(first) if wide or dest.halves(s) else first


@njit
def collide(s: Any, t: Any, load: Any, load_row: Any, store: Any, store_row: Any) -> Any:
    """True when a load and a store (concrete modes, Dst rows) touch a common cell."""
    if (load_row ^ store_row) & 2:
        return False
    wide_load, wide_store = (_WIDE_LOAD >> load) & 1, (_WIDE_STORE >> store) & 1
    x = _first_row(s, t, load, load_row, wide_load)
    y = _first_row(s, t, store, store_row, wide_store)
    same = x == y or (wide_load and x + dest.LOW_HALF == y)
    return same or ((wide_store or dest.halves(s)) and y + dest.LOW_HALF == x)


# Doubt of Dst datums (tensix/unspecified.py) on its way to the lanes of the vector unit and back.
#
# Lane 8 j + k takes part in the row j of four, in column 2 k, or 2 k + 1 where `odd` is not 0.

_VALID = 7  # of a row's flag: what says whether it is valid and wholly written
_ROW = 0xFF  # lanes of a row


@njit
def _to_lanes(mask: Any, odd: Any) -> Any:
    """Doubt of the columns of a row, as marks of lanes 0 to 7."""
    marks, first = np.int64(0), 1 if odd else 0
    for k in range(8):
        cell = mask >> (2 * k + first)
        marks |= (cell & 1) << k | (cell >> 16 & 1) << (32 + k)
    return marks


@njit
def _to_columns(marks: Any, odd: Any) -> Any:
    """The other way round."""
    mask, first = np.int64(0), 1 if odd else 0
    for k in range(8):
        lane = marks >> k
        mask |= ((lane & 1) | (lane >> 32 & 1) << 16) << (2 * k + first)
    return mask


@njit
def _hold_stored(s: Any, first: Any, odd: Any, wide: Any, marks: Any) -> Any:
    """Before a store to four rows and those below: their doubt after it, in scratch.

    `marks`: of what is stored.  Scratch 0-3: the four rows, 4-7: those below.  DONE, or an error.
    """
    on, flags = unspecified.enabled(s), unspecified.of_flags(s)
    unsure = unspecified.spread(flags)
    stored = (marks & (on | unsure)) | flags
    low = stored if wide else (flags if dest.halves(s) else np.int64(0))
    for j in range(4):
        at = first + j
        # Open lanes decide whether the row is valid, and the one below written.
        settled = s.dst_valid[at] & _VALID == 1
        settled = settled and s.dst_valid[at + dest.LOW_HALF * wide] & _VALID <= 1
        if not settled and unspecified.is_open(s, np.int64(_ROW) << (8 * j)):
            return unspecified.open_refused(s)
        written = _to_columns((on & ~unsure) >> (8 * j), odd)
        unspecified.hold(s, j, at, written)
        unspecified.hold(s, 4 + j, at + dest.LOW_HALF, written if wide else 0)
        s.doubt_row[8 + j] = _to_columns(stored >> (8 * j), odd)
        s.doubt_row[12 + j] = _to_columns(low >> (8 * j), odd)
    return np.int64(DONE)


@njit
def doubtful(s: Any, t: Any, mode: Any, row: Any, reg: Any) -> Any:
    """Marks of the lanes that LReg[reg] would receive from Dst row `row`."""
    if mode == _ZEROS:
        return np.int64(0)
    wide = (_WIDE_LOAD >> mode) & 1
    first = _first_row(s, t, mode, row, wide)
    odd = row & 2
    marks = np.int64(0)
    for j in range(4):
        mask = unspecified.of_datums(s, first + j, wide)
        marks |= _to_lanes(mask, odd) << (8 * j) if mask else np.int64(0)
    half = mode == _LO16_ONLY or mode == _HI16_ONLY
    return marks | unspecified.of(s, reg & 15) if half else marks


WIDE = dest.ROWS  # of first_of_storage


@njit
def first_of_storage(s: Any, t: Any, mod: Any, row: Any, stores: Any) -> Any:
    """The first of four rows of storage that an SFPLOAD or SFPSTORE (`stores` 1) touches.

    WIDE more: also the four that are LOW_HALF below. -1: its mode is refused.
    """
    mode = concrete_mode(s, t, mod)
    if mode < 0:
        return np.int64(-1)
    wide = ((_WIDE_STORE if stores else _WIDE_LOAD) >> mode) & 1
    return np.int64(_first_row(s, t, mode, row, wide) + WIDE * wide)


@njit
def load_rows(s: Any, t: Any, mode: Any, row: Any, reg: Any) -> None:
    """LReg[reg] (0-7) = the 32 datums of Dst row `row` (0-1023) in the enabled lanes."""
    if s.doubt[0]:
        lanes.mark(s, reg, doubtful(s, t, mode, row, reg))
    wide = (_WIDE_LOAD >> mode) & 1
    first = _first_row(s, t, mode, row, wide)
    shift = _U((row & 2) << 3)
    if wide:
        out, pairs = s.lane_tmp[lanes.VALUE], column_pairs(s)
        high, low = pairs[(first >> 2) & 255], pairs[((first + dest.LOW_HALF) >> 2) & 255]
        valid = _valid_rows(s, first)
        for lane in range(lanes.LANES):
            upper = _U(_U(high[lane] >> _U(shift & _U(16))) << _U(16))
            cell = _U(upper | _U(_U(low[lane] >> _U(shift & _U(16))) & _HALF))
            out[lane] = cell if _U(_U(valid >> _U(lane >> 3)) & _ONE) != _ZERO else _ZERO
    else:
        # Scratch row = 16-bit cells of four rows, 0 where the row is not valid; shift 0 or 16.
        out, pairs = s.lane_tmp[lanes.VALUE], column_pairs(s)[(first >> 2) & 255]
        valid = _valid_rows(s, first)
        for lane in range(lanes.LANES):
            cell = _U(_U(pairs[lane] >> _U(shift & _U(16))) & _HALF)
            out[lane] = cell if _U(_U(valid >> _U(lane >> 3)) & _ONE) != _ZERO else _ZERO
    _decode(s, mode, reg)
    lanes.write(s, reg)


@njit
def _encode(s: Any, mode: Any, value: Any) -> None:
    """Scratch row = the cells that store `value`, (32,) uint32."""
    out = s.lane_tmp[lanes.VALUE]
    if mode == _FP16:
        for lane in range(lanes.LANES):
            # Truncated, saturated at the largest exponent, no denormals.
            x = value[lane]
            sign = _U(_U(x >> _U(31)) << _U(15))
            size = _U(x & _U(0x7FFFFFFF))
            half = _U(_U(size >> _U(13)) - _U(112 << 10)) if size >= _U(113 << 23) else _ZERO
            half = half if size < _U(144 << 23) else _U(0x7FFF)
            out[lane] = _U(dest.enc_fp16(_U(sign | half)))
    elif mode == _BF16:
        for lane in range(lanes.LANES):
            out[lane] = _U(dest.enc_bf16(_U(_U(formats.flush_32(value[lane])) >> _U(16))))
    elif mode == _FP32:
        for lane in range(lanes.LANES):
            out[lane] = _U(dest.enc_32(_U(formats.flush_32(value[lane]))))
    elif (_WIDE_LOAD >> mode) & 1:  # integers
        for lane in range(lanes.LANES):
            out[lane] = _U(dest.enc_32(value[lane]))
    elif mode == _LO16:
        for lane in range(lanes.LANES):
            out[lane] = _U(_U(value[lane] << _U(16)) | _U(value[lane] >> _U(16)))
    elif mode == _HI16_ONLY:
        for lane in range(lanes.LANES):
            out[lane] = _U(value[lane] >> _U(16))
    else:  # raw low half, or all 32 bits, or one of the rare
        for lane in range(lanes.LANES):
            out[lane] = value[lane]
        if mode != _UINT16 and mode != _HI16 and mode != _LO16_ONLY:
            # Integers of 11 and 16 bits in sign-magnitude, zeros (ISA text only)
            narrow = mode != _INT16
            left, keep = _U(5 if narrow else 0), _U(0x3FF if narrow else 0x7FFF)
            fixed = _U(16 if narrow else 0)  # exponent field of "integer 8"
            for lane in range(lanes.LANES):
                sign = _U(_U(out[lane] >> _U(31)) << _U(15))
                cell = _U(_U(sign | fixed) | _U(_U(out[lane] & keep) << left))
                out[lane] = _ZERO if mode == _ZEROS else cell


@njit
def _scatter(s: Any, first: Any, column: Any, half: Any) -> None:
    """Bits [half + 15 : half] of the scratch row into one column parity of four rows, masked.

    `column` = 0 for the even columns, 16 for the odd ones.
    """
    new, flags, on = s.lane_tmp[lanes.VALUE], s.cc, lanes.unmasked(s)
    pairs, keep = column_pairs(s)[(first >> 2) & 255], _U(_UPPER >> column)
    for lane in range(lanes.LANES):
        cell = _U(_U(_U(new[lane] >> _U(half & _U(16))) & _HALF) << _U(column & _U(16)))
        old = pairs[lane]
        pairs[lane] = _U(_U(old & keep) | cell) if _U(flags[lane] | on) != _ZERO else old


@njit
def store_rows(s: Any, t: Any, mode: Any, row: Any, reg: Any) -> Any:
    """Dst row `row` (0-1023) and the next three = LReg[reg] (0-16) in the enabled lanes.

    DONE, or the error of what doubtful lanes would decide.
    """
    wide = (_WIDE_STORE >> mode) & 1
    first = _first_row(s, t, mode, row, wide)
    column = _U((row & 2) << 3)
    if s.doubt[0]:
        marks = np.int64(0) if mode == _ZEROS else unspecified.of(s, unspecified.of_lreg(reg))
        status = _hold_stored(s, first, row & 2, wide, marks)
        if status != DONE:
            return status
    _encode(s, mode, s.lreg16[0] if reg == lanes.BONUS else s.lreg[reg & 15])
    if wide:
        _scatter(s, first + dest.LOW_HALF, column, _ZERO)
        _scatter(s, first, column, _U(16))
    else:
        _scatter(s, first, column, _ZERO)
        if dest.halves(s):
            # What a 16-bit store to four rows does to their low halves.
            if not rules.follows_llk(s):
                s.lane_tmp[lanes.VALUE, : lanes.LANES] = _U(dest.UNPREDICTABLE)
                _scatter(s, first + dest.LOW_HALF, column, _ZERO)
            for j in range(4):
                if not dest.keeps_low(s, first + j):
                    s.dst_valid[first + dest.LOW_HALF + j] = dest.UNWRITTEN
            dest.note_kept(s)
    # A row becomes valid as soon as one of its lanes is stored, whatever the others hold; for
    # readers of the written rows the row `below` rows further on too.
    below = dest.LOW_HALF * wide
    for j in range(4):
        if s.dst_valid[first + j] != 1 or s.dst_valid[first + below + j] == dest.UNWRITTEN:
            stored = lanes.unmasked(s)
            for k in range(8):
                stored |= s.cc[8 * j + k]
            if stored != _ZERO:
                s.dst_valid[first + j] = 1
                dest.written(s, first + below + j)
    if s.doubt[0]:
        # After that: what `_hold_stored` left is the doubt of the rows.
        for i in range(8):
            at = first + (i & 3) + (i >> 2) * dest.LOW_HALF
            if s.doubt_row[8 + i]:
                s.doubt_row[i] |= s.doubt_row[8 + i]
                s.dst_doubt_pc[at] = s.gate_pc[t]
            unspecified.settle(s, i, at)
    return DONE


_ABOVE = 0x1C00  # the rest of tt-llk's 13-bit address: negative ones count modulo 1024

_ODD_ADDRESS = error("VECTOR-DST-ODD", UNIMPLEMENTED, "dest_reg_addr is {address}: bit 0 selects nothing", "use an even address")  # fmt: skip
_ODD_ROW = error("VECTOR-DST-ROW", UNSUPPORTED, "Dst row {row} is odd: address field + RWC.Dst + DEST_TARGET_REG_CFG_MATH_Offset must be even", "check the Dst increment of the ADDR_MOD sections and of INCRWC")  # fmt: skip


@njit
def _mode(s: Any, t: Any, f: Any, row: Any) -> Any:
    """Concrete mode of a load or store, or an error."""
    mode = concrete_mode(s, t, f.instr_mod0)
    if mode < 0:
        return mode
    if f.lreg_ind >= lanes.TEMPLATES:
        return refuse(s, lanes.TEMPLATE_LOAD, dest=f.lreg_ind)
    if f.dest_reg_addr & 1:
        return refuse(s, _ODD_ADDRESS, address=f.dest_reg_addr)
    if row & 1:
        return refuse(s, _ODD_ROW, row=row)
    status = counters.addr_mod_refused(s, t, f.sfpu_addr_mode)
    return status if status else mode


class SFPLOAD(
    DstAccess, opcode=0x70, unread=_ABOVE, macro=WIDE_ADDRESS, facts=Sfpu(LOAD), formats="sfpu"
):
    """Load 32 lanes from Dst (SFPLOAD, Blackhole ISA)."""

    reads = spaces.dst("dest_reg_addr", 4) | sfpu.DST_ACCESS
    writes = lreg("lreg_ind", keeps="instr_mod0 > 13") | spaces.RWC

    instr_mod0 = DstAccess.instr_mod0.meaning(sfpu.LOADED)

    def execute(s: Any, t: Any, f: Any) -> Any:
        row = counters.dst_row(s, t, f.dest_reg_addr)
        mode = _mode(s, t, f, row)
        if mode < 0:
            return mode
        if f.lreg_ind < lanes.WRITABLE:  # LReg 8-11: only the counters move
            load_rows(s, t, mode, row, f.lreg_ind)
        counters.apply_addr_mod_sfpu(s, t, f.sfpu_addr_mode)
        return DONE


class SFPSTORE(
    DstAccess,
    opcode=0x72,
    unread=_ABOVE,
    macro=WIDE_ADDRESS,
    facts=Sfpu(STORE, notices="stored"),
    formats="sfpu",
):
    """Store 32 lanes to Dst; floats are cut to 16 bits, not rounded (SFPSTORE, Blackhole ISA)."""

    reads = lreg("lreg_ind") | sfpu.DST_ACCESS
    writes = spaces.ALL_DST | spaces.RWC

    instr_mod0 = DstAccess.instr_mod0.meaning(sfpu.STORED)

    def execute(s: Any, t: Any, f: Any) -> Any:
        row = counters.dst_row(s, t, f.dest_reg_addr)
        mode = _mode(s, t, f, row)
        if mode < 0:
            return mode
        status = store_rows(s, t, mode, row, f.lreg_ind)
        if status == DONE:
            counters.apply_addr_mod_sfpu(s, t, f.sfpu_addr_mode)
        return status


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


class SFPLOADI(Instruction, opcode=0x71, unit="vector", facts=Sfpu(LOAD)):
    """Load an immediate into all enabled lanes (SFPLOADI, Blackhole ISA)."""

    reads = LANES
    writes = lreg("lreg_ind", keeps="instr_mod0 & 8")

    imm16 = bits(15, 0, number("immediate of 16 bits"))
    instr_mod0 = bits(19, 16, mode=True).meaning("""what the immediate is
        0: bf16
        1: fp16
        2: unsigned
        4: signed
        8: high half of the LReg, the low one stays
        10: low half of the LReg, the high one stays""")
    lreg_ind = bits(23, 20, LREG)

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.lreg_ind >= lanes.WRITABLE:
            return refuse(s, lanes.NOT_WRITABLE, dest=f.lreg_ind)
        value = _immediate(f.instr_mod0, f.imm16)
        if value < 0:
            return refuse(s, lanes.MODE_UNDEFINED, mode=f.instr_mod0)
        keep = _HALF if f.instr_mod0 == 8 else (_UPPER if f.instr_mod0 == 10 else _ZERO)
        old, out, new = s.lreg[f.lreg_ind & 15], s.lane_tmp[lanes.VALUE], _U(value)
        for lane in range(lanes.LANES):
            out[lane] = _U(_U(old[lane] & keep) | new)
        return lanes.write(s, f.lreg_ind)
