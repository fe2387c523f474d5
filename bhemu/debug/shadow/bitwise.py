"""Words of the vector unit on bits and integers, in float64."""

import numpy as np

from bhemu.debug.shadow.lanes import After, Word
from bhemu.debug.shadow.numbers import (
    FLOAT,
    INTEGER,
    RAW,
    SIGNED,
    TRUE,
    Floats,
    floats,
    integers,
    power_of_two,
    product,
)

_SIGN_AND_EXPONENT, _MAGNITUDE = 0xFF800000, 0x7FFFFFFF
_LARGEST = 2.0**23  # of SFPMUL24's operands
_NO_ADDEND = 9
_SET_VD = 8  # mode bit of SFPLE and SFPGT
_INDIRECT = 12  # mode bits of SFPMUL24: LReg[7] names operands


def _scale(w: Word) -> After | None:
    """SFPDIVP2, SFPSETEXP, SFPSETSGN."""
    return w.scaled(w.v["lreg_dest"], w.v["lreg_c"])


def _absolute(w: Word) -> After | None:
    c, dest = w.v["lreg_c"], w.v["lreg_dest"]
    return w.scaled(dest, c) if w.mode & 1 else w.whole_bits(dest, c)


def _chosen(w: Word) -> After | None:
    """SFPEXEXP, SFPLZ, the last bits that SFPAND takes: what they find counts as chosen."""
    return w.result(w.v["lreg_dest"], w.constant(0.0), RAW)


def _compared(w: Word) -> After | None:
    """SFPLE, SFPGT: so does what they find, where they write it."""
    return _chosen(w) if w.mode & _SET_VD else None


def _mantissa(w: Word) -> After | None:
    """SFPEXMAN: a part of the number, as an integer."""
    c = w.v["lreg_c"]
    bits, made, kinds, clean = w.bits(c), w.numbers(c), w.kinds(c), w.exact(c)
    held, field = floats(bits), (bits >> 23 & 0xFF).astype(int)
    usual = (field > 0) & (field < 255) & (kinds != RAW)
    made = made * np.where(held < 0, -1.0, 1.0) * power_of_two(150 - field)
    made[TRUE] -= 2.0**23 if w.mode else 0.0
    made[TRUE, ~usual & ~clean] = np.nan
    return w.result(w.v["lreg_dest"], made, np.where(usual | ~clean, INTEGER, RAW))


def _term(w: Word, reg: int, other: int) -> Floats:
    """An operand of SFPIADD: an integer that is added to the bits of a float is chosen."""
    made, kinds = w.numbers(reg, INTEGER), w.kinds(reg)
    whole = (kinds == INTEGER) | (kinds == SIGNED)
    here = whole & (w.kinds(other) == FLOAT) & ~np.isnan(made[TRUE])
    made[TRUE, here] = made[:, here].sum(axis=0)
    made[1:, here] = 0.0
    return made


def _add(w: Word) -> After | None:
    """SFPIADD."""
    c, dest, number = w.v["lreg_c"], w.v["lreg_dest"], w.v["imm12_math"]
    raw = w.kinds(c) == RAW
    if w.mode & 1:
        made = w.numbers(c, INTEGER) + w.constant(float(number - ((number & 0x800) << 1)))
    else:
        raw &= w.kinds(dest) == RAW
        made = _term(w, c, dest) + _term(w, dest, c) * (-1.0 if w.mode & 2 else 1.0)
    return w.result(dest, made, np.where(raw, RAW, INTEGER))


def _shifted(w: Word, dest: int, source: int, by: Floats, copies: int) -> After | None:
    """A shift to the left by `by`: of what counts as an integer a product."""
    bits, raw, clean = w.bits(source), w.kinds(source) == RAW, w.exact(source)
    below = (bits >> 31 != 0) & (by < 0) & (not copies)
    made = w.numbers(source, INTEGER) * power_of_two(by)
    made[TRUE] -= _beyond(made, bits.astype(np.float64) * power_of_two(by), by)
    made[TRUE, below & ~clean] = np.nan
    return w.result(dest, made, np.where(raw | (below & clean), RAW, INTEGER))


def _beyond(made: Floats, moved: Floats, by: Floats) -> Floats:
    """What a shift to the left of the bits of a register moves out of it."""
    kept = np.mod(moved, 2.0**32)
    kept = np.where(kept >= 2.0**31, kept - 2.0**32, kept)
    return np.where(by > 0, np.round((made.sum(axis=0) - kept) / 2.0**32) * 2.0**32, 0.0)


