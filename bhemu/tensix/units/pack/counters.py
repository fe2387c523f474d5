"""Address counters of the packer after a PACR."""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.units.adc import Y, Z
from bhemu.tensix.units.pack.input_address import PACKER

_ADDR_MOD = tf.ADDR_MOD_PACK_SEC0_YsrcIncr.word  # section k is k values further on

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
