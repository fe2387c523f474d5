"""Packer: Dst to L1."""

from typing import Any

import numpy as np

from bhemu.tensix import config, formats
from bhemu.tensix import config_fields as cf
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.insn import Instruction, bits
from bhemu.tensix.status import DONE, MISSING, UNIMPLEMENTED, UNSUPPORTED, error
from bhemu.tensix.subset import njit
from bhemu.tensix.units.pack import accumulate, bfp, convert, direct, geometry, modes
from bhemu.tensix.units.pack.geometry import PACKER, Y, Z
from bhemu.tensix.words import l1_halves, l1_words

_ADDR_MOD = tf.ADDR_MOD_PACK_SEC0_YsrcIncr.word  # section k is k values further on
_YSRC_CR_BIT = tf.ADDR_MOD_PACK_SEC0_YsrcCR.shift
_YDST_CR_BIT = tf.ADDR_MOD_PACK_SEC0_YdstCR.shift
_INTERFACES = 1 << 0 | 1 << 1 | 1 << 3 | 1 << 5 | 1 << 10

_FIELDS = error(
    "PACR-FIELDS",
    MISSING,
    "PACR with flush ({0}), ctxt_ctrl ({1}), addr_cnt_context, row_pad_zero or cfg_context set",
    "there is no specification of them; they must be 0",
)
_OVERRIDE = error(
    "PACR-OVRD-THREAD", UNSUPPORTED, "PACR with ovrd_thread_id=1 is not modelled", "must be 0"
)
_ZERO_WRITE = error(
    "PACR-ZERO-WRITE", UNIMPLEMENTED, "PACR with zero_write=1 is not modelled", "must be 0"
)
_SELECTION = error(
    "PACR-INTERFACES",
    UNIMPLEMENTED,
    "PACR with read_intf_sel={0} and dst_access_mode={1} is not modelled",
    "interfaces 0 (all), 1, 3, 5 and 10 are; with dst_access_mode 0, 1 and 3",
)
_STRIDED = error(
    "PACR-STRIDED",
    UNIMPLEMENTED,
    "PACR with dst_access_mode 1 while DEST_ACCESS_CFG_swizzle_32b is {0} and remap_addrs {1}",
    "strided reads are modelled with both of them set",
)
_YDST_CR = error(
    "PACR-YDST-CR", UNIMPLEMENTED, "ADDR_MOD_PACK_SEC{0}_YdstCR is not modelled", "must be 0"
)


@njit
def _word_refused(s: Any, t: Any, b: Any, interfaces: Any, strided: Any, addr_mode: Any) -> Any:
    s.detail[0] = interfaces
    s.detail[1] = strided
    if (_INTERFACES >> interfaces) & 1 == 0 or (strided and interfaces > 3):
        return _SELECTION
    if strided:
        s.detail[0] = config.get(s, b, cf.DEST_ACCESS_CFG_swizzle_32b)
        s.detail[1] = config.get(s, b, cf.DEST_ACCESS_CFG_remap_addrs)
        if s.detail[0] & s.detail[1] == 0:
            return _STRIDED
    s.detail[0] = addr_mode
    update = np.int64(s.thread_cfg[t, _ADDR_MOD + addr_mode])
    return _YDST_CR if (update >> _YDST_CR_BIT) & 1 else 0


@njit
def _store(s: Any, m: Any, n: Any, place: Any, values: Any) -> None:
    size, at = formats.datum_bits(m.out), place.data
    if formats.is_bfp(m.out):
        for group in range(n >> 4):
            start = at + 2 * size * group
            block = values[16 * group : 16 * group + 16]
            shared = bfp.assemble(size, block, s.l1[start : start + 2 * size])
            s.l1[place.exponent + group] = np.uint8(shared)
    elif size == 32:
        words = l1_words(s)[at >> 2 : (at >> 2) + n]
        if m.accumulate:
            for i in range(n):
                values[i] = np.uint32(
                    accumulate.add(m.out, np.int64(words[i]), np.int64(values[i]))
                )
        for i in range(n):
            words[i] = values[i]
    elif size == 16:
        halves = l1_halves(s)[at >> 1 : (at >> 1) + n]
        if m.accumulate:
            for i in range(n):
                new = np.int64(values[i])
                values[i] = np.uint32(accumulate.add(m.out, np.int64(halves[i]), new))
        for i in range(n):
            halves[i] = np.uint16(values[i])
    else:
        for i in range(n):
            s.l1[at + i] = np.uint8(values[i])


@njit
def _advance(s: Any, m: Any, n: Any, place: Any, last: Any) -> None:
    s.pack_data[0] = place.data + (n * formats.datum_bits(m.out) >> 3)
    s.pack_exp[0] = place.exponent + (n >> 4)
    s.pack_open[0] = 1 - last
    if last:
        for at in range(s.pack_data[0], (s.pack_data[0] + 15) & ~15):
            s.l1[at] = np.uint8(0)
        if formats.is_bfp(m.out):
            for at in range(s.pack_exp[0], (s.pack_exp[0] + 15) & ~15):
                s.l1[at] = np.uint8(0)


