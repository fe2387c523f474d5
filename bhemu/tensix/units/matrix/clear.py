"""Matrix unit: clears, row counters and bank hand-over."""

from typing import Any

import numpy as np

from bhemu.bits import choice, flags, number
from bhemu.jit.subset import njit
from bhemu.tensix import banks, config, dest, insn, rules, spaces, unspecified
from bhemu.tensix import config_fields as cf
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.insn import Argument, Instruction, bits
from bhemu.tensix.spaces import Kind
from bhemu.tensix.units import counters

ONE_ROW, SIXTEEN_ROWS, HALF, ALL = 0, 1, 2, 3  # ZEROACC clear_mode

_REVERT = rules.error("ZEROACC-REVERT", rules.UB, "ZEROACC with clear_zero_flags in clear_mode {clear_mode}, use_32_bit_mode {use_32_bit_mode}, marks rows as valid", "clear_zero_flags is safe only with clear_mode 1 and use_32_bit_mode 1")  # fmt: skip
_ONE_ROW_RANGE = rules.error("ZEROACC-ROW", rules.UNIMPLEMENTED, "ZEROACC of one row: row {row} (where + RWC.Dst + math offset) is beyond row 1023", "keep the sum below 1024")  # fmt: skip
_ONE_ROW_INT8 = rules.error("ZEROACC-INT8", rules.UNIMPLEMENTED, "ZEROACC of one row with ALU_ACC_CTRL_INT8_math_enabled is not modelled", "clear 16 rows instead")  # fmt: skip
_ONE_ROW_WIDE = rules.error("ZEROACC-ROW-32", rules.UNSUPPORTED, "ZEROACC of one row (where {where}) with use_32_bit_mode is not modelled", "ALU_ACC_CTRL_Fp32_enabled selects 32-bit rows in this mode")  # fmt: skip
_BLOCK_RANGE = rules.error("ZEROACC-WHERE", rules.NCB, "ZEROACC clear_mode {clear_mode} with where = {where} (after the offset) names no part of Dst", "16 rows: below 64, or 32 in 32-bit mode; half: 0 or 1; all: 0")  # fmt: skip
_ZEROSRC_MODE = rules.error("ZEROSRC-MODE", rules.UNSUPPORTED, "ZEROSRC with src_mask {src_mask}, write_mode << 1 | bank_mask {others:#x} is not modelled", "use src_mask 3, bank_mask 1, write_mode 0, or bank_mask 0, write_mode 1")  # fmt: skip
_ZEROSRC_VALUE = rules.error("ZEROSRC-VALUE", rules.UNSUPPORTED, "ZEROSRC with zero_val 1 (minus infinity into SrcA) is not modelled", "use UNPACR_NOP with src_clr_val 1")  # fmt: skip
_CLEARDVALID_RESET = rules.error("CLEARDVALID-RESET", rules.UNSUPPORTED, "CLEARDVALID with reset {reset} (cleardvalid {cleardvalid}) is not modelled: it can lose Src banks", "use reset 0 and name the banks in cleardvalid")  # fmt: skip
_SETRWC_CR = rules.error("SETRWC-CR", rules.UNSUPPORTED, "SETRWC with rwc_cr {rwc_cr:#x}, bit_mask {bit_mask:#x}: C_TO_CR, or SrcA/SrcB CR without its mask bit", "rwc_cr 0-7; set the bit of bit_mask for each counter in rwc_cr bits 0 and 1")  # fmt: skip
_INCRWC_CR = rules.error("INCRWC-CR", rules.UNSUPPORTED, "INCRWC with rwc_cr {rwc_cr:#x}: only Dst (4) can start from its CR value", "use rwc_cr 0 or 4")  # fmt: skip


@njit
def _block(s: Any, t: Any, where: Any, wide: Any) -> Any:
    """Block of 16 rows that `where` names: unless absolute_tile_mode, in the half of the offset."""
    if config.get(s, config.bank(s, t), cf.DEST_ACCESS_CFG_zeroacc_absolute_tile_mode):
        return where
    offset = config.thread(s, t, tf.DEST_TARGET_REG_CFG_MATH_Offset) + s.rwc[t, counters.DST]
    if wide:
        return where + 16 if offset & 768 else where
    return where + 32 if offset & 512 else where


