"""The pseudo-random generator of the vector unit's lanes (SFPMOV, Blackhole ISA)."""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import lane_doubt


@njit
def step(state: Any) -> Any:
    """Next state of one lane's 32-bit shift register; `state` and result are int64."""
    taps = state & 0x80200003
    taps ^= taps >> 16
    taps ^= taps >> 8
    taps ^= taps >> 4
    taps ^= taps >> 2
    taps ^= taps >> 1
    return (state >> 1) | ((1 - (taps & 1)) << 31)


@njit
def seed(s: Any, value: Any) -> None:
    """Reseed all lanes: 32 steps, then two steps per lane, lane 31 first."""
    state = np.int64(value)
    for _ in range(32):
        state = step(state)
    if s.doubt[2]:
        lane_doubt.put(s, np.int64(lane_doubt.RANDOM), np.int64(0))
    for i in range(32):
        state = step(step(state))
        s.prng[31 - i] = np.uint32(state)
