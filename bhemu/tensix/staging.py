"""Writes to LRegs that become visible only at the end of a cycle of the vector unit.

Outside macros an instruction writes its register at once.  While SFPLOADMACRO has instructions
scheduled, up to five sub-units work in one cycle: all of them read what the cycle began with, and
what they write waits here, one cycle longer for instructions that take two.  Source: SFPLOADMACRO,
VectorUnit, Blackhole ISA.
"""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import lane_doubt
from bhemu.tensix.quirks import refuse
from bhemu.tensix.status import DONE, UNSUPPORTED, error

LANES = 32
ENTRIES = 32  # 8 registers of SFPTRANSP, 8 of an indirect SFPMAD, SFPSWAP, the last cycle's rest
BONUS = 16  # LReg[16], which only scheduled instructions reach

_ZERO = np.uint32(0)

_PORT = error(
    "VECTOR-MACRO-PORT",
    UNSUPPORTED,
    "two instructions write LReg[{reg}] in the same cycle, and the ISA text gives no order",
    "change a delay in the sequence, or let one of them write LReg[16]",
)


@njit
def put(s: Any, reg: Any, row: Any) -> None:
    """Stage scratch row `row` for LReg[reg] in the enabled lanes."""
    k = s.stage_used[0] & (ENTRIES - 1)
    value, mask, new, flags = s.stage_value[k], s.stage_mask[k], s.lane_tmp[row], s.cc
    on = np.uint32(0 if s.cc_en[0] else 1)
    for lane in range(LANES):
        value[lane] = new[lane]
        mask[lane] = np.uint32(flags[lane] | on)
    _enter(s, reg)


@njit
def put_where(s: Any, reg: Any, row: Any, flag: Any) -> None:
    """Stage scratch row `row` for LReg[reg] in the lanes where scratch row `flag` is not 0."""
    k = s.stage_used[0] & (ENTRIES - 1)
    value, mask, new, take = s.stage_value[k], s.stage_mask[k], s.lane_tmp[row], s.lane_tmp[flag]
    for lane in range(LANES):
        value[lane] = new[lane]
        mask[lane] = take[lane]
    _enter(s, reg)


@njit
def _enter(s: Any, reg: Any) -> None:
    k = s.stage_used[0] & (ENTRIES - 1)
    s.stage_reg[k] = reg
    s.stage_left[k] = s.stage_latency[0]
    lane_doubt.staged(s, k, reg)
    s.stage_used[0] += 1


@njit
def overlap(s: Any, i: Any, j: Any) -> Any:
    """True when two entries write, or may write, the same lane of the same register."""
    if s.stage_reg[i] != s.stage_reg[j]:
        return False
    if s.doubt[2]:
        return lane_doubt.staged_lanes(s, i) & lane_doubt.staged_lanes(s, j) != 0
    both, x, y = _ZERO, s.stage_mask[i], s.stage_mask[j]
    for lane in range(LANES):
        both |= np.uint32(x[lane] & y[lane])
    return both != _ZERO


@njit
def _apply(s: Any, k: Any) -> None:
    reg = s.stage_reg[k]
    out = s.lreg16[0] if reg == BONUS else s.lreg[reg & 15]
    value, mask = s.stage_value[k], s.stage_mask[k]
    for lane in range(LANES):
        out[lane] = value[lane] if mask[lane] != _ZERO else out[lane]
    if s.doubt[2]:
        lane_doubt.apply(s, k, reg)


@njit
def yield_to(s: Any, k: Any, winner: Any) -> None:
    """Entry `k` leaves the lanes that `winner` writes to it."""
    for lane in range(LANES):
        s.stage_mask[k, lane] &= ~s.stage_mask[winner, lane]
    if s.doubt[2]:
        lane_doubt.yield_to(s, k, winner)


@njit
def _keep(s: Any, k: Any, at: Any) -> None:
    """Move entry `k` down to place `at`."""
    if k == at:
        return
    s.stage_reg[at], s.stage_left[at] = s.stage_reg[k], s.stage_left[k]
    s.stage_doubt[at] = s.stage_doubt[k]
    for lane in range(LANES):
        s.stage_value[at, lane] = s.stage_value[k, lane]
        s.stage_mask[at, lane] = s.stage_mask[k, lane]


@njit
def end_cycle(s: Any) -> Any:
    """Write what is complete; DONE, or the error of two writes to one register."""
    used, kept = s.stage_used[0], np.int64(0)
    for k in range(used):
        s.stage_left[k] -= 1
    for k in range(used):
        for j in range(k):
            if s.stage_left[k] == 0 and s.stage_left[j] == 0 and overlap(s, j, k):
                return refuse(s, _PORT, reg=s.stage_reg[k])
    for k in range(used):
        if s.stage_left[k] == 0:
            _apply(s, k)
    for k in range(used):
        if s.stage_left[k] > 0:
            _keep(s, k, kept)
            kept += 1
    s.stage_used[0] = kept
    if s.doubt[2]:
        lane_doubt.look(s)
    return DONE
