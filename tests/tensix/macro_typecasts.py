"""Production kernels with SFPLOADMACRO, as data: conversions of formats.

Facts of tt-llk's kernels for Blackhole.  LReg[12] to [14] are the programmable constants.
"""

from typing import Any

import numpy as np
from macro_kernel import (
    BF16,
    FP32,
    INT32,
    LLK,
    NOP,
    ROWS,
    SILICON,
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
from macro_kernels import FLOATB, ONE, USHORT, ZERO, per_row

from bhemu.tensix.insn import assemble

MINUS_31, BELOW_16 = {12: -31 & 0xFFFFFFFF}, -16
TO_FP32 = unary("SFPCAST", 0, 12)
INDIRECT = mad(0, ONE, 0, 13, 4)
TWO_31, MINUS_TWO_31 = 0x4F00, 0xCF00
ENABLE_ALL = assemble("SFPENCC")


def rounded(reg: int, mod: int) -> int:
    return unary("SFP_STOCH_RND", reg, reg, mod)


def to_even(bits: Any) -> Any:
    """Nearest bf16, ties to even; finite numbers only."""
    bits = bits.astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16 << 16).astype(np.uint32)


def to_bf16(bits: Any) -> Any:
    """Nearest bf16 as SFP_STOCH_RND has it: ties away from zero."""
    return ((bits.astype(np.uint64) + 0x8000) >> 16 << 16).astype(np.uint32)


def bits_of(x: Any) -> Any:
    return np.asarray(x, np.float32).view(np.uint32)


def of_unsigned(x: Rows) -> Any:
    """The sign bit counts 2^31 after the other bits were rounded."""
    low = (x & np.uint32(0x7FFFFFFF)).astype(np.float32)
    return bits_of(np.where(x >> 31, low + np.float32(2.0**31), low))


def of_signed(x: Rows) -> Any:
    return bits_of(x.view(np.int32).astype(np.float32))


def saturated(x: Any) -> Any:
    """Nearest integer of 16 bits without sign, ties to even."""
    return np.clip(np.rint(np.maximum(x, 0)), 0, 0xFFFF).astype(np.uint32)


def of_sign_magnitude(x: Rows) -> Any:
    magnitude = (x & np.uint32(0x7FFFFFFF)).astype(np.float64)
    return saturated(np.where(x >> 31, -magnitude, magnitude))


def _alternating(first: int, mode: int, *others: Any) -> list[int]:
    """Macro 0 into two LRegs in turn; `others` make the words after it from the LReg's number."""
    words = []
    for row in range(ROWS):
        reg = first + (row & 1)
        words += [macro(0, reg, mode, step=True), *(other(reg) for other in others)]
    return words


def _nop(_: int) -> int:
    return NOP


def _fp32_to_bf16() -> Kernel:
    """A 32-bit store of the lowest bit, then one of the upper half."""
    words = []
    for row in range(ROWS):
        a = row & 1
        words += [macro(0, a), macro(1, 2, step=True), unary("SFPAND", 12, a)]
    plain = [
        load(1),
        unary("SFPSHFT", 1, 0, 5, BELOW_16),
        unary("SFPAND", 12, 0),
        unary("SFPIADD", 13, 1, 4),
        unary("SFPIADD", 0, 1, 4),
        store(1, BF16),
    ]
    return Kernel(
        [
            unary("SFPSHFT2", 0, 12, 6, BELOW_16),
            unary("SFPIADD", 13, 13, 4),
            unary("SFPIADD", 2, 14, 4),
        ],
        [sequence(0xDE, rounding=0x84, store=0x1B), sequence(0x8D, store=0x5B)],
        0x312,
        [*words, NOP, NOP, NOP],
        per_row(plain),
        ("float",),
        FP32,
        (BF16, 0),
        True,
        to_even,
        lreg={12: 1, 13: 0x7FFF},
        reference=LLK,
    )


