"""UNPACR_NOP, and how an unpacker hands a bank over: what it does in order with UNPACR.

`unpack_row` (SrcRow) is added to the rows of SrcA unless SRCA_SET_SetOvrdWithAddr is set, and to
those of SrcB.  Source: UNPACR_Regular, UNPACR_NOP_SETDVALID, ISA.
"""

from typing import Any

import numpy as np

from bhemu.bits import choice
from bhemu.jit.intrinsics import flat
from bhemu.jit.subset import njit
from bhemu.tensix import banks, config, insn, spaces, unspecified
from bhemu.tensix import config_fields as cf
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.insn import Instruction, bits
from bhemu.tensix.rules import DONE, MISSING, UNSUPPORTED, error, follows_llk, note_rule, refuse
from bhemu.tensix.spaces import Kind
from bhemu.tensix.units.unpack.modes import read_config, section

_SRCB_BASE = error("UNPACR-SRCB-BASE", MISSING, "unpacker 1 goes on to the next set of rows while SRCB_SET_Base is {base}", "leave SRCB_SET_Base 0: the ISA text adds it to the rows of SrcB, ttsim says that Blackhole does not have it")  # fmt: skip

HANDING_OVER = spaces.UNPACKER | spaces.thread_cfg("SRCA_SET_*", "SRCB_SET_*")


@njit
def row_refused(s: Any, t: Any, u: Any) -> Any:
    """0, or the error of a new row for unpacker `u`."""
    base = config.thread(s, t, tf.SRCB_SET_Base)
    if base and u:
        return refuse(s, _SRCB_BASE, base=base)
    return 0


@njit
def _base(s: Any, t: Any, u: Any) -> Any:
    return 0 if u else config.thread(s, t, tf.SRCA_SET_Base) << 4


@njit
def hand_over(s: Any, t: Any, u: Any, fmt: Any) -> Any:
    """Give the bank of unpacker `u` to the matrix unit; DONE, or the error before any effect."""
    status = banks.hand_over(s, u, fmt)
    if status == 0:
        set_first_row(s, t, u)
    return status


@njit
def set_first_row(s: Any, t: Any, u: Any) -> None:
    """The row from which unpacker `u` fills a new bank."""
    s.unpack_row[u, t] = _base(s, t, u)


@njit
def next_set(s: Any, t: Any, u: Any) -> None:
    """Go on to the next 16 rows of the same bank (Unpack_Src_Reg_Set_Upd)."""
    s.unpack_row[u, t] = (s.unpack_row[u, t] + 16 + _base(s, t, u)) & 63


# UNPACR_NOP: what an unpacker does in order with UNPACR without unpacking.


_CLEAR_MINUS_INF = 0xFFFFE000  # all 19 bits: the most negative cell for GMPOOL
_POP, _CLEAR, _NOTHING, _SET_DVALID = 0, 1, 2, 3  # unpack_pop; 3 with src_clr_val_ctrl 1

_FIELDS = error("UNPACR-NOP-FIELDS", UNSUPPORTED, "UNPACR_NOP with unpack_pop {unpack_pop} and other fields set is not modelled", "unpack_pop 2 (nothing) and 3 with src_clr_val_ctrl 1 (hand over) take no other field")  # fmt: skip
_STREAM = error("UNPACR-NOP-STREAM", UNSUPPORTED, "UNPACR_NOP with unpack_pop {unpack_pop} (pop a stream) or a stream id is not modelled", "the text calls it unsupported: no known use")  # fmt: skip
_BOTH_BANKS = error("UNPACR-NOP-BANKS", UNSUPPORTED, "UNPACR_NOP with bank_clr_ctrl 1 is not modelled", "the text calls it unsupported: it waits for one bank and clears both; reference llk has it as tt-llk does, which waits for both, with zeros and without handing over")  # fmt: skip
_VALUE = error("UNPACR-NOP-VALUE", MISSING, "UNPACR_NOP clears to one, or to UNP_NOP_REG_CLR_VAL, of which no source gives the bits: what is computed from such datums is in doubt, and refused where it is packed or loaded", "unpack over them, or clear to zero (src_clr_val_ctrl 0) or all ones (1)")  # fmt: skip


@njit
def _hand_over(s: Any, t: Any, u: Any) -> Any:
    status = row_refused(s, t, u)
    if status:
        return status
    out = section(s, config.bank(s, t), u, cf.THCON_SEC0_REG2_Out_data_format)
    return hand_over(s, t, u, out)


@njit
def _clear_both(s: Any, u: Any) -> Any:
    """Zero both banks once both are free, as tt-llk says (llk_unpack_AB_custom_mm.h)."""
    for bank in range(2):
        waits = banks.unpacker_owns(s, u, bank)
        if waits:
            return waits
    for bank in range(2):
        banks.changed(s, u, bank)
        cells = flat(s.src[u, bank])
        for i in range(cells.size):
            cells[i] = np.uint32(0)
        banks.settled(s, u, bank)
    return DONE


