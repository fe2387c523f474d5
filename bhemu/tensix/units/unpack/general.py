"""Every mode of UNPACR that the plain one in unpacr.py leaves out.

Contexts and their counters, Dst, tilized and transposed tiles, formats of 8 bits and fewer, column
shifts, zeros instead of datums.  Source: UNPACR_Regular, UNPACR_IncrementContextCounter and
UNPACR_FlushCache, Wormhole ISA (shared with Blackhole); row widths and checks from ttsim.
"""

from typing import Any

import numpy as np

from bhemu.jit.flat import flat
from bhemu.jit.subset import njit
from bhemu.tensix import banks, config, dest, formats
from bhemu.tensix import config_fields as cf
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.quirks import refuse
from bhemu.tensix.second_entries import UNPACK, second_entry
from bhemu.tensix.status import DONE, UB, UNSUPPORTED, error
from bhemu.tensix.units.unpack import bursts, counters, geometry
from bhemu.tensix.units.unpack.geometry import FIRST_CELL, X
from bhemu.tensix.units.unpack.handover import hand_over, next_set, row_refused
from bhemu.tensix.units.unpack.literal import literal
from bhemu.tensix.units.unpack.modes import (
    WIDE,
    formats_refused,
    modes_refused,
    section,
    uncompressed,
    zero_refused,
)
from bhemu.tensix.units.unpack.rare import rare
from bhemu.tensix.units.unpack.target import to_src
from bhemu.tensix.units.unpack.word import UnpackWord, mode_of_word
from bhemu.tensix.words import l1_words

_FIELDS = error(
    "UNPACR-FIELDS",
    UNSUPPORTED,
    "UNPACR with srcb_bcast {srcb_bcast} is not modelled",
    "the ISA text has 0 there, and no source says what it does",
)
_ADC_CONTEXT = error(
    "UNPACR-ADC-CONTEXT", UB, "UNPACR with addr_cnt_context_id 3: there are counters of 3 threads"
)
_DST_OVERRIDE = error(
    "UNPACR-DST-SRCA-SET",
    UB,
    "unpacking to Dst while SRCA_SET_SetOvrdWithAddr is set",
    "write 0 to SRCA_SET before unpacking to Dst",
)


@njit
def _count_context(s: Any, t: Any, u: Any, k: Any) -> None:
    # The counter follows context k; it starts again at 2 to the Context_count.
    limit = 1 << section(s, config.bank(s, t), u, cf.THCON_SEC0_REG2_Context_count)
    s.unpack_context[u, t] = k + 1 if k + 1 < limit else 0


@njit
def _updates_set(s: Any, m: Any) -> Any:
    return section(s, m.bank, m.unpacker, cf.THCON_SEC0_REG2_Unpack_Src_Reg_Set_Upd)


@njit
def _registers_refused(s: Any, t: Any, m: Any, set_dat_valid: Any) -> Any:
    if m.to_dst and config.thread(s, t, tf.SRCA_SET_SetOvrdWithAddr):
        return _DST_OVERRIDE
    return row_refused(s, t, m.unpacker) if set_dat_valid or _updates_set(s, m) else 0


