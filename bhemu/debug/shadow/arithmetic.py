"""Arithmetic of the vector unit in float64: sums and products, tables, approximations, rounding."""

import numpy as np

from bhemu.debug.shadow.lanes import After, Word
from bhemu.debug.shadow.numbers import (
    DECODED,
    FLOAT,
    INTEGER,
    RAW,
    SIGNED,
    TRUE,
    Floats,
    exact,
    floats,
    mapped,
    power_of_two,
    product,
)
from bhemu.tensix.units.vector.sfpu import VA, VD

_WHOLE = 2.0**23
_INDEX = 7  # LReg[7] may name operands
_SLOPE, _OFFSET = 2, 4  # scratch rows of SFPLUT and SFPLUTFP32
_KEEP_SIGN = 4  # a mode bit of both
_TEMPLATES = 12


def _sign(w: Word, bit: int) -> float:
    return -1.0 if w.mode >> bit & 1 else 1.0


def _named(w: Word) -> Floats:
    """Numbers of the registers that LReg[7] names, lane by lane."""
    index = w.bits(_INDEX) & 15
    made = np.zeros_like(w.numbers(_INDEX))
    for reg in np.unique(index):
        made[:, index == reg] = w.numbers(int(reg))[:, index == reg]
    return made


def _dest(w: Word, dest: int) -> object:
    return (w.bits(_INDEX) & 15).astype(int) if w.mode & VD and dest < _TEMPLATES else dest


def _three(w: Word) -> After | None:
    """SFPMAD, SFPADD, SFPMUL."""
    a = _named(w) if w.mode & VA else w.numbers(w.v["lreg_src_a"])
    b, c = w.numbers(w.v["lreg_src_b"]), w.numbers(w.v["lreg_src_c"])
    made = product(a, b) * _sign(w, 0) + c * _sign(w, 1)
    # A sum with a constant of this size has no bits below one: it rounds to an integer, on purpose.
    size = np.abs(c[TRUE])
    whole = (w.kinds(w.v["lreg_src_c"]) == RAW) & (size >= _WHOLE) & (size < 2 * _WHOLE)
    return w.result(_dest(w, w.v["lreg_dest"]), made, chosen=whole)


def _immediate(w: Word) -> Floats:
    word = np.full(1, w.v["imm16_math"] << 16, np.uint32)
    return w.constant(float(floats(word)[0]))


def _add_immediate(w: Word) -> After | None:
    dest = w.v["lreg_dest"]
    return w.result(_dest(w, dest), _immediate(w) + w.numbers(dest) * _sign(w, 1))


def _multiply_immediate(w: Word) -> After | None:
    dest = w.v["lreg_dest"]
    return w.result(_dest(w, dest), product(w.numbers(dest), _immediate(w)) * _sign(w, 1))


def _table(w: Word) -> After | None:
    """SFPLUT, SFPLUTFP32: the piece that was chosen, as a line; the table itself is exact."""
    dest = w.v["lreg_ind" if w.name == "SFPLUT" else "lreg_dest"]
    tables = (0, 1, 2) if w.name == "SFPLUT" else (0, 1, 2, 4, 5, 6)
    if w.mode & VD:  # LReg[7] names the destination
        return w.by_change()
    x, clean = w.numbers(3), w.exact(*tables)
    x = x * np.where(np.signbit(floats(w.bits(3))), -1.0, 1.0)

    def after() -> None:
        s = w.shadow.s
        slope, offset = floats(s.lane_tmp[_SLOPE]), floats(s.lane_tmp[_OFFSET])
        made = x * slope
        made[TRUE] = np.where(clean, made[TRUE] + offset, np.nan)
        if w.mode & _KEEP_SIGN:
            value, out = made.sum(axis=0), floats(w.shadow.lanes(dest))
            made = made * np.where(np.signbit(value) == np.signbit(out), 1.0, -1.0)
        kept = w.result(dest, made)
        if kept is not None:
            kept()
        w.shadow.saw("table", w.t, w.word)

    return after


def _approximate(w: Word) -> After | None:
    """SFPARECIP: the functions that it approximates."""
    x, dest = w.numbers(w.v["lreg_c"]), w.v["lreg_dest"]
    held = x.sum(axis=0)
    if w.mode > 1:
        grown = [np.copysign(np.exp(np.abs(value)), value) for value in (x[TRUE], held)]
        return w.result(dest, mapped(x, grown[0], grown[1], np.exp(np.abs(held))))
    made = mapped(x, 1 / x[TRUE], 1 / held, -1 / held**2)
    if w.mode:
        taken = w.bits(w.v["imm12_math"]) >> 31 != 0
        made = np.where(taken, made * np.where(held < 0, -1.0, 1.0), x)
    return w.result(dest, made)


def _round(w: Word) -> After | None:
    """SFP_STOCH_RND: the number itself; scaled down in modes 4 and 5."""
    c, mode = w.v["lreg_src_c"], w.mode & 7
    if mode not in (4, 5):
        return w.result(w.v["lreg_dest"], w.numbers(c), FLOAT if mode < 2 else SIGNED)
    by = w.bits(w.v["lreg_src_b"]) & 31 if w.mode < 8 else np.full(32, w.v["imm8_math"])
    made = w.numbers(c, SIGNED) / power_of_two(by)
    return w.result(w.v["lreg_dest"], made, SIGNED)


def _cast(w: Word) -> After | None:
    """SFPCAST: of integers to floats, where what was chosen is exact; and between integers."""
    c, dest = w.v["lreg_src_c"], w.v["lreg_dest"]
    if w.mode < 2:
        made = exact(DECODED[SIGNED](w.bits(c)), len(w.shadow.lane))
        made[TRUE, np.isnan(w.numbers(c, SIGNED)[TRUE])] = np.nan
        return w.result(dest, made)
    kinds = w.kinds(c)
    if w.mode == 2 or (kinds == FLOAT).any():
        return w.whole_bits(dest, c)
    other = np.select([kinds == INTEGER, kinds == SIGNED], [SIGNED, INTEGER], RAW)
    return w.result(dest, w.shadow.lane[:, c].copy(), other)


RULES = {
    **dict.fromkeys(("SFPMAD", "SFPADD", "SFPMUL"), _three),
    **dict.fromkeys(("SFPLUT", "SFPLUTFP32"), _table),
    "SFPADDI": _add_immediate,
    "SFPMULI": _multiply_immediate,
    "SFPARECIP": _approximate,
    "SFP_STOCH_RND": _round,
    "SFPCAST": _cast,
}
