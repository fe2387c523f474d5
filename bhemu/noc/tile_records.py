"""The records of a chip's tiles, as compiled code finds them."""

from typing import Any

import numpy as np

from bhemu.jit.address import record_at
from bhemu.jit.subset import njit
from bhemu.tensix.state import DTYPE

_record = record_at(DTYPE)


@njit
def tile_of(chip: Any, t: Any) -> Any:
    """The record of a tile that is made."""
    return _record(np.int64(chip.tile[t]))