# Channel, counter, wrap, and in ADDR_MOD_PACK: first bit and mask of the increment, clear bit.
_UPDATES = np.array(
    [
        (0, Y, 0x1FFF, tf.ADDR_MOD_PACK_SEC0_YsrcIncr.shift, 15, 5),
        (0, Z, 0xFF, tf.ADDR_MOD_PACK_SEC0_ZsrcIncr.shift, 1, 13),
        (1, Y, 0x1FFF, tf.ADDR_MOD_PACK_SEC0_YdstIncr.shift, 15, 11),
        (1, Z, 0xFF, tf.ADDR_MOD_PACK_SEC0_ZdstIncr.shift, 1, 15),
    ],
    np.int64,
)


@njit
def _count_on(s: Any, t: Any, addr_mode: Any) -> None:
    word = np.int64(s.thread_cfg[t, _ADDR_MOD + addr_mode])
    for i in range(4):
        channel, counter = _UPDATES[i, 0], _UPDATES[i, 1]
        incr = (word >> _UPDATES[i, 3]) & _UPDATES[i, 4]
        if (word >> _UPDATES[i, 5]) & 1:
            s.adc[t, PACKER, channel, counter] = 0
            s.adc_cr[t, PACKER, channel, counter] = 0
        elif i == 0 and (word >> _YSRC_CR_BIT) & 1:
            s.adc_cr[t, PACKER, 0, Y] = (s.adc_cr[t, PACKER, 0, Y] + incr) & _UPDATES[i, 2]
            s.adc[t, PACKER, 0, Y] = s.adc_cr[t, PACKER, 0, Y]
        else:
            at = s.adc[t, PACKER, channel, counter]
            s.adc[t, PACKER, channel, counter] = (at + incr) & _UPDATES[i, 2]


@njit(inline="always")  # one caller
def _pack(s: Any, t: Any, m: Any, interfaces: Any, strided: Any, last: Any) -> Any:
    status = modes.zero_refused(s, m.bank)
    if status == 0:
        status = modes.formats_refused(s, m)
    if status == 0:
        status = modes.relu_refused(s, m)
    if status == 0:
        status = geometry.rows_refused(s, t, m, interfaces)
    if status:
        return status
    rows = geometry.rows_of(s, t, m, interfaces, strided)
    place = geometry.place_of(s, t, m)
    status = geometry.place_refused(s, t, m, rows, place)
    if status == 0:
        status = geometry.edge_refused(s, m.bank, rows.datums)
    if status:
        return status
    if s.pack_open[0] == 0:
        s.pack_datum[0] = 0
        s.pack_row[0] = 0
    masked = geometry.advance(s, m.bank, rows.datums)
    if masked or not direct.pack(s, m, rows, place):
        values = s.pack_tmp
        convert.read(s, m, rows, values)
        if m.relu:
            convert.relu(s, m, values)
        convert.to_output(s, m, values)
        if masked:
            geometry.clear_edges(s, m.bank, rows.datums, values)
        _store(s, m, rows.datums, place, values)
    _advance(s, m, rows.datums, place, last)
    return DONE


class PACR(Instruction, opcode=0x41, unit="pack", stall="B0,B2"):
    """Pack datums from Dst to L1 (PACR, Blackhole ISA)."""

    last = bits(0)
    flush = bits(1)
    ctxt_ctrl = bits(3, 2)
    concat = bits(4)
    ovrd_thread_id = bits(7)
    read_intf_sel = bits(11, 8)
    zero_write = bits(12)
    addr_cnt_context = bits(14, 13)
    addr_mode = bits(16, 15)
    dst_access_mode = bits(17)
    row_pad_zero = bits(20, 18)
    cfg_context = bits(22, 21)

    def execute(
        s: Any,
        t: Any,
        last: Any,
        flush: Any,
        ctxt_ctrl: Any,
        concat: Any,
        ovrd_thread_id: Any,
        read_intf_sel: Any,
        zero_write: Any,
        addr_cnt_context: Any,
        addr_mode: Any,
        dst_access_mode: Any,
        row_pad_zero: Any,
        cfg_context: Any,
    ) -> Any:
        if flush | ctxt_ctrl | addr_cnt_context | row_pad_zero | cfg_context:
            s.detail[0] = flush
            s.detail[1] = ctxt_ctrl
            return _FIELDS
        if ovrd_thread_id:
            return _OVERRIDE
        if zero_write:
            return _ZERO_WRITE
        m = modes.mode_of(s, t)
        status = _word_refused(s, t, m.bank, read_intf_sel, dst_access_mode, addr_mode)
        if status == 0:
            status = _pack(s, t, m, read_intf_sel, dst_access_mode, last)
        if status == 0:
            _count_on(s, t, addr_mode)
        return status


class PACR_SETREG(
    Instruction, opcode=0x4A, unit="pack", stall="B0,B2", oracle=False, uncertain=True
):
    """Write a register from the packer (PACR_SETREG, Wormhole ISA)."""

    last = bits(0)
    flush = bits(1)
    stream_id = bits(7, 2)
    addr_sel = bits(9, 8)
    disable_stall = bits(11, 10)
    unused = bits(21, 12)
    mode_sel = bits(22)
    push = bits(23)