def _from_signed(narrow: bool) -> Kernel:
    """The sign bit of the absolute value, in LReg[7], names the addend 0 or -2^31."""
    others = [
        lambda v: unary("SFPABS", v, 4),
        lambda v: assemble("SFPSHFT2", lreg_src_c=12, imm12_math=4, lreg_dest=7, instr_mod1=5),
        lambda v: unary("SFPCAST", 4, 4),
    ]
    start = [constant(0, 0, USHORT), constant(1, MINUS_TWO_31, FLOATB)]
    plain = [
        load(0, INT32),
        unary("SFPABS", 0, 1),
        unary("SFPCAST", 1, 2),
        unary("SFPSETSGN", 2, 0),
        unary("SFPSETCC", 1, 0),
        assemble("SFPADDI", imm16_math=MINUS_TWO_31, lreg_dest=0),
        ENABLE_ALL,
        *([rounded(0, 1)] if narrow else []),
        store(0),
    ]
    wide, short = sequence(0x9C, 0x65, store=0x73), sequence(0x9C, 0x25, 0x76, 0x7B)
    return Kernel(
        [unary("SFPSETSGN", 4, 12), INDIRECT, unary("SFP_STOCH_RND", 0, 14, 1)],
        [short if narrow else wide],
        0x100 if narrow else 0x103,
        [*start, *_alternating(2, INT32, *others), *[NOP] * (5 if narrow else 4)],
        per_row(plain),
        ("int32",),
        INT32,
        (FP32, 0),
        True,
        (lambda x: to_bf16(of_signed(x))) if narrow else of_signed,
        lreg=MINUS_31,
    )


def _plain_from_unsigned(narrow: bool) -> list[int]:
    return per_row(
        [
            load(0, INT32),
            unary("SFPSETSGN", 0, 1, 1),
            unary("SFPCAST", 1, 1),
            unary("SFPSETCC", 0, 0),
            assemble("SFPADDI", imm16_math=TWO_31, lreg_dest=1),
            ENABLE_ALL,
            *([rounded(1, 1)] if narrow else []),
            store(1, FP32),
        ]
    )


UNSIGNED = [constant(0, 0, USHORT), constant(1, TWO_31, FLOATB)]


def _from_unsigned() -> Kernel:
    """Three macros per row, the last into LReg[7], of which the sign bit stays."""
    words = [macro(0, 2, INT32), macro(1, 3, INT32), macro(2, 7, INT32, step=True)]
    return Kernel(
        [
            unary("SFPSETSGN", 0, 12, 1),
            unary("SFPCAST", 2, 13),
            unary("SFPSHFT2", 12, 14, 5),
            mad(0, ONE, 0, 15, 4),
        ],
        [sequence(0x04), sequence(0x85, 0x57), sequence(rounding=0x86, store=0x5B)],
        0x703,
        [*UNSIGNED, *per_row(words), *[NOP] * 4],
        _plain_from_unsigned(narrow=False),
        ("int32",),
        INT32,
        (FP32, 0),
        True,
        of_unsigned,
        lreg=MINUS_31,
    )


def _from_unsigned_narrow() -> Kernel:
    """The kernel expects -31 in LReg[12], which its own set-up does not write."""
    others = [
        lambda v: assemble("SFPSHFT2", lreg_src_c=12, imm12_math=v, lreg_dest=7, instr_mod1=5),
        lambda v: unary("SFPSETSGN", v, v, 1),
    ]
    return Kernel(
        [TO_FP32, INDIRECT, unary("SFP_STOCH_RND", 0, 14, 1)],
        [sequence(0x14, 0x1D, 0x6E, 0x73)],
        0x100,
        [*UNSIGNED, *_alternating(2, INT32, *others), *[NOP] * 5],
        _plain_from_unsigned(narrow=True),
        ("int32",),
        INT32,
        (FP32, 0),
        True,
        lambda x: to_bf16(of_unsigned(x)),
        lreg=MINUS_31,
    )


