"""Vector unit (SFPU): operands that LReg[7] names lane by lane (INDIRECT_VA, INDIRECT_VD).

Source: SFPMAD, Blackhole ISA; SFPADDI, SFPMULI, SFPLUT, SFPLUTFP32 and SFPMUL24 share the second.
"""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import lanes, staging
from bhemu.tensix.quirks import refuse
from bhemu.tensix.status import DONE
from bhemu.tensix.units.vector.sfpu import VD

_U = np.uint32
_ZERO = _U(0)
FACTOR = 2  # scratch row of `source`


@njit
def source(s: Any) -> None:
    """Scratch `FACTOR` = in each lane the LReg that LReg[7] names."""
    out, index = s.lane_tmp[FACTOR], s.lreg[7]
    for lane in range(lanes.LANES):
        out[lane] = s.lreg[np.int64(index[lane] & _U(15)), lane]


@njit
def refused(s: Any) -> Any:
    """DONE, or the error of a write to whatever LReg[7] names (TEN-2932)."""
    if s.lane_config[0] & _U(lanes.ENABLE_DEST_INDEX):
        return refuse(s, lanes.DEST_INDEX, dest=7)
    return DONE


@njit
def _write(s: Any) -> None:
    """Write the scratch value to the LReg that LReg[7] names in each lane, constants excepted."""
    flag, index, named = s.lane_tmp[lanes.FLAG], s.lreg[7], s.lane_tmp[FACTOR]
    flags, on = s.cc, lanes.unmasked(s)
    for lane in range(lanes.LANES):
        named[lane] = _U(index[lane] & _U(15))
    for reg in range(lanes.WRITABLE):
        any_lane = _ZERO
        for lane in range(lanes.LANES):
            enabled = _U(flags[lane] | on)
            flag[lane] = enabled if named[lane] == _U(reg) else _ZERO
            any_lane |= flag[lane]
        if any_lane != _ZERO:
            lanes.write_where(s, np.int64(reg), lanes.VALUE)


@njit
def write(s: Any, mod: Any, dest: Any) -> None:
    """The scratch value to LReg[dest], or where LReg[7] says when `mod` has bit 3 (VD)."""
    if mod & VD and lanes.target(s, dest) != staging.BONUS:
        _write(s)
    else:
        lanes.write(s, dest)
