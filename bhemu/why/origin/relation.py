"""What a wrong output is of the expected one: its negative, a multiple, transposed, a sum."""

from collections.abc import Iterator
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from bhemu.program.input_files import read_array
from bhemu.program.specs import OutputSpec
from bhemu.program.tensor import Floats, decode, in_words, number_text, widen

_FEW, _KINDS = 16, 4  # values that differ, and of different size, by which a relation is told
_ROUNDED = 2.0**-6  # by which a multiple or a sum may be off
_SURE = 8  # times what is off of a sum is less than what is added
_EDGES = (32, 16)  # of blocks: tiles, faces


def pair(spec: OutputSpec, data: bytes) -> tuple[Floats, Floats]:
    """The values of an output, `data` its bytes, and of the file that it is compared with."""
    assert spec.expect is not None
    got = widen(decode(data, spec.shape, spec.dtype, spec.layout))
    wanted = read_array(spec.expect, spec.dtype, spec.origin)
    if spec.dtype == "raw":
        wanted = np.frombuffer(wanted.tobytes(), np.uint8)
    return got, widen(wanted.reshape(spec.shape))


def relation(got: Floats, wanted: Floats) -> str:
    """For the end of a sentence: what holds for every element that differs, "" if nothing is known.

    Values are compared, not their patterns.
    """
    differs = got != wanted
    both = np.stack([got[differs], wanted[differs]])
    if not np.isfinite(both).all() or both.shape[1] < _FEW:
        return ""
    if max(np.unique(abs(values)).size for values in both) < _KINDS:
        return ""
    got, wanted = (np.where(np.isfinite(values), values, 0) for values in (got, wanted))
    found = next(chain(_of_elements(*both), _of_blocks(got, wanted)), "")
    return f"; {found}" if found else ""


def _of_elements(got: Floats, wanted: Floats) -> Iterator[str]:
    """Of the elements that differ: relations of each to what is expected of it."""
    if not got.any():
        yield "all that differ are 0" + (", which are to be negative" if (wanted < 0).all() else "")
    if not wanted.any() and (got < 0).all():
        yield "all that differ are negative, where 0 is expected"
    if (got == -wanted).all():
        yield "each that differs is the negative of what is expected"
    if np.ptp(got - wanted) == 0:
        more = float(got[0] - wanted[0])
        than = "more" if more > 0 else "less"
        yield f"each that differs is {number_text(abs(more))} {than} than expected"
    if wanted.all():
        factor = float(np.median(got / wanted))
        off = abs(got - factor * wanted)
        if abs(factor) > _ROUNDED < abs(factor - 1) and (off <= _ROUNDED * abs(got)).all():
            yield f"each that differs is {factor:.3g} times what is expected"


def _of_blocks(got: Floats, wanted: Floats) -> Iterator[str]:
    """Of the last two axes: what is transposed, and which block has another one added."""
    if got.ndim < 2:
        return
    *_, rows, columns = got.shape
    if rows == columns and (got == wanted.swapaxes(-1, -2)).all():
        yield "it is what is expected, transposed"
    for edge in (edge for edge in _EDGES if rows % edge == 0 == columns % edge):
        mine, other = _blocks(got, edge), _blocks(wanted, edge)
        wrong = np.flatnonzero((mine != other).any(axis=(1, 2)))
        if (mine[wrong] == other[wrong].swapaxes(1, 2)).all():
            yield f"each block of {edge}x{edge} elements that differs is transposed"
        first = int(wrong[0])
        more = mine[first] - other[first]
        size = abs(mine[first]) + abs(other[first]) + abs(other)
        near = (abs(other - more) <= _ROUNDED * size).all(axis=(1, 2))
        near &= abs(other - more).sum(axis=(1, 2)) * _SURE < abs(more).sum()
        near[first] = False
        if near.any():
            at, by = (_place(n, edge, got.shape) for n in (first, int(np.argmax(near))))
            yield f"the {edge}x{edge} elements at {at} are those expected there plus those at {by}"


def _blocks(values: Floats, edge: int) -> NDArray[np.float64]:
    """The blocks of the last two axes, (blocks, edge, edge)."""
    *_, rows, columns = values.shape
    parts = values.reshape(-1, rows // edge, edge, columns // edge, edge)
    return parts.swapaxes(2, 3).reshape(-1, edge, edge)


def _place(number: int, edge: int, shape: tuple[int, ...]) -> str:
    """The index of the first element of a block."""
    *outer, rows, columns = shape
    grid = (*outer, rows // edge, columns // edge)
    *before, row, column = (int(n) for n in np.unravel_index(number, grid))
    return in_words((*before, row * edge, column * edge))
