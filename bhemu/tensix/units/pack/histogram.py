"""Exponent statistics of the packer: a histogram, the largest exponent, and their reset.

The silicon follows the largest exponent at all times.  Here both are followed only while
ENABLE_ACC_STATS_Enable is set.  `pack_exponent[1]` counts the PACRs whose exponents were not looked
at, `pack_exponent[2]` those of int8 that the histogram should have and whose bins are unspecified,
so that a reader can tell whether the answer is whole.  Source: ExponentHistogram, CLREXPHIST,
Wormhole ISA; Blackhole has one packer.
"""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import config
from bhemu.tensix import thread_fields as tf
from bhemu.tensix.formats import INT8
from bhemu.tensix.insn import Instruction
from bhemu.tensix.status import DONE
from bhemu.tensix.units.pack.threshold import exponent_at


@njit
def enabled(s: Any) -> Any:
    """Not 0 when any thread has ENABLE_ACC_STATS_Enable."""
    f = tf.ENABLE_ACC_STATS_Enable
    return config.thread(s, 0, f) | config.thread(s, 1, f) | config.thread(s, 2, f)


@njit(forceinline=True)  # one caller
def update(s: Any, m: Any, rows: Any, values: Any) -> None:
    """Count the exponents of intermediate values[0 : 16 * rows], after ReLU."""
    counted = enabled(s)
    if m.fmt == INT8 or not counted:
        s.pack_exponent[1] += 1
        s.pack_exponent[2] += 1 if counted else 0
        return
    shift, mask = exponent_at(m.fmt)
    for k in range(rows.number):
        for i in range(rows.columns):
            exponent = (np.int64(values[16 * k + rows.column + i]) >> shift) & mask
            if s.pack_histogram[exponent & 31] < 255:
                s.pack_histogram[exponent & 31] += np.uint8(1)
            s.pack_exponent[0] = max(s.pack_exponent[0], exponent)


class CLREXPHIST(Instruction, opcode=0x21, unit="matrix", oracle=False, uncertain=True):
    """Clear the exponent histogram of the packer (CLREXPHIST, Wormhole ISA)."""

    def execute(s: Any, t: Any, f: Any) -> Any:
        for i in range(32):
            s.pack_histogram[i] = np.uint8(0)
        s.pack_exponent[:] = 0
        return DONE
