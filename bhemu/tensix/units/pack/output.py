"""Writing a PACR's datums to L1, and what a PACR leaves behind: position, padding, counters."""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import code_pages, config, formats
from bhemu.tensix import config_fields as cf
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.units.pack import bfp
from bhemu.tensix.units.pack.geometry import PACKER, Y, Z
from bhemu.tensix.words import l1_halves, l1_words

_ADDR_MOD = tf.ADDR_MOD_PACK_SEC0_YsrcIncr.word  # section k is k values further on


@njit(forceinline=True)
def chosen(s: Any, m: Any, rows: Any, values: Any) -> Any:
    """Move the datums that are packed to the front of values; how many there are.

    Of the columns that the X counters name, those of Downsample_mask, whose bits go round.
    """
    mask = config.get(s, m.bank, cf.THCON_SEC0_REG1_Downsample_mask)
    if mask == 0:
        mask = 0xFFFF
    if rows.columns == 16 and mask == 0xFFFF:
        return rows.number * 16
    n = np.int64(0)
    for k in range(rows.number):
        for i in range(rows.columns):
            if (mask >> i) & 1:
                values[n] = values[16 * k + rows.column + i]
                n += 1
    return n


@njit
def count_of(s: Any, m: Any, rows: Any) -> Any:
    """How many datums `chosen` will choose."""
    mask = config.get(s, m.bank, cf.THCON_SEC0_REG1_Downsample_mask)
    if mask == 0:
        return rows.number * rows.columns
    n = np.int64(0)
    for i in range(rows.columns):
        n += (mask >> i) & 1
    return rows.number * n


@njit(forceinline=True)  # one caller
def store(s: Any, m: Any, n: Any, place: Any, values: Any) -> None:
    """Write values[0:n] (uint32 output datums) to the Place."""
    size, at = formats.datum_bits(m.out), place.data
    if formats.is_bfp(m.out):
        for group in range(n >> 4):
            start = at + 2 * size * group
            block = values[16 * group : 16 * group + 16]
            shared = bfp.assemble(size, block, s.l1[start : start + 2 * size])
            s.l1[place.exponent + group] = np.uint8(shared)
    elif size == 32:
        words = l1_words(s)[at >> 2 : (at >> 2) + n]
        for i in range(n):
            words[i] = values[i]
    elif size == 16:
        halves = l1_halves(s)[at >> 1 : (at >> 1) + n]
        for i in range(n):
            halves[i] = np.uint16(values[i])
    else:
        for i in range(n):
            s.l1[at + i] = np.uint8(values[i])


@njit
def advance(s: Any, m: Any, n: Any, place: Any, last: Any) -> None:
    """Go on behind the n datums; `last` fills up to 16 bytes with zeros and ends the tile."""
    s.pack_data[0] = place.data + (n * formats.datum_bits(m.out) >> 3)
    s.pack_exp[0] = place.exponent + (n >> 4)
    s.pack_open[0] = 1 - last
    code_pages.written(s, place.data, s.pack_data[0] - place.data + 15)
    code_pages.written(s, place.exponent, (n >> 4) + 15)
    if last:
        for at in range(s.pack_data[0], (s.pack_data[0] + 15) & ~15):
            s.l1[at] = np.uint8(0)
        if formats.is_bfp(m.out):
            for at in range(s.pack_exp[0], (s.pack_exp[0] + 15) & ~15):
                s.l1[at] = np.uint8(0)


# Channel, counter, wrap, and in ADDR_MOD_PACK: first bit and mask of the increment, clear bit, CR
# bit (-1: none).
_UPDATES = np.array(
    [
        (0, Y, 0x1FFF, tf.ADDR_MOD_PACK_SEC0_YsrcIncr.shift, 15, 5, 4),
        (0, Z, 0xFF, tf.ADDR_MOD_PACK_SEC0_ZsrcIncr.shift, 1, 13, -1),
        (1, Y, 0x1FFF, tf.ADDR_MOD_PACK_SEC0_YdstIncr.shift, 15, 11, 10),
        (1, Z, 0xFF, tf.ADDR_MOD_PACK_SEC0_ZdstIncr.shift, 1, 15, -1),
    ],
    np.int64,
)


@njit
def count_on(s: Any, t: Any, a: Any, addr_mode: Any) -> None:
    """Update the packer's Y and Z counters of thread `a` by section `addr_mode` of thread `t`."""
    word = np.int64(s.thread_cfg[t, _ADDR_MOD + addr_mode])
    for i in range(4):
        channel, counter = _UPDATES[i, 0], _UPDATES[i, 1]
        incr = (word >> _UPDATES[i, 3]) & _UPDATES[i, 4]
        if (word >> _UPDATES[i, 5]) & 1:
            s.adc[a, PACKER, channel, counter] = 0
            s.adc_cr[a, PACKER, channel, counter] = 0
        elif _UPDATES[i, 6] >= 0 and (word >> _UPDATES[i, 6]) & 1:
            start = s.adc_cr[a, PACKER, channel, counter]
            s.adc_cr[a, PACKER, channel, counter] = (start + incr) & _UPDATES[i, 2]
            s.adc[a, PACKER, channel, counter] = s.adc_cr[a, PACKER, channel, counter]
        else:
            at = s.adc[a, PACKER, channel, counter]
            s.adc[a, PACKER, channel, counter] = (at + incr) & _UPDATES[i, 2]