def _to_uint16(integer: bool) -> Kernel:
    """The maximum with 0, in a mode that silicon takes for 9, then rounding; 0 as a constant."""
    others = [lambda v: unary("SFPCAST", v, v), _nop] if integer else [_nop]
    plain = [
        load(0, INT32 if integer else 0),
        *([unary("SFPCAST", 0, 0)] if integer else []),
        unary("SFPSWAP", ZERO, 0, 9),
        rounded(0, 6),
        store(0, UINT16),
    ]
    seq = sequence(0x8C, rounding=0x5D, store=0x63) if integer else None
    mode = INT32 if integer else FP32
    return Kernel(
        [unary("SFPSWAP", ZERO, 12, 15), unary("SFP_STOCH_RND", 0, 13, 6)],
        [sequence(0x84, rounding=0x55, store=0x5B) if seq is None else seq],
        0x106,
        [*_alternating(0, INT32 if integer else 0, *others), NOP, NOP, NOP],
        per_row(plain),
        ("int32" if integer else "count",),
        mode,
        (UINT16, 0),
        True,
        of_sign_magnitude if integer else lambda x: saturated(x.view(np.float32)),
        ub=SILICON,
    )


def _uint32_to_uint16() -> Kernel:
    plain = [
        load(0, UINT16),
        unary("SFPIADD", ZERO, 0, 6),
        unary("SFPSHFT", 0, 0, 1, BELOW_16),
        load(1, INT32),
        unary("SFPOR", 0, 1),
        store(1, UINT16),
    ]
    return Kernel(
        [unary("SFPGT", ZERO, 12, 8), unary("SFPOR", 0, 13)],
        [sequence(0x84), sequence(0x85, store=0x0B)],
        0x106,
        [*per_row([macro(0, 0, UINT16), macro(1, 1, INT32, step=True)]), NOP, NOP],
        per_row(plain),
        ("int32",),
        INT32,
        (UINT16, 0),
        True,
    )


def _of_uint16(mode: int, *, narrow: bool = False) -> Kernel:
    """SFPCAST, with rounding behind it or not; a plain copy for 32-bit integers.

    What is stored with 32 bits lies where 16-bit datums of later rows were: numpy cannot tell.
    """
    cast = [] if mode == INT32 else [unary("SFPCAST", 0, 0)]
    plain = [load(0, UINT16), *cast, *([rounded(0, 1)] if narrow else []), store(0, mode)]
    seq = sequence(0x44, store=0x4B) if cast else sequence(store=0x03)
    seq = sequence(0x04, rounding=0x4D, store=0x53) if narrow else seq
    words = _alternating(0, UINT16) if narrow else per_row([macro(0, 0, UINT16, step=True)])
    return Kernel(
        [TO_FP32, unary("SFP_STOCH_RND", 0, 13, 1)],
        [seq],
        0x100 | mode,
        [*words, *[NOP] * (3 if narrow else 2 if cast else 1)],
        per_row(plain),
        ("uint16",),
        UINT16,
        (BF16 if narrow else mode, 0),
        False,
        (lambda x: to_bf16(bits_of(x))) if narrow else None,
    )


TYPECASTS = {
    "fp32 to bf16": _fp32_to_bf16(),
    "fp32 to uint16": _to_uint16(integer=False),
    "int32 to fp32": _from_signed(narrow=False),
    "int32 to bf16": _from_signed(narrow=True),
    "int32 to uint16": _to_uint16(integer=True),
    "uint32 to fp32": _from_unsigned(),
    "uint32 to bf16": _from_unsigned_narrow(),
    "uint32 to uint16": _uint32_to_uint16(),
    "uint16 to fp32": _of_uint16(FP32),
    "uint16 to bf16": _of_uint16(0, narrow=True),
    "uint16 to uint32": _of_uint16(INT32),
}
