"""PACR: the instruction, its stages in every mode, and the fast path for whole rows."""

from typing import Any

import numpy as np

from bhemu.jit.intrinsics import flat
from bhemu.jit.subset import njit
from bhemu.tensix import config, dest, spaces
from bhemu.tensix import config_fields as cf
from bhemu.tensix.formats import BF16, FP32, INT8
from bhemu.tensix.insn import PACK_ACCUMULATE, PACK_STAGES, Instruction, second_entry
from bhemu.tensix.rules import DONE, MISSING, UB, UNIMPLEMENTED, error, note_rule, refuse
from bhemu.tensix.state import THREADS, l1_halves, l1_words
from bhemu.tensix.units.pack import addresses, conversion, modes, output
from bhemu.tensix.units.pack.conversion import relu, threshold, to_output
from bhemu.tensix.units.pack.modes import (
    READ_CONFIG,
    UNKNOWN,
    PackWord,
    formats_refused,
    intermediate,
)
from bhemu.tensix.units.pack.output import accumulate

# PACR stage by stage, in every mode: all formats, conversions and row selections.

_WITHOUT_OVERRIDE = UNKNOWN | PackWord.addr_cnt_context.mask
_STRIDED_MASKS = 1 << 0 | 1 << 1 | 1 << 3

_FIELDS = error("PACR-FIELDS", MISSING, "PACR with ctxt_ctrl, row_pad_zero or cfg_context set, or addr_cnt_context without ovrd_thread_id ({bits:#x})", "there is no specification of them; they must be 0")  # fmt: skip
_ADC_CONTEXT = error("PACR-ADC-CONTEXT", UB, "PACR with addr_cnt_context 3: there are counters of 3 threads")  # fmt: skip
_SELECTION = error("PACR-INTERFACES", MISSING, "PACR with read_intf_sel={read_intf_sel} and dst_access_mode=1 is not modelled", "strided reads are specified for interfaces 0 (all), 1 and 3 only")  # fmt: skip
_STRIDED = error("PACR-STRIDED", UNIMPLEMENTED, "PACR with dst_access_mode 1 while DEST_ACCESS_CFG_swizzle_32b is {swizzle} and remap_addrs {remap}", "strided reads are modelled with both of them set")  # fmt: skip

_COMPRESSION = error("PACR-COMPRESSION", UNIMPLEMENTED, "THCON_SEC0_REG1_Disable_zero_compress is 0: silicon compresses what it packs; it was packed plain, as the golden model does", "set THCON_SEC0_REG1_Disable_zero_compress")  # fmt: skip


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
    status = formats_refused(s, m) or modes.stages_refused(s, m)
    status = status or addresses.rows_refused(s, a, m, rows)
    if status == 0 and not zeros and addresses.masked(s, m.bank):
        status = addresses.refused(s, m, rows)
    return status


@njit(forceinline=True)  # one caller
def _read(s: Any, m: Any, rows: Any, zeros: Any, values: Any) -> Any:
    # Datums to `values`; 0, or the error of rows that nothing has written.
    if zeros:  # zero_write reads zeros instead of Dst, past masks and statistics
        for i in range(values.size):
            values[i] = np.uint32(0)
    elif conversion.read(s, m, rows, values) > 1:
        return addresses.unwritten_rows_refused(s, m, rows, s.unpack_tmp[: values.size])
    return 0


@njit(forceinline=True)  # one caller
def _pack(s: Any, t: Any, a: Any, m: Any, f: Any) -> Any:
    rows = addresses.rows_of(s, a, m, f.read_intf_sel, f.dst_access_mode)
    zeros = f.zero_write
    status = _refused(s, a, m, rows, zeros)
    if status:
        return status
    place = addresses.place_of(s, a, m)
    status = addresses.place_refused(s, m, addresses.count_of(s, m, rows), place)
    if status:
        return status
    values = s.pack_tmp[: 16 * rows.number]
    status = _read(s, m, rows, zeros, values)
    if status:
        return status
    if modes.compresses(s, m.bank):
        note_rule(s, _COMPRESSION)
    if not zeros:
        if addresses.masked(s, m.bank):
            addresses.clear(s, m, rows, values)
        if m.fmt == INT8:
            conversion.settle(s, m, values)
        if m.relu:
            relu(s, m, values)
        if m.fmt != INT8:
            conversion.settle(s, m, values)
        output.update(s, m, rows, values)
        if config.get(s, m.bank, cf.THCON_SEC0_REG1_Exp_threshold_en):
            threshold(s, m, values)
        to_output(s, m, values)
    n = addresses.chosen(s, m, rows, values)
    conversion.note(s, m, rows, place.data)
    if m.accumulate:
        accumulate(s, t, m.out, place.data, n)
    output.store(s, m, n, place, values)
    addresses.advance(s, m.bank, rows.number, rows.columns)
    output.advance(s, m, n, place, f.last)
    return DONE


