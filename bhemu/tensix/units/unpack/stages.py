"""UNPACR stage by stage, in every mode: checks, addresses, the write, counters, hand-over.

Contexts and their counters, Dst, tilized and transposed tiles, formats of 8 bits and fewer, column
shifts.  Source: UNPACR_Regular, UNPACR_IncrementContextCounter and UNPACR_FlushCache, Wormhole
ISA (shared with Blackhole); row widths and checks from ttsim.
"""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import banks, config, formats
from bhemu.tensix import config_fields as cf
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.quirks import refuse
from bhemu.tensix.second_entries import UNPACK_STAGES, second_entry
from bhemu.tensix.status import DONE, UB, UNSUPPORTED, error
from bhemu.tensix.units.adc import X
from bhemu.tensix.units.unpack import bursts, counters, input_address, output_address
from bhemu.tensix.units.unpack.datum_stream import datum_by_datum
from bhemu.tensix.units.unpack.exponents import exponents_refused
from bhemu.tensix.units.unpack.formats import WIDE, formats_refused
from bhemu.tensix.units.unpack.handover import hand_over, next_set, row_refused
from bhemu.tensix.units.unpack.modes import modes_refused, section, uncompressed, zero_refused
from bhemu.tensix.units.unpack.output_address import FIRST_CELL
from bhemu.tensix.units.unpack.to_dst import to_dst_16, to_dst_32
from bhemu.tensix.units.unpack.to_src import to_src
from bhemu.tensix.units.unpack.word import UnpackWord, mode_of_word
from bhemu.tensix.units.unpack.zeros import zeros

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
def _by_datum(s: Any, m: Any, f: Any) -> Any:
    # Modes whose code is in datum_stream.py: row search, upsampling, compressed tiles.
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
def _write(s: Any, t: Any, m: Any, f: Any, src: Any, first: Any, count: Any) -> Any:
    if f.zero_write2:
        return zeros(s, t, f.word)
    if formats.is_bfp(m.fmt) and m.fmt & 4 == 0:
        status = exponents_refused(s, t, f.word)
        if status:
            return status
    if m.to_dst and (WIDE >> m.out) & 1 == 0:
        return to_dst_16(s, t, f.word)
    if m.to_dst:
        to_dst_32(s, src, first, count)
    else:
        start = np.int64(max(-first, 0))  # rows before the first drop
        to_src(s, m, src, first + output_address.set_cells(s, t, m), start, count)
    return DONE


@njit(forceinline=True)  # one caller
def _unpack(s: Any, t: Any, m: Any, f: Any) -> Any:
    u = m.unpacker
    status = _refused(s, t, m, f.set_dat_valid)
    if status:
        return status
    if _by_datum(s, m, f):
        status = datum_by_datum(s, t, f.word)
        return _after(s, t, m, f) if status == DONE else status
    target = output_address.first_cell(s, t, m)
    if target < 0:
        return target
    first = target if u else target - FIRST_CELL
    count = s.adc[m.counters, u, 1, X] - s.adc[m.counters, u, 0, X] + 1
    override = config.thread(s, t, tf.SRCA_SET_SetOvrdWithAddr)
    status = output_address.target_refused(s, m, first, count, override)
    if status == 0:
        status = bursts.refused(s, m, first, count)
    src = input_address.source(s, t, m)
    if status == 0:
        status = input_address.source_refused(s, m, src, count)
    if status:
        return status
    status = _write(s, t, m, f, src, first, count)
    if status:
        return status
    if u == 0 and m.to_dst == 0:
        bursts.note(s, m, first, count, output_address.set_cells(s, t, m) >> 4)
    return _after(s, t, m, f)


def _stage_by_stage(s: Any, t: Any, f: Any) -> Any:
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


stage_by_stage = second_entry(UNPACK_STAGES, _stage_by_stage, UnpackWord)
