"""ReLU of the packer, on intermediate patterns.

Source: PACR, Blackhole ISA; bit for bit after ttsim's Tensix model.
"""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import config
from bhemu.tensix import config_fields as cf
from bhemu.tensix.formats import (
    FP16,
    FP32,
    INT8,
    INT32,
    TF32,
)

u32 = np.uint32


@njit
def relu(s: Any, m: Any, values: Any) -> None:
    """ReLU on the intermediate patterns: 1 clears negatives, 2 also up to, 3 limits to, T."""
    t = config.get(s, m.bank, cf.STACC_RELU_ReluThreshold)
    sign, down = u32(0x8000), u32(0)
    if m.fmt == TF32 or (m.fmt == FP16 and m.wide):
        sign, t = u32(0x40000), t << 3
    elif m.fmt == FP32 or m.fmt == INT32:
        sign, t, down = u32(0x80000000), t << 16, u32(13)
    elif m.fmt == INT8:
        sign = u32(0x80)
    above = u32(t + 1 if m.relu == 2 else 0)
    threshold = u32(t)
    limit = u32(t >> np.int64(down) if m.relu == 3 else 0xFFFFFFFF)
    for i in range(values.size):
        v = values[i]
        v = u32(0) if (v & sign) or v < above else v
        values[i] = threshold if (v >> down) > limit else v
