"""Exponent threshold of the packer, on intermediate patterns.

Source: ExponentThresholding, Wormhole ISA; bit for bit after ttsim's Tensix model.
"""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import config
from bhemu.tensix import config_fields as cf
from bhemu.tensix.formats import (
    BF16,
    BFP8,
    FP32,
    INT32,
    TF32,
    UINT16,
)

u32 = np.uint32


@njit
def exponent_at(fmt: Any) -> Any:
    """(shift, mask) of the exponent in the patterns of an intermediate format, after `settle`."""
    if fmt == FP32 or fmt == INT32:
        return 23, 0xFF
    if fmt == UINT16:
        return 0, 0xFF
    if fmt == BF16 or fmt == BFP8:
        return 7, 0xFF
    return 10, 0xFF if fmt == TF32 else 0x1F


@njit
def threshold(s: Any, m: Any, values: Any) -> None:
    """Exponent threshold: datums with a smaller exponent become +0."""
    least = config.get(s, m.bank, cf.THCON_SEC0_REG1_Exp_threshold)
    shift, mask = exponent_at(m.fmt)
    for i in range(values.size):
        if (np.int64(values[i]) >> shift) & mask < least:
            values[i] = u32(0)
