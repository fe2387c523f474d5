"""Src banks prepared for products: exponents and signed slices of the mantissas, kept per bank.

A multiplier takes 5 bits of SrcA and 7 bits of SrcB; the two bits of the fidelity phase choose
which.  The slices of a whole bank are cut once, when the first product reads it, and serve all
phases.  `s.src_prepared` names their form; whoever writes cells of a bank calls `banks.changed`,
which forgets them.  Source: MVMUL, Wormhole ISA; products in ttsim's Tensix model.
"""

from typing import Any, NamedTuple

import numpy as np

from bhemu.jit.flat import flat
from bhemu.jit.subset import njit
from bhemu.tensix.banks import SRCA, STALE
from bhemu.tensix.dest import COLUMNS
from bhemu.tensix.rwc import SRC_ROWS

# Forms of the cells of a bank: as bf16, as tf32, with a 5-bit exponent, as integers.
BF16, TF32, FIVE_BIT, INT8 = range(STALE + 1, STALE + 5)
ABSENT = -2000  # exponent of zeros: no sum with another exponent wins a maximum
GROUP = 4  # rows whose exponents are checked together

_U, _I = np.uint32, np.int32
_WIDE = _U(0x70000000)


class Cut(NamedTuple):
    """Slices of a mantissa m: (m >> high_shift) & high_mask, (m << low_shift) & low_mask."""

    hidden: int
    high_shift: int
    high_mask: int
    low_shift: int
    low_mask: int


# SrcA: bits 10-6 and 5-1, doubled so that products can be rounded; SrcB: bits 10-4, and 3-0 in
# the place of the former.  Integers stay where they are.
_FLOAT_A = Cut(0x400, 5, 0x3E, 0, 0x3E)
_FLOAT_B = Cut(0x400, 4, 0x7F, 3, 0x78)
INT8_A = Cut(0, 0, 0xE0, 0, 0x1F)
INT8_B = Cut(0, 0, 0x3F0, 0, 0x00F)


@njit
def mask_of(form: Any) -> Any:
    """Bits of a cell that the form has (uint32)."""
    if form == BF16:
        return _U(0xFFFF0000)
    return _U(0x8FFFE000) if form == FIVE_BIT else _U(0xFFFFE000)


@njit(forceinline=True)
def _slice(v: Any, magnitude: Any) -> Any:
    """`magnitude` with the sign of cell `v`, 0 when its exponent is 0, as int16."""
    m = _I(magnitude)
    m = _I(-m) if v >> _U(31) else m
    return np.int16(m if v & _U(0x7F800000) else _I(0))


@njit
def _cut(s: Any, which: Any, bank: Any, mask: Any, cut: Any) -> None:
    cells, exponents = flat(s.src[which, bank]), flat(s.src_exponent[which, bank])
    high, low = flat(s.src_slice[which, bank, 0]), flat(s.src_slice[which, bank, 1])
    hidden, high_shift, high_mask = _U(cut.hidden), _U(cut.high_shift & 7), _U(cut.high_mask)
    low_shift, low_mask = _U(cut.low_shift & 7), _U(cut.low_mask)
    for i in range(SRC_ROWS * COLUMNS):
        v = _U(cells[i] & mask)
        m = _U(_U(_U(v >> _U(13)) & _U(0x3FF)) | hidden)
        e = _I(_U(v >> _U(23)) & _U(255))
        exponents[i] = np.int16(e if e != _I(0) else _I(ABSENT))
        high[i] = _slice(v, _U(_U(m >> high_shift) & high_mask))
        low[i] = _slice(v, _U(_U(m << low_shift) & low_mask))


@njit
def _note_wide(s: Any, which: Any, bank: Any) -> None:
    for group in range(SRC_ROWS // GROUP):
        found = _U(0)
        for row in range(group * GROUP, group * GROUP + GROUP):
            for col in range(COLUMNS):
                found |= _U(s.src[which, bank, row, col] & _WIDE)
        s.src_wide[which, bank, group] = np.int64(found)


@njit(forceinline=True)
def _prepare(s: Any, which: Any, bank: Any, form: Any) -> None:
    if form == INT8:
        cut = INT8_A if which == SRCA else INT8_B
    else:
        cut = _FLOAT_A if which == SRCA else _FLOAT_B
    _cut(s, which, bank, mask_of(form), cut)
    if form == INT8 or form == FIVE_BIT:
        _note_wide(s, which, bank)
    s.src_prepared[which, bank] = form


@njit
def prepare(s: Any, which: Any, form: Any) -> Any:
    """Prepare the matrix bank of SRCA or SRCB in `form` unless it is; the number of the bank."""
    bank = s.matrix_bank[which] & 1
    if s.src_prepared[which, bank] != form:
        _prepare(s, which, bank, form)
    return bank
