"""Numbers with their errors: an exact part, and what each step has added to it.

An array of them is float64 of shape (parts, ...): [TRUE] is what would be there if no step had
rounded, each other part what one step has added. Their sum is what is there, but for what sums in
Dst have lost so far (see `run.py`).
"""

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint32]

STEPS = ("unpack", "fidelity", "sum", "store", "vector", "pack")
# Parts: exact, what the steps have added, and from VECTOR on one for each word of the vector unit.
TRUE, UNPACK, FIDELITY, SUM, STORE, VECTOR = range(6)
MOST_WORDS = 250  # of the vector unit that are told apart; the last part is that of all others
_SIGN, _MAGNITUDE = 0x80000000, 0x7FFFFFFF
_NOISE = 1e-13  # of float64, beside the numbers that were added

# What bits stand for: whatever reads them, as long as they are exact; a float; an integer in two's
# complement; one in sign and magnitude.
RAW, FLOAT, INTEGER, SIGNED = range(4)


def floats(bits: Words) -> Floats:
    """Values of fp32 patterns; denormals are zeros to arithmetic."""
    kept = np.where(bits & 0x7F800000, bits, bits & _SIGN).astype(np.uint32)
    with np.errstate(invalid="ignore"):
        return kept.view(np.float32).astype(np.float64)


def integers(bits: Words) -> Floats:
    """Values in two's complement."""
    return bits.astype(np.uint32).view(np.int32).astype(np.float64)


def signed(bits: Words) -> Floats:
    """Values in sign and magnitude."""
    size = (bits & _MAGNITUDE).astype(np.float64)
    return np.where(bits >> 31, -size, size)


DECODED = {FLOAT: floats, INTEGER: integers, SIGNED: signed}


def exact(value: Floats, parts: int) -> Floats:
    """Numbers without an error."""
    made = np.zeros((parts, *value.shape))
    made[TRUE] = value
    return made


def errors(made: Floats) -> Floats:
    """All errors of numbers together."""
    return np.asarray(made[1:].sum(axis=0))


def rest(held: Floats, made: Floats) -> Floats:
    """What `held` is beside numbers, without the noise of float64."""
    own = held - made.sum(axis=0)
    kept: Floats = np.where(np.abs(own) <= _NOISE * np.abs(made).sum(axis=0), 0.0, own)
    return kept


def product(x: Floats, y: Floats) -> Floats:
    """Of two arrays of numbers: the error of each step goes with the mean of the other factor.

    So the errors add up to that of the product of the values, whatever their size.
    """
    held_x, held_y = x.sum(axis=0), y.sum(axis=0)
    made: Floats = x * ((held_y + y[TRUE]) / 2) + y * ((held_x + x[TRUE]) / 2)
    made[TRUE] = x[TRUE] * y[TRUE]
    return made


def mapped(x: Floats, true: Floats, held: Floats, slope: Floats) -> Floats:
    """Numbers of a function: its values at the exact and at the held `x`, its slope there.

    All errors are stretched alike, as far as the function stretches their sum.
    """
    total = errors(x)
    some = np.abs(total) > 1e-12 * np.abs(x[TRUE])
    with np.errstate(divide="ignore", invalid="ignore"):
        stretch = np.where(some, (held - true) / np.where(some, total, 1.0), slope)
    made = x * stretch
    made[TRUE] = true
    return made


def bits_of(value: Floats) -> Floats:
    """fp32 patterns as integers in two's complement, of any real number between two patterns."""
    size = np.maximum(np.abs(value), 2.0**-126)
    exponent = np.floor(np.log2(size))
    exponent = np.where(np.ldexp(1.0, exponent.astype(int)) > size, exponent - 1, exponent)
    bits = (exponent + 126 + np.ldexp(size, -exponent.astype(int))) * 2.0**23
    bits = np.where(value == 0, 0.0, bits)
    return np.where(np.signbit(value), bits - 2.0**31, bits)


def float_of(bits: Floats) -> Floats:
    """The other way: a real number between two patterns lies between their values."""
    size = np.where(bits < 0, bits + 2.0**31, bits)
    exponent = np.floor(size / 2.0**23)
    value = np.ldexp(1 + size / 2.0**23 - exponent, np.clip(exponent, 0, 255).astype(int) - 127)
    value = np.where(exponent < 1, 0.0, np.where(exponent > 254, np.nan, value))
    return np.where(bits < 0, -value, value)


def power_of_two(value: Any) -> Floats:
    """2**value."""
    made: Floats = np.ldexp(1.0, np.asarray(value).astype(int))
    return made


def reread(made: Floats, bits: Words, old: int, new: int) -> Floats:
    """Numbers of `bits` that stood for `old`, read as `new`; NaN where that is no function."""
    held = DECODED[new](bits)
    negative = bits >> 31 != 0
    if FLOAT not in (old, new):
        found, fits = made.copy(), ~negative
    elif new == FLOAT:
        slope = float_of(made.sum(axis=0) + 1) - float_of(made.sum(axis=0))
        found = mapped(made, float_of(made[TRUE]), held, slope)
        fits = ~negative | (old == INTEGER)
    else:
        field = (bits >> 23 & 0xFF).astype(int)
        slope = power_of_two(150 - field)
        found = mapped(made, bits_of(made[TRUE]), held, slope)
        fits = (field > 0) & (~negative | (new == INTEGER))
    clean = (made[1:] == 0).all(axis=0)
    found[:, ~fits | clean] = 0.0
    found[TRUE, ~fits] = np.nan
    found[TRUE, clean] = np.where(np.isnan(made[TRUE, clean]), np.nan, held[clean])
    return found