def _amount(bits: Floats) -> Floats:
    """Distance of a shift to the left of these amounts in two's complement, modulo 32."""
    left = np.mod(bits, 32)
    right = np.mod(-left, 32)
    return np.where(bits < 0, -right, left)


def _shift(w: Word) -> After | None:
    """SFPSHFT."""
    mode, c, dest = w.mode & 7, w.v["lreg_c"], w.v["lreg_dest"]
    source = c if mode & 5 == 5 else dest
    number = w.v["imm12_math"]
    same = np.full(32, float(number - ((number & 0x800) << 1)))
    by = _amount(same if mode & 1 else integers(w.bits(c)))
    return _shifted(w, dest, source, by, mode & 2)


def shift_2(w: Word) -> After | None:
    """SFPSHFT2, modes 5 and 6."""
    c, number = w.v["lreg_src_c"], w.v["imm12_math"]
    same = np.full(32, float(number - ((number & 0x800) << 1)))
    by = _amount(integers(w.bits(c)) if w.mode == 5 else same)
    return _shifted(w, w.v["lreg_dest"], number & 15, by, 0)


def _multiply(w: Word) -> After | None:
    """SFPMUL24: the product, or what it is divided by 2**23."""
    a, b, c = w.v["lreg_src_a"], w.v["lreg_src_b"], w.v["lreg_src_c"]
    dest = w.v["lreg_dest"]
    if w.mode & _INDIRECT or c != _NO_ADDEND:
        return w.by_change()
    x, y = w.numbers(a, INTEGER), w.numbers(b, INTEGER)
    raw = (w.kinds(a) == RAW) & (w.kinds(b) == RAW)
    fits = (w.bits(a) < _LARGEST) & (w.bits(b) < _LARGEST)
    clean = w.exact(a, b)
    made = product(x, y) / (_LARGEST if w.mode & 1 else 1.0)
    made[TRUE, ~fits & ~clean] = np.nan
    return w.result(dest, made, np.where(raw | (~fits & clean), RAW, INTEGER))


def _and(w: Word) -> After | None:
    """SFPAND: a number whose last bits are cut off; its magnitude; its last bits; else bits."""
    c, dest = w.v["lreg_c"], w.v["lreg_dest"]
    other = w.v["imm12_math"] if w.mode else dest
    for number, mask in ((c, other), (other, c)):
        bits, kinds = w.bits(mask).astype(np.int64), w.kinds(number)
        if not w.exact(mask).all():
            continue
        low = 2**32 - bits  # the lowest bit that is kept, where all above it are
        cuts = ((low & (low - 1)) == 0).all() and (bits != 0).all()
        if (kinds == INTEGER).all() and cuts:
            return w.result(dest, w.numbers(number, INTEGER), INTEGER)
        if (kinds == INTEGER).all() and (bits & (bits + 1) == 0).all():
            return _chosen(w)
        if (kinds == FLOAT).all() and (bits & _SIGN_AND_EXPONENT == _SIGN_AND_EXPONENT).all():
            return w.result(dest, w.numbers(number))
        if (kinds == FLOAT).all() and (bits == _MAGNITUDE).all():
            return w.scaled(dest, number)
    return w.whole_bits(dest, c, other)


def _two(w: Word) -> After:
    """SFPOR, and SFPXOR, SFPSETMAN, whose second operand is the destination."""
    dest = w.v["lreg_dest"]
    second = w.v["imm12_math"] if w.name == "SFPOR" and w.mode else dest
    immediate = w.name == "SFPSETMAN" and w.mode
    return w.whole_bits(dest, w.v["lreg_c"], *(() if immediate else (second,)))


def _one(w: Word) -> After:
    return w.whole_bits(w.v["lreg_dest"], w.v["lreg_c"])


RULES = {
    **dict.fromkeys(("SFPDIVP2", "SFPSETEXP", "SFPSETSGN"), _scale),
    **dict.fromkeys(("SFPEXEXP", "SFPLZ"), _chosen),
    **dict.fromkeys(("SFPLE", "SFPGT"), _compared),
    **dict.fromkeys(("SFPOR", "SFPXOR", "SFPSETMAN"), _two),
    "SFPABS": _absolute,
    "SFPEXMAN": _mantissa,
    "SFPIADD": _add,
    "SFPSHFT": _shift,
    "SFPMUL24": _multiply,
    "SFPAND": _and,
    "SFPNOT": _one,
}