@njit(forceinline=True)  # one caller
def _to_dst_32(s: Any, src: Any, first: Any, count: Any) -> None:
    # 32-bit rows of a group of eight follow each other in the storage; source rows need not.
    store = flat(s.dst)
    done = np.int64(0)
    while done < count:
        at = first + done
        n = min(count - done, 128 - (at & 127))
        if src.step != 4 * src.row:
            n = min(n, src.row - done % src.row)
        word = ((src.data >> 3) + 4 * (done % src.row) + src.step * (done // src.row)) >> 2
        data = l1_words(s)[word : word + n]
        start = 16 * dest.adj32(at >> 4) + (at & 15)
        high, low = store[start : start + n], store[start + 128 : start + 128 + n]
        for i in range(n):
            v = np.uint32(data[i] >> np.uint32(16))
            mantissa = np.uint32((v & np.uint32(0x7F)) << np.uint32(8))
            exponent = np.uint32(v >> np.uint32(7)) & np.uint32(0xFF)
            high[i] = np.uint16((v & np.uint32(0x8000)) | mantissa | exponent)
            low[i] = np.uint16(data[i] & np.uint32(0xFFFF))
        for row in range(start >> 4, (start + n + 15) >> 4):
            s.dst_valid[row] = 1
            dest.written(s, row + dest.LOW_HALF)
        done += n


@njit(forceinline=True)  # one caller
def _refused(s: Any, t: Any, m: Any, set_dat_valid: Any) -> Any:
    status = zero_refused(s, m)
    if status == 0:
        status = formats_refused(s, m)
    if status == 0:
        status = modes_refused(s, m)
    if status == 0:
        status = _registers_refused(s, t, m, set_dat_valid)
    return status


@njit
def _rarely(m: Any, f: Any) -> Any:
    # Modes whose code is in rare.py: zero_write2, 16-bit datums to Dst, 5-bit shared exponents.
    wide = (WIDE >> m.out) & 1
    return f.zero_write2 or (m.to_dst and not wide) or (formats.is_bfp(m.fmt) and m.fmt & 4 == 0)


@njit
def _by_datum(s: Any, m: Any, f: Any) -> Any:
    # Modes whose code is in literal.py: row search, upsampling, compressed tiles.
    upsampled = section(s, m.bank, m.unpacker, cf.THCON_SEC0_REG2_Upsample_rate)
    return f.row_search or upsampled or uncompressed(s, m) == 0


@njit
def _after(s: Any, t: Any, m: Any, f: Any) -> Any:
    u = m.unpacker
    if not m.to_dst:
        banks.changed(s, u, s.unpack_bank[u])
    counters.count_on(s, t, u, f.addr_mode)
    if m.counters != t:
        counters.count_on(s, m.counters, u, f.addr_mode)
    if f.set_dat_valid:
        return hand_over(s, t, u, m.out)
    if _updates_set(s, m):
        next_set(s, t, u)
    return DONE


@njit(forceinline=True)  # one caller
def _unpack(s: Any, t: Any, m: Any, f: Any) -> Any:
    u = m.unpacker
    status = _refused(s, t, m, f.set_dat_valid)
    if status:
        return status
    if _by_datum(s, m, f):
        status = literal(s, t, f.word)
        return _after(s, t, m, f) if status == DONE else status
    target = geometry.first_cell(s, t, m)
    if target < 0:
        return target
    first = target if u else target - FIRST_CELL
    count = s.adc[m.counters, u, 1, X] - s.adc[m.counters, u, 0, X] + 1
    override = config.thread(s, t, tf.SRCA_SET_SetOvrdWithAddr)
    status = geometry.target_refused(s, m, first, count, override)
    if status == 0:
        status = bursts.refused(s, m, first, count)
    src = geometry.source(s, t, m)
    if status == 0:
        status = geometry.source_refused(s, m, src, count)
    if status:
        return status
    if _rarely(m, f):
        status = rare(s, t, f.word)
        if status:
            return status
    elif m.to_dst:
        _to_dst_32(s, src, first, count)
    else:
        start = np.int64(max(-first, 0))  # rows before the first drop
        to_src(s, m, src, first + geometry.set_cells(s, t, m), start, count)
    if u == 0 and m.to_dst == 0:
        bursts.note(s, m, first, count, geometry.set_cells(s, t, m) >> 4)
    return _after(s, t, m, f)


def _general(s: Any, t: Any, f: Any) -> Any:
    u, multi = f.unpack_block_selection, f.ovrd_thread_id
    if f.srcb_bcast:
        return refuse(s, _FIELDS, srcb_bcast=f.srcb_bcast)
    if f.cfg_context_cnt_inc:  # nothing is unpacked
        _count_context(s, t, u, s.unpack_context[u, t])
        return DONE
    if f.search_cache_flush:  # that cache has no effect on what is unpacked
        return DONE
    waits = banks.unpack_ready(s, u)
    if waits:
        return waits
    if f.addr_cnt_context_id == 3 and multi:
        return _ADC_CONTEXT
    m = mode_of_word(s, t, f)
    status = _unpack(s, t, m, f)
    if status == DONE and multi and f.auto_inc_context_id:
        _count_context(s, t, u, m.context)
    return status


general = second_entry(UNPACK, _general, UnpackWord)
