"""Zba and Zbb: results against a literal reference, compiled and interpreted, and decode limits."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bhemu.riscv.assembly import disassemble
from bhemu.riscv.isa import decode
from bhemu.riscv.semantics import NONE, bit_manipulation

U32 = 0xFFFFFFFF
values = st.one_of(
    st.sampled_from([0, 1, 0x7F, 0x80, 0x7FFF, 0x8000, 0x7FFFFFFF, 0x80000000, U32]),
    st.integers(0, U32),
)


def _signed(x: int) -> int:
    return x - (1 << 32) if x >> 31 else x


def _bits(x: int) -> str:
    return f"{x:032b}"


def _rotate_left(x: int, n: int) -> int:
    text = _bits(x)
    return int(text[n % 32 :] + text[: n % 32], 2)


# Encodings "op a0,a1,a2" or "op a0,a1" as GNU as 2.40 assembles them (-march=rv32i_zba_zbb), and
# the operation as RISC-V unprivileged ISA, chapter "B", words it.
REFERENCE: dict[str, tuple[int, Callable[[int, int], int]]] = {
    "sh1add": (0x20C5A533, lambda a, b: (2 * a + b) % 2**32),
    "sh2add": (0x20C5C533, lambda a, b: (4 * a + b) % 2**32),
    "sh3add": (0x20C5E533, lambda a, b: (8 * a + b) % 2**32),
    "andn": (0x40C5F533, lambda a, b: a & (U32 - b)),
    "orn": (0x40C5E533, lambda a, b: a | (U32 - b)),
    "xnor": (0x40C5C533, lambda a, b: U32 - (a ^ b)),
    "clz": (0x60059513, lambda a, _: 32 - a.bit_length()),
    "ctz": (0x60159513, lambda a, _: 32 - len(_bits(a).rstrip("0"))),
    "cpop": (0x60259513, lambda a, _: _bits(a).count("1")),
    "min": (0x0AC5C533, lambda a, b: min(_signed(a), _signed(b)) % 2**32),
    "minu": (0x0AC5D533, lambda a, b: min(a, b)),
    "max": (0x0AC5E533, lambda a, b: max(_signed(a), _signed(b)) % 2**32),
    "maxu": (0x0AC5F533, lambda a, b: max(a, b)),
    "sext.b": (0x60459513, lambda a, _: int(_bits(a)[24] * 24 + _bits(a)[24:], 2)),
    "sext.h": (0x60559513, lambda a, _: int(_bits(a)[16] * 16 + _bits(a)[16:], 2)),
    "zext.h": (0x0805C533, lambda a, _: a % 2**16),
    "rol": (0x60C59533, lambda a, b: _rotate_left(a, b % 32)),
    "ror": (0x60C5D533, lambda a, b: _rotate_left(a, 32 - b % 32)),
    "orc.b": (
        0x2875D513,
        lambda a, _: int.from_bytes(0xFF if byte else 0 for byte in a.to_bytes(4, "big")),
    ),
    "rev8": (0x6985D513, lambda a, _: int.from_bytes(a.to_bytes(4, "little"), "big")),
}
RORI = 0x6005D513  # rori a0,a1,0


def _plain(word: int, a: int, b: int) -> int:
    """The class's own `execute`, as analyses and the interpreted mode run it."""
    cls = decode(int(word))
    if cls is None or cls.extension != "b":
        return NONE
    return int(cls.compute(int(word), 0, int(a), int(b)))


EXECUTES = {"compiled": bit_manipulation, "plain": _plain}
each_mode = pytest.mark.parametrize("execute", EXECUTES.values(), ids=EXECUTES.keys())


@each_mode
@pytest.mark.parametrize("name", REFERENCE)
@settings(max_examples=40)
@given(a=values, b=values)
def test_result_is_the_isa_text(
    execute: Callable[[int, int, int], int], name: str, a: int, b: int
) -> None:
    word, reference = REFERENCE[name]
    assert execute(word, a, b) == reference(a, b)


@each_mode
@settings(max_examples=60)
@given(a=values, amount=st.integers(0, 31))
@example(a=0x80000001, amount=0)
@example(a=0x80000001, amount=31)
def test_rori_takes_the_amount_from_the_word(
    execute: Callable[[int, int, int], int], a: int, amount: int
) -> None:
    assert execute(RORI | amount << 20, a, 7) == _rotate_left(a, 32 - amount)


