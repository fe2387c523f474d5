"""Unpackers: L1 to SrcA, SrcB and Dst."""

from typing import Any

import numpy as np

from bhemu.tensix import banks, config, dest
from bhemu.tensix import config_fields as cf
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.flat import flat
from bhemu.tensix.insn import Instruction, bits
from bhemu.tensix.quirks import refuse
from bhemu.tensix.status import DONE, UB, UNIMPLEMENTED, UNSUPPORTED, error
from bhemu.tensix.subset import njit
from bhemu.tensix.units.unpack import geometry
from bhemu.tensix.units.unpack.convert import to_cells
from bhemu.tensix.units.unpack.geometry import X, Y, Z
from bhemu.tensix.units.unpack.modes import formats_refused, mode_of, modes_refused, section
from bhemu.tensix.words import l1_words

_Y_WRAP = 0x1FFF  # ADC Y counters have 13 bits, Z counters 8
_Z_WRAP = 0xFF
_SRC_CELLS = geometry.SRC_ROWS * 16
_CLEAR_MINUS_INF = 0xFFFFE000  # the most negative cell for GMPOOL

_FIELDS = error(
    "UNPACR-FIELDS",
    UNSUPPORTED,
    "UNPACR needs last (is {0}) and ovrd_thread_id (is {1}) 1; search_cache_flush, row_search, "
    "auto_inc_context_id, srcb_bcast, addr_cnt_context_id, cfg_context_id, cfg_context_cnt_inc 0",
    "the other forms of UNPACR are not modelled",
)
_ZERO_WRITE = error(
    "UNPACR-ZERO-WRITE",
    UNIMPLEMENTED,
    "UNPACR with zero_write2={0} is not modelled",
    "",
)
_DST_OVERRIDE = error(
    "UNPACR-DST-SRCA-SET",
    UB,
    "unpacking to Dst while SRCA_SET_SetOvrdWithAddr is set",
    "write 0 to SRCA_SET before unpacking to Dst",
)
_SRC_OVERRIDE = error(
    "UNPACR-SRCA-SET",
    UNSUPPORTED,
    "unpacking to a source register while SRCA_SET_SetOvrdWithAddr is 0",
    "write 4 to SRCA_SET",
)
_SRCA_BASE = error(
    "UNPACR-SRCA-BASE",
    UNIMPLEMENTED,
    "handing SrcA over while SRCA_SET_Base is {0} is not modelled",
    "leave SRCA_SET_Base 0",
)
_SET_UPDATE = error(
    "UNPACR-SET-UPDATE",
    UNSUPPORTED,
    "Unpack_Src_Reg_Set_Upd of unpacker 0 or 1 is set",
    "hand banks over with set_dat_valid",
)
_NOP_FIELDS = error(
    "UNPACR-NOP-FIELDS",
    UNIMPLEMENTED,
    "UNPACR_NOP needs unpack_pop 1 (is {0}), src_clr_val_ctrl 0 or 1 (is {1}), bank_clr_ctrl and "
    "clr_to1_fmt_ctrl 0",
    "",
)
_NOP_STREAM = error(
    "UNPACR-NOP-STREAM",
    UNSUPPORTED,
    "UNPACR_NOP with msg_clr_cnt={0} or stream_id={1} is not modelled",
    "",
)
_NOP_SRCB = error(
    "UNPACR-NOP-SRCB",
    UNIMPLEMENTED,
    "UNPACR_NOP fills SrcB with zero only (src_clr_val_ctrl is {0})",
    "",
)


@njit
def _handover_refused(s: Any, t: Any, u: Any) -> Any:
    s.detail[0] = config.thread(s, t, tf.SRCA_SET_Base)
    return _SRCA_BASE if s.detail[0] and not u else 0


