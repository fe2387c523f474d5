"""Registers that change nothing bhemu models: plain storage, counted, shown in the run summary."""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix.rules import DONE


@njit
def load(s: Any, i: Any) -> Any:
    """Load inert register `i` (in the order of their addresses)."""
    s.inert_count[i] += 1
    s.loaded[0] = s.inert[i]
    return DONE


@njit
def store(s: Any, i: Any, value: Any) -> Any:
    """Store to inert register `i` the bits that it keeps."""
    s.inert_count[i] += 1
    s.inert[i] = np.uint32(value)
    return DONE
