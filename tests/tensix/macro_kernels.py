"""Production kernels with SFPLOADMACRO, as data: reciprocal, exponential, where, products, maxima.

Facts of tt-llk's kernels for Blackhole, and of the binary maximum of tt-metal: templates,
sequences, and the order of loads.
"""

from typing import Any

import numpy as np
from macro_kernel import (
    BF16,
    FP32,
    INT32,
    LO16,
    LO16_ONLY,
    NOP,
    ROWS,
    UINT16,
    Kernel,
    Rows,
    constant,
    load,
    macro,
    mad,
    sequence,
    store,
    unary,
)

from bhemu.tensix.insn import assemble

ZERO, ONE, MINUS_ONE = 9, 10, 11  # constant LRegs
FLOATB, USHORT = 0, 2  # modes of SFPLOADI
RECIPROCAL = unary("SFPARECIP", 0, 12)


def floats(x: Rows) -> Any:
    return x.view(np.float32).astype(np.float64)


def inverse(x: Rows) -> Any:
    return 1 / floats(x)


def exponential(x: Rows) -> Any:
    y = floats(x)
    return np.where(y <= -88.5, 0.0, np.exp(np.maximum(y, -88.5)))


def per_row(words: list[int]) -> list[int]:
    return words * ROWS


APPROXIMATE = Kernel(
    [RECIPROCAL],
    [sequence(simple=0x44, store=0x4B)],
    0x110,
    [*per_row([macro(0, 0, step=True)]), NOP, NOP],
    per_row([load(0), unary("SFPARECIP", 0, 0), store(0)]),
    ("float",),
    FP32,
    (FP32, 0),
    True,
    inverse,
    2.0**-7,
)


def _with_correction(rows: int) -> list[int]:
    """Macro 2 of a row is two rows late; LReg[7] = 1 names where the argument is kept."""
    words = [constant(0, 0x8000, FLOATB), constant(7, 1, USHORT)]
    for row in range(rows + 2):
        y, last = 3 + row % 3, row >= rows
        words.append(NOP if last else macro(0, y))
        words.append(macro(2, 1, LO16, -4, step=last) if row > 1 else NOP)
        words.append(NOP if last else macro(1, y, LO16_ONLY, step=True))
    return [*words, NOP]


BF16_RECIPROCAL = Kernel(
    [
        RECIPROCAL,
        mad(ZERO, ZERO, 0, 13, 8),
        mad(1, 0, MINUS_ONE, 14),
        unary("SFPIADD", 1, 15, 4),
    ],
    [
        sequence(0x04, 0x05, store=0x83),
        sequence(0xEF, 0xC6, store=0x53),
        sequence(store=0x4B),
    ],
    0x700,
    _with_correction(ROWS),
    [
        constant(2, 0x8000, USHORT),
        *per_row(
            [
                load(0),
                mad(ZERO, ZERO, 0, 1),
                unary("SFPARECIP", 0, 0),
                unary("SFPOR", 2, 0),
                mad(1, 0, MINUS_ONE, 1),
                unary("SFPSHFT", 1, 1, 5, -16),
                unary("SFPIADD", 1, 0, 4),
                store(0),
            ]
        ),
    ],
    ("float",),
    BF16,
    (BF16, 0),
    False,
    inverse,
    2.0**-8,
)


def _newton(rows: int) -> list[int]:
    """Argument and error in LReg[3] and [0], polynomial in [1], product in [2], one row later."""
    new, poly, error = macro(0, 3), macro(2, 1, at=-2), macro(1, 0)
    negated, product = mad(0, 3, ONE, 0, 1), macro(3, 2, at=-2, step=True)
    words = [new, poly, error, negated, load(7, step=True)]
    words += [new, poly, error, negated, product] * (rows - 1)
    return [*words, NOP, poly, NOP, negated, product, *[NOP] * 4]


