"""UNPACR: from L1 to SrcA, SrcB and Dst; here whole rows of 16- and 32-bit datums to Src.

Everything else is in general.py, which is compiled when a program first needs it.
"""

from typing import Any

from bhemu.jit.flat import flat
from bhemu.jit.subset import njit
from bhemu.memmap import L1_SIZE
from bhemu.tensix import banks, config
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.insn import Instruction, bits
from bhemu.tensix.status import DONE
from bhemu.tensix.units.unpack import counters, geometry
from bhemu.tensix.units.unpack.convert import plain_cells
from bhemu.tensix.units.unpack.general import general
from bhemu.tensix.units.unpack.geometry import FIRST_CELL, X
from bhemu.tensix.units.unpack.handover import hand_over, row_refused
from bhemu.tensix.units.unpack.modes import mode_of, plain, zero_fields

_SRC_CELLS = geometry.SRC_ROWS * 16
_PLAIN_BITS = 0x81  # last, ovrd_thread_id

_OTHER = -1  # not a plain UNPACR


@njit(forceinline=True)  # one caller
def _plain(s: Any, t: Any, u: Any, addr_mode: Any, set_dat_valid: Any) -> Any:
    f0, f1 = tf.UNPACK_MISC_CFG_CfgContextOffset_0, tf.UNPACK_MISC_CFG_CfgContextOffset_1
    k = config.thread(s, t, f1 if u else f0)
    if k > 1:
        return _OTHER
    m = mode_of(s, t, u, 1, k, t)
    override = config.thread(s, t, tf.SRCA_SET_SetOvrdWithAddr)
    if not plain(s, m) or override == 0 or s.unpack_row[u, t] or row_refused(s, t, u):
        return _OTHER
    first = geometry.first_cell(s, t, m)
    if u == 0:
        first -= FIRST_CELL
    count = s.adc[t, u, 1, X] - s.adc[t, u, 0, X] + 1
    src = geometry.source(s, t, m)
    # Rows from a multiple of 8 on never end a burst early.  What does not fit, or has a fault,
    # goes the other way and gets its error there.
    if first < 0 or first & 127 or count <= 0 or first + count > _SRC_CELLS:
        return _OTHER
    if src.data + src.bits * count > 8 * L1_SIZE or zero_fields(s, m):
        return _OTHER
    bank = s.unpack_bank[u] & 1
    banks.changed(s, u, bank)
    if u == 0 and banks.any_doubt(s, bank):
        banks.settle(s, bank, first >> 4, count >> 4)
    plain_cells(s, m, src, count, flat(s.src[u, bank])[first : first + count])
    counters.count_on(s, t, u, addr_mode)
    return hand_over(s, t, u, m.out) if set_dat_valid else DONE


class UNPACR(Instruction, opcode=0x42, unit="unpack", stall="B0,B3"):
    """Unpack datums from L1 to SrcA, SrcB or Dst (UNPACR_Regular, Blackhole ISA)."""

    last = bits(0)
    search_cache_flush = bits(1)
    row_search = bits(2, mode=True)
    auto_inc_context_id = bits(3)
    zero_write2 = bits(4, mode=True)
    srcb_bcast = bits(5, mode=True)
    set_dat_valid = bits(6, mode=True)
    ovrd_thread_id = bits(7)
    addr_cnt_context_id = bits(9, 8)
    cfg_context_id = bits(12, 10)
    cfg_context_cnt_inc = bits(13)
    addr_mode = bits(22, 15)
    unpack_block_selection = bits(23, mode=True)

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
        low = last | search_cache_flush << 1 | row_search << 2 | auto_inc_context_id << 3
        low |= zero_write2 << 4 | srcb_bcast << 5 | ovrd_thread_id << 7 | addr_cnt_context_id << 8
        low |= cfg_context_id << 10 | cfg_context_cnt_inc << 13
        if low == _PLAIN_BITS:
            waits = banks.unpack_ready(s, unpack_block_selection)
            if waits:
                return waits
            status = _plain(s, t, unpack_block_selection, addr_mode, set_dat_valid)
            if status != _OTHER:
                return status
        low |= set_dat_valid << 6 | addr_mode << 15
        return general(s, t, low | unpack_block_selection << 23)
