"""Downsampling: which of the datums that were read are packed."""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import config
from bhemu.tensix import config_fields as cf


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
