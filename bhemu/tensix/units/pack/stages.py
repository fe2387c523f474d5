"""PACR stage by stage, in every mode: all formats, conversions and row selections.

Source: PACR, Blackhole ISA; the stages of the packer, Wormhole ISA; ttsim's Tensix model.
"""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import config
from bhemu.tensix import config_fields as cf
from bhemu.tensix.formats import INT8
from bhemu.tensix.quirks import noted, refuse
from bhemu.tensix.second_entries import PACK_STAGES, second_entry
from bhemu.tensix.status import DONE, MISSING, UB, UNIMPLEMENTED, error
from bhemu.tensix.units.pack import (
    counters,
    downsample,
    early_conversion,
    edge_mask,
    fp16_sums,
    histogram,
    input_address,
    modes,
    output,
    output_address,
    unwritten,
)
from bhemu.tensix.units.pack.accumulate import accumulate
from bhemu.tensix.units.pack.formats import formats_refused
from bhemu.tensix.units.pack.late_conversion import to_output
from bhemu.tensix.units.pack.relu import relu
from bhemu.tensix.units.pack.threshold import threshold
from bhemu.tensix.units.pack.word import UNKNOWN, PackWord

_WITHOUT_OVERRIDE = UNKNOWN | PackWord.addr_cnt_context.mask
_STRIDED_MASKS = 1 << 0 | 1 << 1 | 1 << 3

_FIELDS = error(
    "PACR-FIELDS",
    MISSING,
    "PACR with ctxt_ctrl, row_pad_zero or cfg_context set, or addr_cnt_context without "
    "ovrd_thread_id ({bits:#x})",
    "there is no specification of them; they must be 0",
)
_ADC_CONTEXT = error(
    "PACR-ADC-CONTEXT", UB, "PACR with addr_cnt_context 3: there are counters of 3 threads"
)
_SELECTION = error(
    "PACR-INTERFACES",
    MISSING,
    "PACR with read_intf_sel={read_intf_sel} and dst_access_mode=1 is not modelled",
    "strided reads are specified for interfaces 0 (all), 1 and 3 only",
)
_STRIDED = error(
    "PACR-STRIDED",
    UNIMPLEMENTED,
    "PACR with dst_access_mode 1 while DEST_ACCESS_CFG_swizzle_32b is {swizzle} and remap_addrs "
    "{remap}",
    "strided reads are modelled with both of them set",
)

_COMPRESSION = error(
    "PACR-COMPRESSION",
    UNIMPLEMENTED,
    "THCON_SEC0_REG1_Disable_zero_compress is 0: silicon compresses what it packs; it was packed "
    "plain, as the golden model does",
    "set THCON_SEC0_REG1_Disable_zero_compress",
)


@njit
def _word_refused(s: Any, b: Any, f: Any) -> Any:
    bits = f.word & (UNKNOWN if f.ovrd_thread_id else _WITHOUT_OVERRIDE)
    if bits:
        return refuse(s, _FIELDS, bits=bits)
    if f.addr_cnt_context == 3:
        return _ADC_CONTEXT
    if f.dst_access_mode == 0:
        return 0
    if (_STRIDED_MASKS >> f.read_intf_sel) & 1 == 0:
        return refuse(s, _SELECTION, read_intf_sel=f.read_intf_sel)
    swizzle = config.get(s, b, cf.DEST_ACCESS_CFG_swizzle_32b)
    remap = config.get(s, b, cf.DEST_ACCESS_CFG_remap_addrs)
    return 0 if swizzle & remap else refuse(s, _STRIDED, swizzle=swizzle, remap=remap)


@njit(forceinline=True)  # one caller
def _refused(s: Any, a: Any, m: Any, rows: Any, zeros: Any) -> Any:
    status = formats_refused(s, m)
    if status == 0:
        status = modes.stages_refused(s, m)
    if status == 0:
        status = input_address.rows_refused(s, a, m, rows)
    if status == 0 and not zeros and edge_mask.masked(s, m.bank):
        status = edge_mask.refused(s, m, rows)
    return status


@njit(forceinline=True)  # one caller
def _read(s: Any, m: Any, rows: Any, zeros: Any, values: Any) -> Any:
    # Datums to `values`; 0, or the error of rows that nothing has written.
    if zeros:  # zero_write reads zeros instead of Dst, past masks and statistics
        for i in range(values.size):
            values[i] = np.uint32(0)
    elif early_conversion.read(s, m, rows, values) > 1:
        return unwritten.refused(s, m, rows, s.unpack_tmp[: values.size])
    return 0


@njit(forceinline=True)  # one caller
def _stages(s: Any, m: Any, rows: Any, values: Any) -> None:
    if edge_mask.masked(s, m.bank):
        edge_mask.clear(s, m, rows, values)
    if m.fmt == INT8:
        early_conversion.settle(s, m, values)
    if m.relu:
        relu(s, m, values)
    if m.fmt != INT8:
        early_conversion.settle(s, m, values)
    histogram.update(s, m, rows, values)
    if config.get(s, m.bank, cf.THCON_SEC0_REG1_Exp_threshold_en):
        threshold(s, m, values)
    to_output(s, m, values)


@njit(forceinline=True)  # one caller
def _pack(s: Any, t: Any, a: Any, m: Any, f: Any) -> Any:
    rows = input_address.rows_of(s, a, m, f.read_intf_sel, f.dst_access_mode)
    zeros = f.zero_write
    status = _refused(s, a, m, rows, zeros)
    if status:
        return status
    place = output_address.place_of(s, a, m)
    status = output_address.place_refused(s, m, downsample.count_of(s, m, rows), place)
    if status:
        return status
    values = s.pack_tmp[: 16 * rows.number]
    status = _read(s, m, rows, zeros, values)
    if status:
        return status
    if modes.compresses(s, m.bank):
        noted(s, _COMPRESSION)
    if not zeros:
        _stages(s, m, rows, values)
    n = downsample.chosen(s, m, rows, values)
    fp16_sums.note(s, m, rows, place.data)
    if m.accumulate:
        accumulate(s, t, m.out, place.data, n)
    output.store(s, m, n, place, values)
    edge_mask.advance(s, m.bank, rows.number, rows.columns)
    output.advance(s, m, n, place, f.last)
    return DONE


def _stage_by_stage(s: Any, t: Any, f: Any) -> Any:
    status = _word_refused(s, config.bank(s, t), f)
    if status:
        return status
    m = modes.mode_of(s, t)
    status = modes.zero_refused(s, m)
    if status:
        return status
    a = f.addr_cnt_context if f.ovrd_thread_id else t
    if f.flush:  # no datum, but the tile ends
        if s.pack_open[0]:
            place = output_address.Place(s.pack_data[0], s.pack_exp[0])
            output.advance(s, m, np.int64(0), place, np.int64(1))
    else:
        status = _pack(s, t, a, m, f)
    if status == DONE:
        counters.count_on(s, t, a, f.addr_mode)
    return status


stage_by_stage = second_entry(PACK_STAGES, _stage_by_stage, PackWord)