@njit
def _flag(s: Any, row: Any, valid: Any) -> None:
    # A row that becomes valid again holds what it held, doubtful cells among it.
    if s.dst_valid[row] and s.dst_valid[row] & unspecified.DOUBT == 0:
        s.dst_doubt[row] = np.uint32(0)
    back = unspecified.DOUBT if s.doubt[0] and s.dst_doubt[row] and s.dst_valid[row] == 0 else 0
    s.dst_valid[row] = s.dst_valid[row] | back | 1 if valid else 0


@njit
def _flag_halves(s: Any, first: Any, halves: Any, valid: Any) -> None:
    # A function of its own: LLVM vectorizes this loop, and does not where `execute` holds it.
    for row in range(first * (dest.ROWS // 2), (first + halves) * (dest.ROWS // 2)):
        _flag(s, row & (dest.ROWS - 1), valid)


class ZEROACC(Instruction, opcode=0x10, unit="matrix", formats="dst"):
    """Mark rows of Dst as zero (ZEROACC, Wormhole ISA).

    Blackhole adds the offset of the math half to a block of 16 rows; with clear_zero_flags the
    rows become valid instead.
    """

    reads = spaces.DST_ROW | spaces.ADDR_MODS | spaces.cfg("ALU_ACC_CTRL_*", "DEST_ACCESS_CFG_*")
    writes = spaces.ALL_DST | spaces.RWC

    where = bits(9, 0, number("row, block of 16 rows or half of Dst, by clear_mode"))
    addr_mode = bits(16, 14, insn.ADDR_MOD)
    clear_zero_flags = bits(
        17, 17, choice("rows become zero", "rows become valid again"), mode=True
    )
    use_32_bit_mode = bits(18, 18, choice("16-bit rows", "32-bit rows"), mode=True)
    clear_mode = bits(20, 19, choice("one row", "16 rows", "half of Dst", "all of Dst"), mode=True)

    def advance(s: Any, t: Any, f: Any) -> Any:
        if f.clear_mode < HALF:
            counters.apply_addr_mod(s, t, f.addr_mode)
        return rules.DONE

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.clear_zero_flags and not (f.clear_mode == SIXTEEN_ROWS and f.use_32_bit_mode):
            mode, wide = f.clear_mode, f.use_32_bit_mode
            status = rules.undefined(s, _REVERT, clear_mode=mode, use_32_bit_mode=wide)
            if status:
                return status
        if f.clear_mode >= HALF:
            if f.where > (1 if f.clear_mode == HALF else 0):
                status = rules.undefined(s, _BLOCK_RANGE, clear_mode=f.clear_mode, where=f.where)
                if status:
                    return status
            _flag_halves(s, f.where & 1, 1 if f.clear_mode == HALF else 2, f.clear_zero_flags)
            return rules.DONE
        status = counters.addr_mod_refused(s, t, f.addr_mode)
        if status:
            return status
        if f.clear_mode == SIXTEEN_ROWS:
            block = _block(s, t, f.where, f.use_32_bit_mode)
            blocks = 32 if f.use_32_bit_mode else 64
            if block >= blocks and rules.follows_llk(s):  # kernels name no block at all, by 255
                rules.note_rule(s, _BLOCK_RANGE, clear_mode=SIXTEEN_ROWS, where=block)
            elif block >= blocks:
                status = rules.undefined(s, _BLOCK_RANGE, clear_mode=SIXTEEN_ROWS, where=block)
                if status:
                    return status
            block &= 0xFF
            for i in range(16 if block < blocks else 0):  # the silicon does nothing there
                row = block * 16 + i
                row = dest.adj32(row) if f.use_32_bit_mode else row
                _flag(s, row, f.clear_zero_flags)
        elif f.use_32_bit_mode:
            return rules.refuse(s, _ONE_ROW_WIDE, where=f.where)
        else:
            b = config.bank(s, t)
            row = f.where + s.rwc[t, counters.DST] + counters.dst_offset(s, t)
            if row >= dest.ROWS:
                return rules.refuse(s, _ONE_ROW_RANGE, row=row)
            if config.get(s, b, cf.ALU_ACC_CTRL_INT8_math_enabled):
                return _ONE_ROW_INT8
            wide = config.get(s, b, cf.ALU_ACC_CTRL_Fp32_enabled)
            _flag(s, dest.adj32(row) if wide else dest.row16(s, row), 0)
        return counters.apply_addr_mod(s, t, f.addr_mode)


@njit
def _zero_bank(s: Any, which: Any, bank: Any) -> None:
    banks.changed(s, which, bank)
    s.src[which, bank & 1] = np.uint32(0)
    banks.settled(s, which, bank & 1)


class ZEROSRC(Instruction, opcode=0x11, unit="matrix"):
    """Clear banks of SrcA and SrcB, without waiting for them (ZEROSRC, Wormhole ISA)."""

    reads = spaces.BANKS
    writes = spaces.src("src_mask")

    src_mask = bits(1, 0, flags("SrcA", "SrcB"), mode=True)
    bank_mask = bits(2, 2, mode=True).meaning("""
        0: the bank of the matrix unit (with write_mode 1)
        1: both banks (with write_mode 0, src_mask 3)""")
    write_mode = bits(3, 3, mode=True).meaning("""
        0: both banks (with bank_mask 1)
        1: the bank of the matrix unit (with bank_mask 0)""")
    zero_val = bits(4, 4, choice("zeros"), mode=True)

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.zero_val:
            return _ZEROSRC_VALUE
        both = f.bank_mask == 1 and f.write_mode == 0 and f.src_mask == 3
        matrix = f.bank_mask == 0 and f.write_mode == 1 and f.src_mask != 0
        if not both and not matrix:
            others = (f.write_mode << 1) | f.bank_mask
            return rules.refuse(s, _ZEROSRC_MODE, src_mask=f.src_mask, others=others)
        for which in range(2):
            if (f.src_mask >> which) & 1:
                bank = s.matrix_bank[which]
                _zero_bank(s, which, bank)
                if f.bank_mask:
                    _zero_bank(s, which, bank ^ 1)
        return rules.DONE


class GATESRCRST(Instruction, opcode=0x35, unit="matrix"):
    """Invalidate the operand gating of SrcA and SrcB (GATESRCRST, Wormhole ISA).

    The operand cache has no visible effect, so there is nothing to do.
    """

    reset_srca_gate_control = bits(
        0, 0, choice("", "operand gating of SrcA reset: nothing to see here"), mode=True
    )
    reset_srcb_gate_control = bits(
        1, 1, choice("", "operand gating of SrcB reset: nothing to see here"), mode=True
    )

    def execute(s: Any, t: Any, f: Any) -> Any:
        return rules.DONE


class CLEARDVALID(Instruction, opcode=0x36, unit="matrix"):
    """Return Src banks to the unpackers (CLEARDVALID, Wormhole ISA).

    Unlike clear_dvalid of other instructions it ignores CLR_DVALID_Src{A,B}_Disable.
    """

    reads = spaces.BANKS
    writes = spaces.bank("cleardvalid", Kind.FREES)

    reset = bits(1, 0, choice("only the banks that cleardvalid names"))
    cleardvalid = bits(23, 22, insn.RELEASED)

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.reset or not f.cleardvalid:
            return rules.refuse(s, _CLEARDVALID_RESET, reset=f.reset, cleardvalid=f.cleardvalid)
        for which in range(2):
            if (f.cleardvalid >> which) & 1:
                status = banks.taken_back(s, which)
                if status:
                    return status
        for which in range(2):
            if (f.cleardvalid >> which) & 1:
                bank = s.matrix_bank[which] & 1
                s.src_valid[which, bank] = 0
                s.matrix_bank[which] = bank ^ 1
        return rules.DONE


@njit
def _set(s: Any, t: Any, i: Any, value: Any, from_cr: Any, wrap: Any) -> None:
    if from_cr:
        value = (s.rwc_cr[t, i] + value) & wrap
    s.rwc[t, i] = value
    s.rwc_cr[t, i] = value


@njit
def _set_counters(s: Any, t: Any, f: Any) -> Any:
    if f.bit_mask & 1:
        _set(s, t, counters.SRCA, f.rwc_a, f.rwc_cr & 1, counters.SRC_ROWS - 1)
    if f.bit_mask & 2:
        _set(s, t, counters.SRCB, f.rwc_b, f.rwc_cr & 2, counters.SRC_ROWS - 1)
    if f.bit_mask & 4:
        _set(s, t, counters.DST, f.rwc_d, f.rwc_cr & 4, counters.DST_ROWS - 1)
    if f.bit_mask & 8:
        s.rwc[t, counters.FIDELITY] = 0
    return rules.DONE


class SETRWC(Instruction, opcode=0x37, unit="matrix"):
    """Set row counters and optionally release Src banks (SETRWC, Wormhole ISA)."""

    reads = spaces.RWC | spaces.BANKS | spaces.thread_cfg("CLR_DVALID_*")
    writes = spaces.RWC | spaces.bank("clear_ab_vld", Kind.FREES)

    bit_mask = bits(
        3, 0, flags("SrcA", "SrcB", "Dst", "fidelity", about="counters that are set; fidelity to 0")
    )
    rwc_a = bits(9, 6, number("row of SrcA"))
    rwc_b = bits(13, 10, number("row of SrcB"))
    rwc_d = bits(17, 14, number("row of Dst"))
    rwc_cr = bits(21, 18, mode=True).meaning(
        flags("SrcA", "SrcB", "Dst", about="counters that start from their CR value")
    )
    clear_ab_vld = bits(23, 22, insn.RELEASED, mode=True)

    advance = _set_counters

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.rwc_cr > 7 or f.rwc_cr & ~f.bit_mask & 3:
            return rules.refuse(s, _SETRWC_CR, rwc_cr=f.rwc_cr, bit_mask=f.bit_mask)
        status = banks.release(s, t, f.clear_ab_vld)
        return status if status else _set_counters(s, t, f)


@njit
def _add(s: Any, t: Any, f: Any) -> Any:
    s.rwc[t, counters.SRCA] = (s.rwc[t, counters.SRCA] + f.rwc_a) & (counters.SRC_ROWS - 1)
    s.rwc[t, counters.SRCB] = (s.rwc[t, counters.SRCB] + f.rwc_b) & (counters.SRC_ROWS - 1)
    if f.rwc_cr & 4:
        _set(s, t, counters.DST, f.rwc_d, 1, counters.DST_ROWS - 1)
    else:
        s.rwc[t, counters.DST] = (s.rwc[t, counters.DST] + f.rwc_d) & (counters.DST_ROWS - 1)
    return rules.DONE


class INCRWC(
    Instruction, opcode=0x38, unit="matrix", unread=1 << 21, macro=(Argument("rwc_cr", 21, 18),)
):
    """Increment row counters (INCRWC, Wormhole ISA).

    Bit 21: tt-llk's eltwise multiplication gives rwc_cr the value 8, meant as an increment.
    """

    reads = spaces.RWC
    writes = spaces.RWC

    rwc_a = bits(9, 6, number("rows of SrcA to go on"))
    rwc_b = bits(13, 10, number("rows of SrcB to go on"))
    rwc_d = bits(17, 14, number("rows of Dst to go on"))
    rwc_cr = bits(
        20, 18, flags("", "", "Dst", about="counters that start from their CR value"), mode=True
    )

    advance = _add

    def execute(s: Any, t: Any, f: Any) -> Any:
        return rules.refuse(s, _INCRWC_CR, rwc_cr=f.rwc_cr) if f.rwc_cr & 3 else _add(s, t, f)