def _stage_by_stage(s: Any, t: Any, f: Any) -> Any:
    m = modes.mode_of(s, t)
    status = _word_refused(s, m.bank, f) or modes.zero_refused(s, m)
    if status:
        return status
    a = f.addr_cnt_context if f.ovrd_thread_id else t
    if f.flush:  # no datum, but the tile ends
        if s.pack_open[0]:
            place = addresses.Place(s.pack_data[0], s.pack_exp[0])
            output.advance(s, m, np.int64(0), place, np.int64(1))
    else:
        status = _pack(s, t, a, m, f)
    if status == DONE:
        addresses.count_on(s, t, a, f.addr_mode)
    return status


stage_by_stage = second_entry(PACK_STAGES, _stage_by_stage, PackWord)


# PACR of four whole Dst rows straight to L1: bf16 or fp32 as it is, or fp32 rounded to bf16.
#
# This gives what the two conversions give, in one loop instead of three.  Every operation is cast
# to uint32: without the casts the compiler uses lanes of 64 bits, at a third of the speed.

u32 = np.uint32
_DATUMS = 64


@njit
def _bf16(cells: Any, out: Any) -> None:
    for i in range(_DATUMS):
        c = u32(cells[i])
        high = u32(u32(c & u32(0x8000)) | u32(u32(c & u32(0xFF)) << u32(7)))
        v = u32(high | u32(u32(c >> u32(8)) & u32(0x7F)))
        m = u32(v & u32(0x7FFF))
        v = u32(u32(v & u32(0x8000)) | u32(0x7F80)) if m > u32(0x7F80) else v
        out[i] = np.uint16(u32(0) if m < u32(0x80) else v)


@njit
def _fp32_to_bf16(upper: Any, lower: Any, out: Any) -> None:
    for i in range(_DATUMS):
        c = u32(upper[i])
        high = u32(u32(c & u32(0x8000)) | u32(u32(c & u32(0xFF)) << u32(7)))
        v = u32(high | u32(u32(c >> u32(8)) & u32(0x7F)))
        v = u32(u32(v << u32(16)) | u32(lower[i]))
        m = u32(v & u32(0x7FFFFFFF))
        v = u32(u32(v & u32(0x80000000)) | u32(0x7F800000)) if m > u32(0x7F800000) else v
        v = u32(u32(v + u32(0x8000)) >> u32(16))
        out[i] = np.uint16(u32(0) if u32(v & u32(0x7FFF)) < u32(0x80) else v)


@njit
def _suits(s: Any, m: Any, rows: Any) -> Any:
    """True when `_pack` can do the Rows in Mode `m`: four whole valid rows in one piece."""
    if m.fmt != m.out or m.relu | m.accumulate | m.raw | m.round_fp16:
        return False
    at = dest.adj32(rows.first) if m.wide else dest.row16(s, rows.first)
    if m.wide:
        if not (m.fmt == BF16 or m.fmt == FP32):
            return False
    elif m.fmt != BF16:
        return False
    if rows.first & 3 or rows.mask != 15 or rows.step != 1 or rows.columns != 16:
        return False
    flags = s.dst_valid[at : at + 4]  # 1: valid and written
    if not (flags[0] == 1 and flags[1] == 1 and flags[2] == 1 and flags[3] == 1):
        return False
    if m.wide == 0:
        return True
    lower = s.dst_valid[at + dest.LOW_HALF : at + dest.LOW_HALF + 4]
    return (lower[0] | lower[1] | lower[2] | lower[3]) <= 1


