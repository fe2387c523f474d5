"""Every mode of UNPACR that the plain one in unpacr.py leaves out.

Contexts and their counters, Dst, tilized and transposed tiles, formats of 8 bits and fewer, column
shifts, zeros instead of datums.  Source: UNPACR_Regular, UNPACR_IncrementContextCounter and
UNPACR_FlushCache, Wormhole ISA (shared with Blackhole); row widths and checks from ttsim.
"""

from typing import Any

import numpy as np

from bhemu.tensix import banks, config, dest, formats
from bhemu.tensix import config_fields as cf
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.cold import UNPACK, cold
from bhemu.tensix.flat import flat
from bhemu.tensix.status import DONE, UB, UNSUPPORTED, error
from bhemu.tensix.subset import njit
from bhemu.tensix.units.unpack import counters, geometry
from bhemu.tensix.units.unpack.convert import to_cells
from bhemu.tensix.units.unpack.geometry import FIRST_CELL, SRC_ROWS, X
from bhemu.tensix.units.unpack.handover import handover_refused
from bhemu.tensix.units.unpack.modes import (
    column_shift,
    formats_refused,
    mode_of,
    modes_refused,
    section,
    zero_refused,
)
from bhemu.tensix.words import l1_words

_SRC_CELLS = SRC_ROWS * 16
_PIECE = 1024  # datums converted at a time
# Output formats (a bit set) whose Dst datums have 5-bit exponents, and those of 32 bits.
_FIVE = 1 << formats.FP16 | 1 << formats.BFP8A | 1 << formats.BFP4A | 1 << formats.BFP2A
_FIVE |= 1 << formats.FP8 | 1 << formats.INT8
_WIDE = 1 << formats.FP32 | 1 << formats.TF32 | 1 << formats.INT32