class UNPACR_NOP(Instruction, opcode=0x43, unit="unpack"):
    """Clear an unpack bank, hand it over, or nothing (UNPACR_NOP_ZEROSRC, _SETDVALID, _Nop)."""

    reads = spaces.BANKS | HANDING_OVER | read_config("unpacker_select") | spaces.TDMA
    reads |= spaces.cfg("UNP0_NOP_*").unless("unpacker_select")
    reads |= spaces.cfg("UNP1_NOP_*").when("unpacker_select")
    writes = (
        spaces.src("1 << unpacker_select")
        | spaces.UNPACKER
        | spaces.bank("1 << unpacker_select", Kind.HANDS_OVER).when("set_dvalid")
        | spaces.bank("1 << unpacker_select").when("unpack_pop == 3")
        | spaces.TDMA
    )

    unpack_pop = bits(
        1,
        0,
        choice(
            {1: "clears a bank", 2: "nothing", 3: "hands the bank over (with src_clr_val_ctrl 1)"}
        ),
        mode=True,
    )
    src_clr_val_ctrl = bits(
        3, 2, choice("zeros", "all ones; with unpack_pop 3 required"), mode=True
    )
    bank_clr_ctrl = bits(
        4, 4, choice("the bank of the unpacker", "both banks (reference llk)"), mode=True
    )
    stall_clr_cntrl = bits(
        5,
        5,
        choice(
            "waits until the matrix unit has given back its bank",
            "waits until the bank of the unpacker is free",
        ),
        mode=True,
    )
    clr_to1_fmt_ctrl = bits(7, 6, choice("as src_clr_val_ctrl says"), mode=True)
    set_dvalid = bits(8, 8, choice("keeps the bank", "hands the bank over"), mode=True)
    msg_clr_cnt = bits(14, 12, insn.ZERO)
    stream_id = bits(21, 16, insn.ZERO)
    unpacker_select = bits(23, 23, choice("unpacker 0: SrcA", "unpacker 1: SrcB"), mode=True)

    def ready(s: Any, t: Any, f: Any) -> Any:
        u, waits = f.unpacker_select, np.int64(0)
        if f.unpack_pop != _CLEAR:
            return waits
        if f.bank_clr_ctrl:
            waits = banks.unpacker_owns(s, u, 0)
            return waits if waits else banks.unpacker_owns(s, u, 1)
        return banks.unpack_ready(s, u) if f.stall_clr_cntrl else banks.matrix_free(s, u)

    def advance(s: Any, t: Any, f: Any) -> Any:
        if f.set_dvalid or f.unpack_pop == _SET_DVALID:
            set_first_row(s, t, f.unpacker_select)
        return DONE

    def execute(s: Any, t: Any, f: Any) -> Any:
        u, value = f.unpacker_select, f.src_clr_val_ctrl
        if (
            f.unpack_pop == _POP
            or (f.unpack_pop == _SET_DVALID and value != 1)
            or f.msg_clr_cnt | f.stream_id
        ):
            return refuse(s, _STREAM, unpack_pop=f.unpack_pop)
        if f.unpack_pop != _CLEAR:
            rest = f.bank_clr_ctrl | f.stall_clr_cntrl | f.clr_to1_fmt_ctrl | f.set_dvalid
            if rest or (f.unpack_pop == _NOTHING and value):
                return refuse(s, _FIELDS, unpack_pop=f.unpack_pop)
            return DONE if f.unpack_pop == _NOTHING else _hand_over(s, t, u)
        if f.bank_clr_ctrl:
            rest = value | f.stall_clr_cntrl | f.clr_to1_fmt_ctrl | f.set_dvalid
            return _clear_both(s, u) if follows_llk(s) and rest == 0 else _BOTH_BANKS
        cell = np.int64(_CLEAR_MINUS_INF if value else 0)
        if value > 1 or f.clr_to1_fmt_ctrl:
            cell = np.int64(unspecified.EXPONENT)
        waits = banks.unpack_ready(s, u) if f.stall_clr_cntrl else banks.matrix_free(s, u)
        if waits:
            return waits
        bank = s.unpack_bank[u] & 1
        banks.changed(s, u, bank)
        cells = flat(s.src[u, bank])
        status = _hand_over(s, t, u) if f.set_dvalid else 0
        if status == 0:
            for i in range(cells.size):
                cells[i] = np.uint32(cell)
            banks.settled(s, u, bank)
            if cell & unspecified.CAUSES:
                s.doubt[0] = s.doubt[1] = 1
                note_rule(s, _VALUE)
        return status
