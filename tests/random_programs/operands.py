"""Classes of operands: the bit patterns where floating-point rules differ."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from random_programs.dice import Dice

Patterns = npt.NDArray[np.int64]


class Shape(NamedTuple):
    """A float layout: sign, `exponent` bits, `mantissa` bits."""

    exponent: int
    mantissa: int

    @property
    def bits(self) -> int:
        """Bits of a pattern."""
        return 1 + self.exponent + self.mantissa


FP32, FP16, BF16, TF32 = Shape(8, 23), Shape(5, 10), Shape(8, 7), Shape(8, 10)
E4M3, E5M2 = Shape(4, 3), Shape(5, 2)


def _join(dice: Dice, n: int, shape: Shape, exponent: Patterns, mantissa: Patterns) -> Patterns:
    sign = dice.array(n, 2) << (shape.bits - 1)
    return sign | exponent << shape.mantissa | mantissa


def _mantissa(dice: Dice, n: int, shape: Shape) -> Patterns:
    return dice.array(n, 1 << shape.mantissa)


def zeros(dice: Dice, n: int, shape: Shape) -> Patterns:
    """+0 and -0."""
    return dice.array(n, 2) << (shape.bits - 1)


def denormals(dice: Dice, n: int, shape: Shape) -> Patterns:
    """Exponent 0, any mantissa."""
    return _join(dice, n, shape, np.zeros(n, np.int64), _mantissa(dice, n, shape))


def infinities(dice: Dice, n: int, shape: Shape) -> Patterns:
    """The highest exponent with mantissa 0, or a NaN's mantissa."""
    top = np.full(n, (1 << shape.exponent) - 1, np.int64)
    return _join(dice, n, shape, top, _mantissa(dice, n, shape) * (dice.array(n, 3) == 0))


def top_exponents(dice: Dice, n: int, shape: Shape) -> Patterns:
    """The three highest exponents, 255 for an 8-bit one."""
    exponent = (1 << shape.exponent) - 1 - dice.array(n, 3)
    return _join(dice, n, shape, exponent, _mantissa(dice, n, shape))


def _near_one(dice: Dice, n: int, shape: Shape, spread: int) -> Patterns:
    bias = (1 << (shape.exponent - 1)) - 1
    spread = min(spread, bias - 1)
    return bias - spread + dice.array(n, 2 * spread + 1)


def ties(dice: Dice, n: int, shape: Shape) -> Patterns:
    """Mantissas of one to three bits: halves between two results of any shorter format."""
    mantissa = np.zeros(n, np.int64)
    for _ in range(3):
        mantissa |= np.int64(1) << dice.array(n, shape.mantissa)
    run = (np.int64(1) << dice.array(n, shape.mantissa)) - 1  # a run of ones carries
    mantissa = np.where(dice.array(n, 4) == 0, mantissa | run, mantissa)
    return _join(dice, n, shape, _near_one(dice, n, shape, 3), mantissa)


def exponent_gaps(dice: Dice, n: int, shape: Shape) -> Patterns:
    """Exponents far apart, so that alignment loses bits."""
    return _join(dice, n, shape, _near_one(dice, n, shape, 40), _mantissa(dice, n, shape))


def ordinary(dice: Dice, n: int, shape: Shape) -> Patterns:
    """Magnitudes around one."""
    return _join(dice, n, shape, _near_one(dice, n, shape, 4), _mantissa(dice, n, shape))


def low_exponents(dice: Dice, n: int, shape: Shape) -> Patterns:
    """The lowest exponents: results underflow."""
    top = min(1 << (shape.exponent - 1), 24)
    return _join(dice, n, shape, dice.array(n, top), _mantissa(dice, n, shape))


def small_integers(dice: Dice, n: int, shape: Shape) -> Patterns:
    """The patterns of -64 .. 63, in two's complement and as sign and magnitude."""
    value = dice.array(n, 128) - 64
    mask = (1 << shape.bits) - 1
    magnitude = np.abs(value) | (value < 0).astype(np.int64) << (shape.bits - 1)
    chosen: Patterns = np.where(dice.array(n, 2) == 0, value & mask, magnitude & mask)
    return chosen


def random_bits(dice: Dice, n: int, shape: Shape) -> Patterns:
    """Any pattern."""
    return dice.array(n, 1 << shape.bits)


CLASSES: Mapping[str, Callable[[Dice, int, Shape], Patterns]] = {
    "zeros": zeros,
    "denormals": denormals,
    "infinities and NaN": infinities,
    "top exponents": top_exponents,
    "ties": ties,
    "exponent gaps": exponent_gaps,
    "ordinary": ordinary,
    "low exponents": low_exponents,
    "small integers": small_integers,
    "random bits": random_bits,
}
FINITE = ("zeros", "ties", "exponent gaps", "ordinary", "low exponents", "denormals")


def mixed(
    dice: Dice, n: int, shape: Shape, names: tuple[str, ...] = tuple(CLASSES), run: int = 16
) -> Patterns:
    """`n` patterns in runs of `run` from one class each; a quarter of them mixed one by one."""
    drawn = np.stack([CLASSES[name](dice, n, shape) for name in names])
    groups = np.repeat(dice.array(-(-n // run), len(names)), run)[:n]
    single = dice.array(n, len(names))
    which = np.where(dice.array(n, 4) == 0, single, groups)
    chosen: Patterns = drawn[which, np.arange(n)]
    return chosen