_FIELDS = error(
    "UNPACR-FIELDS",
    UNSUPPORTED,
    "UNPACR with row_search {0} or srcb_bcast {1} is not modelled",
    "row_search needs blobs or compressed tiles; of srcb_bcast there is no specification",
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
_SET_UPDATE = error(
    "UNPACR-SET-UPDATE",
    UNSUPPORTED,
    "Unpack_Src_Reg_Set_Upd of unpacker {0} is set",
    "hand banks over with set_dat_valid",
)
_EXPONENT = error(
    "UNPACR-BFP-EXPONENT",
    UB,
    "unpacker {0}: an exponent of format {2}, less the leading zeros of its datum, is not in 0 to "
    "31",
    "5-bit block floating point (bfp8a, bfp4a, bfp2a) has exponents from 0 to 31",
)


@njit
def _context(s: Any, t: Any, u: Any, word: Any) -> Any:
    f0, f1 = tf.UNPACK_MISC_CFG_CfgContextOffset_0, tf.UNPACK_MISC_CFG_CfgContextOffset_1
    number = s.unpack_context[u, t] if (word >> 3) & 1 else (word >> 10) & 7
    return (number + config.thread(s, t, f1 if u else f0)) & 7


@njit
def _count_context(s: Any, t: Any, u: Any, k: Any) -> None:
    # The counter follows context k; it starts again at 2 to the Context_count.
    limit = 1 << section(s, config.bank(s, t), u, cf.THCON_SEC0_REG2_Context_count)
    s.unpack_context[u, t] = k + 1 if k + 1 < limit else 0


@njit
def _registers_refused(s: Any, t: Any, m: Any, set_dat_valid: Any) -> Any:
    if m.to_dst and config.thread(s, t, tf.SRCA_SET_SetOvrdWithAddr):
        return _DST_OVERRIDE
    if set_dat_valid:
        return handover_refused(s, t, m.unpacker)
    update = section(s, m.bank, m.unpacker, cf.THCON_SEC0_REG2_Unpack_Src_Reg_Set_Upd)
    return _SET_UPDATE if update else 0


@njit
def _exponents_refused(s: Any, m: Any, src: Any, count: Any) -> Any:
    # Converts everything once, to look at the exponents before any effect.
    if not formats.is_bfp(m.fmt) or m.fmt & 4:
        return 0
    done = np.int64(0)
    while done < count:
        n = min(count - done, _PIECE)
        if m.tileize:
            n = min(n, src.row - done % src.row)
        if to_cells(s, m, src, done, n, s.unpack_tmp[:n]):
            return _EXPONENT
        done += n
    return 0


@njit(inline="always")  # one caller
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
        done += n


@njit(inline="always")  # one caller
def _to_dst_16(s: Any, m: Any, src: Any, first: Any, count: Any) -> None:
    store = flat(s.dst)
    five = (_FIVE >> m.out) & 1
    done = np.int64(0)
    while done < count:
        n = min(count - done, _PIECE)
        if m.tileize:
            n = min(n, src.row - done % src.row)
        cells = s.unpack_tmp[:n]
        to_cells(s, m, src, done, n, cells)
        for i in range(n):
            v = np.int64(cells[i])
            sign = v >> 16 & 0x8000
            if five:
                v = sign | dest.enc_fp16(v >> 13 & 0x7FFF)
            else:
                v = dest.enc_bf16(v >> 16)
            store[first + done + i] = np.uint16(v)
        done += n
    for row in range(first >> 4, (first + count + 15) >> 4):
        s.dst_valid[row] = 1


@njit(inline="always")  # one caller
def _zeros(s: Any, m: Any, first: Any, count: Any) -> None:
    # zero_write2: what is read does not matter.
    shift = column_shift(s, m)
    for at in range(first, first + count):
        row, column = at >> 4, at & 15
        if not m.to_dst:
            row, column = row & (SRC_ROWS - 1), column - shift
            if column < 0:
                continue
            if m.haloize and m.unpacker == 0:
                row, column = (row & ~15) | column, row & 15
            s.src[m.unpacker, s.unpack_bank[m.unpacker] & 1, row, column] = np.uint32(0)
        elif (_WIDE >> m.out) & 1:
            dest.write32(s, row, column, np.int64(0))
        else:
            dest.write16(s, row, column, np.int64(0))


@njit(inline="always")  # one caller
def _to_src(s: Any, m: Any, src: Any, first: Any, start: Any, count: Any) -> None:
    # Datums `start` to `count`; datum 0 belongs to cell `first`.
    target = flat(s.src[m.unpacker, s.unpack_bank[m.unpacker] & 1])
    transposed = m.haloize and m.unpacker == 0
    shift = column_shift(s, m)
    done = start
    while done < count:
        at = (first + done) & (_SRC_CELLS - 1)  # SrcA rows wrap; SrcB ends within 64
        n = min(count - done, _SRC_CELLS - at)
        if m.tileize:
            n = min(n, src.row - done % src.row)
        cells = s.unpack_tmp[:n] if transposed or shift else target[at : at + n]
        to_cells(s, m, src, done, n, cells)
        if transposed or shift:
            for i in range(n):
                cell = at + i
                column = (cell & 15) - shift
                if column < 0:
                    continue
                row = cell >> 4
                if transposed:
                    row, column = (row & ~15) | column, row & 15
                target[16 * row + column] = cells[i]
        done += n


@njit(inline="always")  # one caller
def _write(s: Any, m: Any, src: Any, first: Any, count: Any, zeros: Any) -> None:
    if not m.to_dst:
        banks.changed(s, m.unpacker, s.unpack_bank[m.unpacker])
    if zeros:
        start = max(-first, 0)
        _zeros(s, m, first + start, count - start)
    elif not m.to_dst:
        _to_src(s, m, src, first, np.int64(max(-first, 0)), count)  # rows before the first drop
    elif (_WIDE >> m.out) & 1:
        _to_dst_32(s, src, first, count)
    else:
        _to_dst_16(s, m, src, first, count)


@njit(inline="always")  # one caller
def _refused(s: Any, t: Any, m: Any, set_dat_valid: Any) -> Any:
    status = zero_refused(s, m)
    if status == 0:
        status = formats_refused(s, m)
    if status == 0:
        status = modes_refused(s, m)
    if status == 0:
        status = _registers_refused(s, t, m, set_dat_valid)
    return status


@njit(inline="always")  # one caller
def _unpack(s: Any, t: Any, m: Any, word: Any) -> Any:
    u, set_dat_valid, zeros = m.unpacker, (word >> 6) & 1, (word >> 4) & 1
    status = _refused(s, t, m, set_dat_valid)
    if status:
        return status
    first = geometry.first_cell(s, t, m)
    if first < 0:
        return first
    if u == 0:
        first -= FIRST_CELL
    count = s.adc[m.counters, u, 1, X] - s.adc[m.counters, u, 0, X] + 1
    override = config.thread(s, t, tf.SRCA_SET_SetOvrdWithAddr)
    status = geometry.target_refused(s, m, first, count, override)
    src = geometry.source(s, t, m)
    if status == 0:
        status = geometry.source_refused(s, m, src, count)
    if status == 0 and not zeros:
        status = _exponents_refused(s, m, src, count)
    if status:
        return status
    _write(s, m, src, first, count, zeros)
    counters.count_on(s, t, u, (word >> 15) & 0xFF)
    if m.counters != t:
        counters.count_on(s, m.counters, u, (word >> 15) & 0xFF)
    return banks.hand_over(s, u, m.out) if set_dat_valid else DONE


def _general(s: Any, t: Any, word: Any) -> Any:
    w = np.int64(word)
    u, multi = (w >> 23) & 1, (w >> 7) & 1
    s.detail[0] = (w >> 2) & 1
    s.detail[1] = (w >> 5) & 1
    if s.detail[0] | s.detail[1]:
        return np.int64(_FIELDS)
    if (w >> 13) & 1:  # cfg_context_cnt_inc: nothing is unpacked
        _count_context(s, t, u, s.unpack_context[u, t])
        return np.int64(DONE)
    if (w >> 1) & 1:  # search_cache_flush: that cache has no effect on what is unpacked
        return np.int64(DONE)
    waits = banks.unpack_ready(s, u)
    if waits:
        return np.int64(waits)
    # Context 0 of the address counters is that of the issuing thread, as in ttsim; the text takes
    # thread 0, which is the one that unpacks in LLK.
    adc = (w >> 8) & 3 if multi else 0
    if adc == 3:
        return np.int64(_ADC_CONTEXT)
    k = _context(s, t, u, w) if multi else np.int64(0)
    m = mode_of(s, t, u, multi, k, adc if adc else np.int64(t))
    status = _unpack(s, t, m, w)
    if status == DONE and multi and (w >> 3) & 1:
        _count_context(s, t, u, k)
    return np.int64(status)


general = cold(UNPACK, _general)