# Values worked out by hand, so that the reference above has a witness of its own.
LITERALS = [
    ("sh3add", 0xFFFFFFFF, 0x10, 0x00000008),
    ("andn", 0xF0F0F0F0, 0xFF00FF00, 0x00F000F0),
    ("clz", 0, 0, 32),
    ("clz", 1, 0, 31),
    ("ctz", 0, 0, 32),
    ("ctz", 0x80000000, 0, 31),
    ("cpop", 0xFFFFFFFF, 0, 32),
    ("min", 0x80000000, 1, 0x80000000),
    ("minu", 0x80000000, 1, 1),
    ("max", 0xFFFFFFFF, 0, 0),
    ("maxu", 0xFFFFFFFF, 0, 0xFFFFFFFF),
    ("sext.b", 0x12345680, 0, 0xFFFFFF80),
    ("sext.h", 0x12347FFF, 0, 0x00007FFF),
    ("zext.h", 0xFFFF8000, 0, 0x00008000),
    ("rol", 0x80000001, 33, 0x00000003),
    ("ror", 0x80000001, 33, 0xC0000000),
    ("orc.b", 0x01008000, 0, 0xFF00FF00),
    ("rev8", 0x12345678, 0, 0x78563412),
]


@each_mode
@pytest.mark.parametrize(("name", "a", "b", "expected"), LITERALS)
def test_literal(
    execute: Callable[[int, int, int], int], name: str, a: int, b: int, expected: int
) -> None:
    assert execute(REFERENCE[name][0], a, b) == expected


@each_mode
@pytest.mark.parametrize("dtype", [int, np.int64])
def test_any_integer_type_of_the_callers_gives_the_same(
    execute: Callable[[Any, Any, Any], int], dtype: Callable[[int], Any]
) -> None:
    word, a, b = dtype(0x20C5E533), dtype(0xFFFFFFFF), dtype(0x10)  # sh3add
    assert execute(word, a, b) == 8


def test_register_numbers_do_not_matter() -> None:
    anywhere = 31 << 15 | 31 << 7
    assert bit_manipulation(0x60059513 | anywhere, 1, 0) == 31  # clz t6,t6
    assert bit_manipulation(0x60059513 & ~(31 << 7), 1, 0) == 31  # clz zero,a1: caller drops it


NOT_EMULATED = {
    "add": 0x00C58533,
    "sub": 0x40C58533,
    "xor": 0x00C5C533,
    "sra": 0x40C5D533,
    "mul": 0x02C58533,
    "remu": 0x02C5F533,
    "srai": 0x4055D513,
    "czero.eqz": 0x0EC5D533,
    "czero.nez": 0x0EC5F533,
    "clmul (Zbc)": 0x0AC59533,
    "clmulh (Zbc)": 0x0AC5B533,
    "bset (Zbs)": 0x28C59533,
    "bexti (Zbs)": 0x4805D513,
    "pack (Zbkb), zext.h with rs2": 0x08C5C533,
    "brev8 (Zbkb), orc.b and rev8 neighbour": 0x6875D513,
    "zip (Zbkb)": 0x08F59513,
    "rev8 of RV64": 0x6B85D513,
    "zext.h of RV64": 0x0805C53B,
    "clz family, rs2 code 3": 0x60359513,
    "clz family, rs2 code 6": 0x60659513,
    "clz family, rs2 code 31": 0x61F59513,
    "orc.b with another code": 0x2865D513,
    "rori with shamt bit 5": 0x6205D513,
    "sh1add with funct3 0": 0x20C58533,
    "flw": 0x0005A507,
    "fadd.s": 0x00C5F553,
    "fadd.d": 0x02C5F553,
    "vadd.vv": 0x02C58557,
    "custom-0": 0x0000000B,
    "csrr a0,cfg0": 0x7C002573,
    ".ttinsn": 0x00000001,
    "zero": 0x00000000,
    "ones": 0xFFFFFFFF,
}


@each_mode
@pytest.mark.parametrize("word", NOT_EMULATED.values(), ids=NOT_EMULATED.keys())
def test_other_words_are_not_emulated(execute: Callable[[int, int, int], int], word: int) -> None:
    assert execute(word, 0x12345678, 3) == NONE == -1


@pytest.mark.parametrize("opcode", [0x33, 0x13])
def test_emulated_words_are_those_the_disassembler_names(opcode: int) -> None:
    """Every funct7, rs2 and funct3 of both opcodes, against the disassembler's own table."""
    for code in range(1 << 15):
        word = code >> 3 << 20 | 11 << 15 | (code & 7) << 12 | 10 << 7 | opcode
        named = disassemble(word).split()[0] in {*REFERENCE, "rori"}
        assert (bit_manipulation(word, 0x80, 5) >= 0) == named, f"{word:#010x}"


@settings(max_examples=300)
@given(word=st.integers(0, U32), a=values, b=values)
def test_any_word_gives_the_same_in_both_modes(word: int, a: int, b: int) -> None:
    compiled = bit_manipulation(word, a, b)
    assert -1 <= compiled <= U32
    assert _plain(word, a, b) == compiled
