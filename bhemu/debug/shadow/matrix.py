"""The matrix unit beside itself in float64: moves from SrcA, products, sums, their phases."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bhemu.debug.shadow.numbers import (
    FIDELITY,
    FLOAT,
    SIGNED,
    SUM,
    TRUE,
    UNPACK,
    Floats,
    rest,
    signed,
)
from bhemu.jit.plain import plain
from bhemu.tensix import banks, formats, rwc
from bhemu.tensix.units.matrix import operands, prepare

if TYPE_CHECKING:
    from bhemu.debug.shadow.run import Shadow

_After = Callable[[], None]
_PRODUCTS = {"MVMUL": 8, "DOTPV": 8, "GAPOOL": 4}  # and the rows of each
_ELEMENTS = ("ELWADD", "ELWSUB", "ELWMUL")
# How cells of Src hold numbers: exponents of 8 bits, of 5 bits, integers.
EIGHT, FIVE, WHOLE = operands.FLOAT, operands.FIVE_BIT, operands.INT8

# Bits of a mantissa that count in the phases 0 and 1 (SrcA), 0 and 2 (SrcB).
_INTEGERS = (
    (prepare.INT8_A.high_mask, prepare.INT8_A.low_mask),
    (prepare.INT8_B.high_mask, prepare.INT8_B.low_mask),
)
_FLOATS = ((0x7C0, 0x03E), (0x7F0, 0x00F))


class _Cells(NamedTuple):
    """Src cells: sign times power of two, bits of mantissa."""

    scale: Floats
    mantissa: npt.NDArray[np.int64]

    def value(self, mask: int = 0x7FF) -> Floats:
        """Their values, of these bits of the mantissa alone."""
        return self.scale * (self.mantissa & mask)


class _Word(NamedTuple):
    """A word that computes: its factors as cells and as exact numbers (SrcA, SrcB), its phase."""

    name: str
    style: int
    cells: list[_Cells]
    true: list[Floats]
    phase: int


def cells_of(cells: npt.NDArray[np.uint32], style: int) -> _Cells:
    """Cells of Src, by how they hold numbers."""
    exponent = (cells >> 23 & 0xFF).astype(np.int64)
    sign = np.where(cells >> 31, -1.0, 1.0)
    mantissa = (cells >> 13 & 0x3FF).astype(np.int64)
    if style == WHOLE:
        return _Cells(sign, np.where(exponent == 0, 0, mantissa))
    scale = np.ldexp(sign, exponent - (15 if style == FIVE else 127) - 10)
    return _Cells(scale, np.where(exponent == 0, 0, mantissa | 0x400))


def follow(shadow: "Shadow", cls: Any, t: int, word: int) -> _After | None:
    """What a word of the matrix unit does to the numbers, None where it is not followed."""
    v = cls.operands(word)
    if cls.name in _PRODUCTS or cls.name in _ELEMENTS:
        return _computed(shadow, cls.name, t, word, v)
    if cls.name == "MOVA2D" and not v["dest_32b_lo"]:
        return _moved(shadow, t, v)
    return None


def style_of_a(shadow: "Shadow", t: int) -> int:
    """How cells of SrcA hold numbers."""
    if plain(operands.integers)(shadow.s, t):
        return WHOLE
    fmt = int(plain(banks.format_a)(shadow.s, t, banks.SRCA))
    return FIVE if formats.FIVE_BIT >> fmt & 1 else EIGHT


def _moved(shadow: "Shadow", t: int, v: dict[str, int]) -> _After | None:
    """Rows of SrcA to Dst."""
    s, n, style = shadow.s, 8 if v["instr_mod"] else 1, style_of_a(shadow, t)
    if style == WHOLE:
        return None
    rows = (v["src"] + int(s.rwc[t, rwc.SRCA]) + np.arange(n)) & 63
    bank, wide = int(s.matrix_bank[0]) & 1, int(plain(operands.wide_dst)(s, t))
    true, cells = shadow.src[0, bank, rows], cells_of(s.src[0, bank, rows], style)
    storage = shadow.storage(int(plain(rwc.dst_row)(s, t, v["dst"])), n, wide)

    def after() -> None:
        made = np.zeros((SUM + 1, *true.shape))
        made[TRUE], made[UNPACK] = true, cells.value() - true
        held = shadow.held(storage, wide, style == FIVE)
        made[SUM] = rest(held, made)
        shadow.put((storage,), FLOAT, made)

    return after


def _computed(shadow: "Shadow", name: str, t: int, word: int, v: dict[str, int]) -> _After | None:
    s = shadow.s
    accepted = (operands.PRODUCT_A, operands.PRODUCT_B)
    style = int(plain(operands.style_of)(s, t, *accepted, operands.INT8_ONLY))
    if style not in (EIGHT, FIVE, WHOLE) or plain(operands.waits)(s):
        return None
    wide = 1 if style == WHOLE else int(plain(operands.wide_dst)(s, t))
    rows, kind = _PRODUCTS.get(name, 8), SIGNED if style == WHOLE else FLOAT
    added = _added(_word(shadow, name, t, v, style))
    storage = shadow.storage(int(plain(rwc.dst_row)(s, t, v["dst"])), rows, wide)

    def held() -> Floats:
        if style == WHOLE:
            return signed(shadow.bits(storage, wide))
        return shadow.held(storage, wide, style == FIVE)

    made = shadow.numbers((storage,), kind, held())
    if name in ("ELWADD", "ELWSUB") and not v["dest_accum_en"]:
        made[:] = 0.0
    made[: len(added)] += added

    def after() -> None:
        made[SUM] += rest(held(), made)
        shadow.put((storage,), kind, made)
        shadow.saw("sum", t, word)
        if name not in ("ELWADD", "ELWSUB"):
            shadow.saw("fidelity", t, word)

    return after


def _word(shadow: "Shadow", name: str, t: int, v: dict[str, int], style: int) -> _Word:
    s, rows = shadow.s, _PRODUCTS.get(name, 8)
    a_rows, b_rows = _rows(shadow, name, t, v, rows)
    spread = name in _ELEMENTS and v["instr_mod19"] & 1
    columns = np.zeros(16, int) if spread else np.arange(16)
    forms = (plain(banks.format_a)(s, t, banks.SRCA), plain(banks.format_b)(s, t))
    bank = [int(s.matrix_bank[which]) & 1 for which in (banks.SRCA, banks.SRCB)]
    cells, true = [], []
    for which, at, form in ((0, a_rows, forms[0]), (1, b_rows, forms[1])):
        kind = prepare.TF32 if int(form) == formats.TF32 else prepare.BF16
        kind = {FIVE: prepare.FIVE_BIT, WHOLE: prepare.INT8}.get(style, kind)
        mask = plain(prepare.mask_of)(kind)
        pick = np.ix_(at, columns if which else np.arange(16))
        cells.append(cells_of(s.src[which, bank[which]][pick] & np.uint32(mask), style))
        # Unpacking rounds no integer.
        known = shadow.src[which, bank[which]][pick]
        true.append(cells[-1].value() if style == WHOLE else known)
    return _Word(name, style, cells, true, int(plain(rwc.fidelity_phase)(s, t)))


def _rows(shadow: "Shadow", name: str, t: int, v: dict[str, int], rows: int) -> tuple[Any, Any]:
    """Rows of SrcA and SrcB that a word reads."""
    s = shadow.s
    row_a, row_b = int(s.rwc[t, rwc.SRCA]), int(s.rwc[t, rwc.SRCB])
    if name in _PRODUCTS:
        return (row_a & 48) + np.arange(16), (row_b + np.arange(rows)) & 63
    one = v["instr_mod19"] & 2
    return (row_a & 56) + np.arange(8), (row_b & 56) + (np.zeros(8, int) if one else np.arange(8))


def _added(w: _Word) -> Floats:
    """What a word adds to TRUE, UNPACK and FIDELITY of its rows of Dst."""
    (a, b), true = w.cells, w.true
    made = np.zeros((FIDELITY + 1, *b.mantissa.shape))
    if w.name in ("ELWADD", "ELWSUB"):
        sign = -1.0 if w.name == "ELWSUB" else 1.0
        made[TRUE] = true[0] + sign * true[1]
        made[UNPACK] = a.value() + sign * b.value() - made[TRUE]
        return made
    multiply = np.multiply if w.name == "ELWMUL" else np.matmul
    masks_a, masks_b = _INTEGERS if w.style == WHOLE else _FLOATS
    part = multiply(b.value(masks_b[w.phase >> 1 & 1]), a.value(masks_a[w.phase & 1]))
    if w.phase:
        made[FIDELITY] = part
        return made
    made[TRUE], whole = multiply(true[1], true[0]), multiply(b.value(), a.value())
    made[UNPACK] = whole - made[TRUE]
    made[FIDELITY] = part - whole
    return made
