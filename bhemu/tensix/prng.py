"""Random bits: the generator of the vector unit's lanes, and stochastic rounding."""

from typing import Any

import numpy as np

from bhemu.jit.subset import njit
from bhemu.tensix import unspecified
from bhemu.tensix.rules import UNSUPPORTED, error, note_rule

# The pseudo-random generator of the vector unit's lanes (SFPMOV, Blackhole ISA).


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
        unspecified.put(s, np.int64(unspecified.RANDOM), np.int64(0))
    for i in range(32):
        state = step(step(state))
        s.prng[31 - i] = np.uint32(state)


# Stochastic rounding of the matrix unit and the packer, whose random bits no source describes.
#
# It is refused unless `Tile(stochastic=...)` chooses a model: rounding up wherever a bit is lost,
# down everywhere (both for the tests of kernels), or by a shift register of each unit.  That is
# the register of a lane of the vector unit and steps once for each result; the comparison is the
# vector unit's too: up when the lost bits, as a fraction of 23 bits, reach 23 random ones, so that
# an exact result grows now and then.  Power-up starts the registers from the given seed, a write
# of PRNG_SEED from what is written.  Such code notes the rule: none of this is bit-exact.
# Source: SFPSTOCHRND_FloatFloat and FormatConversion, ISA, for what they say of vector unit and
# packer.

REFUSED, UP, DOWN, RANDOM = range(4)  # s.stochastic
FPU, EARLY, LATE, STARTED = range(4)  # generators: sums, early conversion, bfp; a flag
_BITS = 23

_MODELLED = error("STOCHASTIC-MODELLED", UNSUPPORTED, "stochastic rounding was modelled, not bit-exact (Tile(stochastic=...))", "no source says which random bits the matrix unit and the packer take")  # fmt: skip


@njit
def start(s: Any, value: Any) -> None:
    """Start the generators from a seed, as those of the vector unit are started."""
    state = np.int64(value) & 0xFFFFFFFF
    for _ in range(32):
        state = step(state)
    s.stochastic_state[STARTED] = 1
    for unit in range(STARTED):
        state = step(step(state))
        s.stochastic_state[unit] = np.uint32(state)


@njit
def modelled(s: Any) -> Any:
    """True, and noted, when stochastic rounding goes by a model."""
    if s.stochastic[0] == REFUSED:
        return False
    if s.stochastic_state[STARTED] == 0:
        start(s, s.stochastic_seed[0])
    note_rule(s, _MODELLED)
    return True


@njit
def up(s: Any, unit: Any, low: Any, bits: Any) -> Any:
    """1 when a magnitude that loses its `bits` (up to 23) lowest bits, `low`, is rounded up."""
    mode = s.stochastic[0]
    if mode != RANDOM:
        return np.int64(1 if mode == UP and low else 0)
    state = np.int64(s.stochastic_state[unit])
    s.stochastic_state[unit] = np.uint32(step(state))
    random = state & ((1 << _BITS) - 1)
    return np.int64(1 if low << (_BITS - bits) >= random else 0)