@njit
def _pack_whole_rows(s: Any, m: Any, rows: Any, place: Any) -> None:
    """Pack the Rows to the Place in Mode `m`, for which `_suits` was true."""
    at = dest.adj32(rows.first) if m.wide else dest.row16(s, rows.first)
    store = flat(s.dst)
    upper = store[at * 16 : at * 16 + _DATUMS]
    if m.fmt == FP32:
        lower = store[(at + dest.LOW_HALF) * 16 : (at + dest.LOW_HALF) * 16 + _DATUMS]
        first = place.data >> 2
        out = l1_words(s)[first : first + _DATUMS]
        for i in range(_DATUMS):
            c = u32(upper[i])
            high = u32(u32(c & u32(0x8000)) | u32(u32(c & u32(0xFF)) << u32(7)))
            v = u32(high | u32(u32(c >> u32(8)) & u32(0x7F)))
            out[i] = u32(u32(v << u32(16)) | u32(lower[i]))
        return
    first = place.data >> 1
    out = l1_halves(s)[first : first + _DATUMS]
    if m.wide:
        lower = store[(at + dest.LOW_HALF) * 16 : (at + dest.LOW_HALF) * 16 + _DATUMS]
        _fp32_to_bf16(upper, lower, out)
    else:
        _bf16(upper, out)


@njit(forceinline=True)  # one caller
def pack_whole_rows(s: Any, t: Any, addr_mode: Any, last: Any) -> Any:
    """True when a PACR of all interfaces was such a one and is done; else nothing has happened."""
    m = modes.mode_of(s, t)
    rows = addresses.rows_of(s, t, m, 15, 0)
    if not _suits(s, m, rows) or rows.column or addresses.counts_partly(s, t, m):
        return False
    if modes.zero_fields(s, m.bank) or modes.compresses(s, m.bank):
        return False
    if intermediate(s, m.bank) != m.fmt:
        return False
    if addresses.masked(s, m.bank) or output.enabled(s) or modes.staged(s, m.bank):
        return False
    place = addresses.place_of(s, t, m)
    if addresses.place_refused(s, m, _DATUMS, place):
        return False
    _pack_whole_rows(s, m, rows, place)
    s.pack_exponent[1] += 1
    addresses.advance(s, m.bank, rows.number, rows.columns)
    output.advance(s, m, _DATUMS, place, last)
    addresses.count_on(s, t, t, addr_mode)
    return True


# Its own entry packs four whole rows; all other modes are compiled when a program first needs them.

_ANY = (PackWord.last, PackWord.concat, PackWord.read_intf_sel, PackWord.addr_mode)
_MUST_BE_ZERO = sum(field.mask for field in PackWord.fields if field not in _ANY)


class PACR(
    PackWord,
    Instruction,
    opcode=0x41,
    unit="pack",
    formats="pack",
    by_chance=(cf.ALU_ROUNDING_MODE_Gasket_srnd_en, cf.ALU_ROUNDING_MODE_Packer_srnd_en),
    second_entries=(PACK_STAGES, PACK_ACCUMULATE),
):
    """Pack datums from Dst to L1 (PACR, Blackhole ISA)."""

    reads = (spaces.ALL_DST | spaces.adc("4") | spaces.PACKER | spaces.EXPONENTS | READ_CONFIG) | (
        spaces.ALL_L1 | spaces.DEBUG | spaces.TDMA
    )
    writes = (spaces.ALL_L1 | spaces.adc("4") | spaces.PACKER | spaces.EXPONENTS) | (
        spaces.STOCHASTIC | spaces.TDMA
    )

    def advance(s: Any, t: Any, f: Any) -> Any:
        a = f.addr_cnt_context if f.ovrd_thread_id else t
        if a < THREADS:  # the packer refuses another one
            addresses.count_on(s, t, a, f.addr_mode)
        return DONE

    def execute(s: Any, t: Any, f: Any) -> Any:
        if f.word & _MUST_BE_ZERO == 0 and (f.read_intf_sel == 0 or f.read_intf_sel == 15):
            if pack_whole_rows(s, t, f.addr_mode, f.last):
                return DONE
        return stage_by_stage(s, t, f.word)