FP32_RECIPROCAL = Kernel(
    [RECIPROCAL, mad(0, 0, 0, 13), mad(1, 0, 2, 14), unary("SFPSWAP", ONE, 15, 1)],
    [
        sequence(0x04, store=0x73),
        sequence(0x44, 0x15, store=0x13),
        sequence(0x97, 0x06),
        sequence(mad=0xCE, store=0x5B),
    ],
    0xFF0,
    _newton(ROWS),
    per_row(
        [
            load(0),
            unary("SFPARECIP", 0, 1),
            mad(0, 1, ONE, 2, 1),
            mad(2, 2, 2, 3),
            mad(3, 2, 2, 3),
            unary("SFPSWAP", ONE, 3, 1),
            mad(3, 1, 1, 0),
            store(0),
        ]
    ),
    ("float",),
    FP32,
    (FP32, 0),
    True,
    inverse,
    2.0**-21,
)

# exp(x) = the bits of A x + B, rounded to 16 bits, from bit 15 on
_AT = range(0, 2 * ROWS, 2)
SCALE = {12: 0x43B8AA3B, 13: 0x46FDE9A3}


def _clamped(width: dict[str, Any]) -> Kernel:
    first = [w for i, at in enumerate(_AT) for w in (macro(1, i & 3, at=at), NOP)][:-1]
    step = assemble("INCRWC", rwc_d=2)
    plain = [
        load(0),
        unary("SFPSWAP", 14, 0, 9),
        mad(12, 0, 13, 0),
        unary("SFP_STOCH_RND", 0, 0, 6),
        unary("SFPSHFT", 0, 0, 1, 15),
        store(0, step=False),
        step,
    ]
    return Kernel(
        [
            unary("SFPSWAP", 0, 14, 1),
            mad(12, 0, 13, 13),
            unary("SFP_STOCH_RND", 0, 14, 14),
            unary("SFPSHFT", 0, 15, 1, 15),
        ],
        [sequence(0xDF, 0x85, 0x16, 0x63), sequence(0x04, store=0x13)],
        0,
        [*first, *[macro(0, i & 3, at=at) for i, at in enumerate(_AT)], NOP],
        per_row(plain),
        ("exp",),
        want=exponential,
        close=0.04,
        lreg=SCALE | {14: 0xC2B10000},
        **width,
    )


def _unclamped() -> Kernel:
    """SFPSHFT2 runs two rows late, beside the macros."""

    def shift(reg: int) -> int:
        return unary("SFPSHFT2", 14, 4, 5, reg & 3)

    words = [w for i in range(ROWS) for w in (macro(0, i & 3, step=True), shift(i + 2))]
    return Kernel(
        [
            0,
            mad(12, 0, 13, 13),
            unary("SFP_STOCH_RND", 0, 14, 7),
            unary("SFPSETSGN", 4, 15),
        ],
        [sequence(0xEF, 0x85, 0x1E, 0x73)],
        0xF00,
        [*words, NOP, shift(2), NOP, shift(3), NOP, NOP],
        per_row(
            [
                load(0),
                mad(12, 0, 13, 0),
                unary("SFP_STOCH_RND", 0, 0, 7),
                unary("SFPSHFT2", 14, 1, 5),
                unary("SFPSETSGN", 1, 0),
                store(0),
            ]
        ),
        ("exp",),
        FP32,
        (FP32, 0),
        True,
        exponential,
        0.04,
        lreg=SCALE | {14: 15},
        positive=True,
    )


def _chosen(*tiles: Rows) -> Any:
    return np.where(tiles[0] != 0, tiles[1], tiles[2])