@njit
def _registers_refused(s: Any, t: Any, m: Any, set_dat_valid: Any) -> Any:
    override = config.thread(s, t, tf.SRCA_SET_SetOvrdWithAddr)
    if m.to_dst and override:
        return _DST_OVERRIDE
    if m.to_dst | override == 0:
        return _SRC_OVERRIDE
    if set_dat_valid:
        return _handover_refused(s, t, m.unpacker)
    update = config.get(s, m.bank, cf.THCON_SEC0_REG2_Unpack_Src_Reg_Set_Upd)
    update |= config.get(s, m.bank, cf.THCON_SEC1_REG2_Unpack_Src_Reg_Set_Upd)
    return _SET_UPDATE if update else 0


@njit
def _to_dst(s: Any, src: Any, first: Any, count: Any) -> None:
    # 32-bit rows of a group of eight follow each other in the storage; source rows need not.
    store = flat(s.dst)
    done = np.int64(0)
    while done < count:
        row = (first + done) >> 4
        n = min(count - done, 16 * (8 - (row & 7)))
        if src.step != 4 * src.row:
            n = min(n, src.row - done % src.row)
        at = (src.data >> 3) + 4 * (done % src.row) + src.step * (done // src.row)
        data = l1_words(s)[at >> 2 : (at >> 2) + n]
        row = dest.adj32(row)
        high = store[16 * row : 16 * row + n]
        low = store[16 * (row + dest.LOW_HALF) : 16 * (row + dest.LOW_HALF) + n]
        for i in range(n):
            v = np.uint32(data[i] >> np.uint32(16))
            mantissa = np.uint32((v & np.uint32(0x7F)) << np.uint32(8))
            exponent = np.uint32(v >> np.uint32(7)) & np.uint32(0xFF)
            high[i] = np.uint16((v & np.uint32(0x8000)) | mantissa | exponent)
            low[i] = np.uint16(data[i] & np.uint32(0xFFFF))
        for r in range((n + 15) >> 4):
            s.dst_valid[row + r] = 1
        done += n


@njit(inline="always")  # one caller
def _to_src(s: Any, m: Any, src: Any, first: Any, count: Any) -> None:
    banks.changed(s, m.unpacker, s.unpack_bank[m.unpacker])
    target = flat(s.src[m.unpacker, s.unpack_bank[m.unpacker] & 1])
    done = np.int64(0)
    while done < count:
        at = (first + done) & (_SRC_CELLS - 1)  # SrcA rows wrap; SrcB ends within 64
        n = min(count - done, _SRC_CELLS - at)
        if m.tileize:
            n = min(n, src.row - done % src.row)
        cells = s.unpack_tmp[:n] if m.haloize else target[at : at + n]
        to_cells(s, m, src, done, n, cells)
        if m.haloize:
            for i in range(n):
                cell = at + i
                target[(cell & ~0xFF) | ((cell & 15) << 4) | ((cell >> 4) & 15)] = cells[i]
        done += n


@njit
def _count_on(s: Any, t: Any, u: Any, addr_mode: Any) -> None:
    channels = s.adc[t, u]
    channels[0, Z] = (channels[0, Z] + (addr_mode & 3)) & _Z_WRAP
    channels[0, Y] = (channels[0, Y] + (addr_mode >> 2 & 3)) & _Y_WRAP
    channels[1, Z] = (channels[1, Z] + (addr_mode >> 4 & 3)) & _Z_WRAP
    channels[1, Y] = (channels[1, Y] + (addr_mode >> 6 & 3)) & _Y_WRAP


@njit(inline="always")  # one caller
def _unpack(s: Any, t: Any, u: Any, addr_mode: Any, set_dat_valid: Any) -> Any:
    m = mode_of(s, t, u)
    status = formats_refused(m)
    if status == 0:
        status = modes_refused(s, m)
    if status == 0:
        status = _registers_refused(s, t, m, set_dat_valid)
    if status:
        return status
    first = geometry.first_cell(s, t, m)
    if first < 0:
        return first
    count = s.adc[t, u, 1, X] - s.adc[t, u, 0, X] + 1
    status = geometry.target_refused(s, t, m, first, count)
    src = geometry.source(s, t, m)
    if status == 0:
        status = geometry.source_refused(s, m, src, count)
    if status:
        return status
    if m.to_dst:
        _to_dst(s, src, first, count)
    else:
        _to_src(s, m, src, first, count)
    _count_on(s, t, u, addr_mode)
    return banks.hand_over(s, u, m.out) if set_dat_valid else DONE


class UNPACR(Instruction, opcode=0x42, unit="unpack", stall="B0,B3"):
    """Unpack datums from L1 to SrcA, SrcB or Dst (UNPACR_Regular, Blackhole ISA)."""

    last = bits(0)
    search_cache_flush = bits(1)
    row_search = bits(2)
    auto_inc_context_id = bits(3)
    zero_write2 = bits(4)
    srcb_bcast = bits(5)
    set_dat_valid = bits(6)
    ovrd_thread_id = bits(7)
    addr_cnt_context_id = bits(9, 8)
    cfg_context_id = bits(12, 10)
    cfg_context_cnt_inc = bits(13)
    addr_mode = bits(22, 15)
    unpack_block_selection = bits(23)

    def execute(
        s: Any,
        t: Any,
        last: Any,
        search_cache_flush: Any,
        row_search: Any,
        auto_inc_context_id: Any,
        zero_write2: Any,
        srcb_bcast: Any,
        set_dat_valid: Any,
        ovrd_thread_id: Any,
        addr_cnt_context_id: Any,
        cfg_context_id: Any,
        cfg_context_cnt_inc: Any,
        addr_mode: Any,
        unpack_block_selection: Any,
    ) -> Any:
        refused = search_cache_flush | row_search | auto_inc_context_id | srcb_bcast
        refused |= addr_cnt_context_id | cfg_context_id | cfg_context_cnt_inc
        if refused or not (last and ovrd_thread_id):
            return refuse(s, _FIELDS, last, ovrd_thread_id)
        if zero_write2:
            return refuse(s, _ZERO_WRITE, zero_write2, 0)
        waits = banks.unpack_ready(s, unpack_block_selection)
        if waits:
            return waits
        return _unpack(s, t, unpack_block_selection, addr_mode, set_dat_valid)


class UNPACR_NOP(Instruction, opcode=0x43, unit="unpack", stall="B0,B3"):
    """Clear an unpack bank and hand it over (UNPACR_NOP of Blackhole, ttsim)."""

    unpack_pop = bits(1, 0)
    src_clr_val_ctrl = bits(3, 2)
    bank_clr_ctrl = bits(4)
    stall_clr_cntrl = bits(5)
    clr_to1_fmt_ctrl = bits(7, 6)
    set_dvalid = bits(8)
    msg_clr_cnt = bits(14, 12)
    stream_id = bits(21, 16)
    unpacker_select = bits(23)

    def execute(
        s: Any,
        t: Any,
        unpack_pop: Any,
        src_clr_val_ctrl: Any,
        bank_clr_ctrl: Any,
        stall_clr_cntrl: Any,
        clr_to1_fmt_ctrl: Any,
        set_dvalid: Any,
        msg_clr_cnt: Any,
        stream_id: Any,
        unpacker_select: Any,
    ) -> Any:
        u = unpacker_select
        if unpack_pop != 1 or src_clr_val_ctrl > 1 or bank_clr_ctrl or clr_to1_fmt_ctrl:
            return refuse(s, _NOP_FIELDS, unpack_pop, src_clr_val_ctrl)
        if msg_clr_cnt | stream_id:
            return refuse(s, _NOP_STREAM, msg_clr_cnt, stream_id)
        if u and src_clr_val_ctrl:
            return refuse(s, _NOP_SRCB, src_clr_val_ctrl, 0)
        waits = banks.unpack_ready(s, u) if stall_clr_cntrl else banks.matrix_free(s, u)
        if waits:
            return waits
        banks.changed(s, u, s.unpack_bank[u])
        cells = s.src[u, s.unpack_bank[u] & 1]
        if set_dvalid:
            status = _handover_refused(s, t, u)
            if status == 0:
                b = config.bank(s, t)
                out = section(s, b, u, cf.THCON_SEC0_REG2_Out_data_format)
                status = banks.hand_over(s, u, out)
            if status:
                return status
        cells[:] = np.uint32(_CLEAR_MINUS_INF if src_clr_val_ctrl else 0)
        return DONE