def _where(out: int, *, wide: bool) -> Kernel:
    """In place the macro stores; elsewhere a regular SFPSTORE does."""
    mode = INT32 if wide else UINT16
    first = macro(1 if out else 0, 0, mode)
    words = [first, macro(2, 0, mode, 64), load(0, mode, 128, step=not out)]
    words += [store(0, mode, 64 * out)] if out else []
    plain = [
        load(0, mode),
        load(1, mode, 64),
        unary("SFPSETCC", 0, 0, 6),
        load(1, mode, 128),
        assemble("SFPENCC"),
        store(1, mode, 64 * out),
    ]
    return Kernel(
        [unary("SFPSETCC", 0, 12, 6), assemble("SFPENCC", lreg_dest=13)],
        [sequence(0x04, store=0x13), sequence(0x04), sequence(0x05)],
        0x770,
        per_row(words),
        per_row(plain),
        ("flag", "float", "float"),
        INT32 if wide else BF16,
        (INT32 if wide else BF16, out),
        wide,
        _chosen,
    )


def _product(out: int, *factors: int) -> Kernel:
    a, b = (64 * tile for tile in factors)
    if factors == (out, out):
        words = [macro(0, 0, UINT16, b, step=True)]
    elif out in factors:
        other = a if out == factors[1] else b
        words = [load(0, UINT16, other), macro(0, 1, UINT16, 64 * out, step=True)]
    else:
        words = [load(0, UINT16, a), macro(1, 1, UINT16, 64 * out), load(1, UINT16, b, step=True)]
    multiply = {"lreg_src_c": ZERO, "instr_mod1": 0}

    def want(*tiles: Rows) -> Any:
        return tiles[factors[0]] * tiles[factors[1]] & np.uint32(0xFFFF)

    return Kernel(
        [assemble("SFPMUL24", lreg_dest=12, **multiply)],
        [sequence(mad=0xC4, store=0x53), sequence(mad=0xCC, store=0x5B)],
        0x330,
        [*per_row(words), NOP, NOP, NOP],
        per_row(
            [
                load(0, UINT16, a),
                load(1, UINT16, b),
                assemble("SFPMUL24", lreg_src_b=1, lreg_dest=0, **multiply),
                store(0, UINT16, 64 * out),
            ]
        ),
        ("uint16", "uint16"),
        UINT16,
        (UINT16, out),
        False,
        want,
    )


def _extremum(mod: int, want: Any) -> Kernel:
    """SFPSWAP with two loaded LRegs; SFPSHFT2 by 0 brings the result to LReg[16]."""
    words = []
    for row in range(ROWS):
        words += [macro(0, row & 1), load(2, at=64), macro(1, 3, at=128, step=True)]
    plain = [load(0), load(1, at=64), unary("SFPSWAP", 1, 0, mod), store(0, at=128)]
    return Kernel(
        [unary("SFPSWAP", 2, 12, mod), unary("SFPSHFT2", 0, 13, 6)],
        [sequence(0x8C, rounding=0xDD), sequence(store=0x53)],
        0x330,
        [*words, NOP, NOP, NOP],
        per_row(plain),
        ("float", "float"),
        FP32,
        (FP32, 2),
        True,
        lambda x, y: want(floats(x), floats(y)),
        1e-30,
    )


FP32_DST: dict[str, Any] = {"mode": FP32, "result": (FP32, 0), "wide": True}
BF16_DST: dict[str, Any] = {"mode": BF16, "result": (BF16, 0), "wide": False}
KERNELS = {
    "reciprocal, approximate": APPROXIMATE,
    "reciprocal, bf16": BF16_RECIPROCAL,
    "reciprocal, fp32": FP32_RECIPROCAL,
    "exponential, clamped, fp32": _clamped(FP32_DST),
    "exponential, clamped, bf16": _clamped(BF16_DST),
    "exponential": _unclamped(),
    "where, in place": _where(0, wide=True),
    "where, in place, bf16": _where(0, wide=False),
    "where": _where(3, wide=True),
    "product, of one tile": _product(0, 0, 0),
    "product, into the first": _product(0, 0, 1),
    "product, into the second": _product(1, 0, 1),
    "product": _product(2, 0, 1),
    "minimum": _extremum(1, np.minimum),
    "maximum": _extremum(9, np.maximum),
}
