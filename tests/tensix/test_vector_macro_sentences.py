"""The numbers in the sentences of SFPLOADMACRO's rules: registers, rows and words as they execute.

Source: SFPLOADMACRO, Blackhole ISA: VC (or VB) of a template becomes the loaded register, VD too.
"""

import pytest
from macro_runner import Thread
from matrix_reference import rule
from test_vector_macro import CYCLES, NOP, byte, macro, prepared, sequence
from unit_runner import numbers

from bhemu.tensix.insn import assemble

NOT = assemble("SFPNOT", lreg_dest=12)
MAD = assemble("SFPMAD", lreg_src_a=3, lreg_src_b=4, lreg_src_c=6, lreg_dest=13)
ROUND = assemble("SFP_STOCH_RND", lreg_dest=14, instr_mod1=1)
SWAP = assemble("SFPSWAP", lreg_src_c=10, lreg_dest=15, instr_mod1=1)
SWAP_5 = assemble("SFPSWAP", lreg_src_c=5, lreg_dest=12, instr_mod1=1)
SWAP_VD = assemble("SFPSWAP", lreg_src_c=4, lreg_dest=5, instr_mod1=1)
ALL_FOUR = [NOT, MAD, ROUND, SWAP]
AND = assemble("SFPAND", lreg_c=1, lreg_dest=2)
OR = assemble("SFPOR", lreg_c=1, lreg_dest=2)
SFPNOP = 0x8F000000


def load(reg: int, address: int = 0) -> int:
    return assemble("SFPLOAD", instr_mod0=4, lreg_ind=reg, dest_reg_addr=address)


def mad(c: int) -> int:
    """The template with VC replaced; VD is kept beside the word."""
    return assemble("SFPMAD", lreg_src_a=3, lreg_src_b=4, lreg_src_c=c)


CASES = [
    ("SELECTOR", [1, 0], ALL_FOUR, [sequence(mad=1)], [macro(0, 0, 0)]),
    ("SELECTOR", [3, 2], ALL_FOUR, [0, 0, sequence(store=1)], [macro(2, 0, 0)]),
    ("SELECTOR", [0, 3], ALL_FOUR, [0, 0, 0, sequence(simple=1)], [macro(3, 0, 0)]),
    ("STORE", [0, SFPNOP], ALL_FOUR, [sequence(store=byte(2))], [macro(0, 0, 0)]),
    ("STORE", [1, MAD], ALL_FOUR, [0, sequence(store=byte(5))], [macro(1, 0, 0)]),
    *(
        ("OPERAND", [word >> 24], [word], [sequence(byte(4, bonus=True))], [macro(0, 0, 0)])
        for word in (AND, OR, SWAP)
    ),
    *(
        (
            "ROUND",
            [16, 16] if bonus else [reg, reg],
            ALL_FOUR,
            [sequence(byte(4, bonus=bonus), rounding=byte(6, bonus=bonus))],
            [macro(0, reg, 0), NOP],
        )
        for reg in (0, 6)
        for bonus in (False, True)
    ),
    (
        "ROUND",
        [3, 5],
        ALL_FOUR,
        [sequence(byte(4))],
        [macro(0, 3, 0), assemble("SFP_STOCH_RND", lreg_src_c=1, lreg_dest=5, instr_mod1=1)],
    ),
    (
        "ROUND",
        [5, 3],
        ALL_FOUR,
        [sequence(rounding=byte(6))],
        [macro(0, 3, 0), assemble("SFPNOT", lreg_c=1, lreg_dest=5)],
    ),
    ("SWAP", [mad(5)], ALL_FOUR, [sequence(byte(7), mad=byte(5))], [macro(0, 5, 0), NOP]),
    (
        "BUSY",
        [assemble("SFP_STOCH_RND", lreg_src_c=5, instr_mod1=1)],
        ALL_FOUR,
        [sequence(byte(7), rounding=byte(6, 1))],
        [macro(0, 5, 0), NOP, NOP],
    ),
    ("SWAP-READ", [3], ALL_FOUR, [sequence(byte(7))], [macro(0, 3, 0), load(3)]),
    ("SWAP-READ", [3], ALL_FOUR, [sequence(byte(7, vb=True))], [macro(0, 3, 0), load(3)]),
    ("SWAP-READ", [5], [SWAP_5], [sequence(byte(4, vb=True))], [macro(0, 3, 0), load(5)]),
    ("SWAP-OTHER", [5, 5], [SWAP_VD], [sequence(byte(4))], [macro(0, 3, 0), NOP]),
    ("SWAP-LOAD", [3], ALL_FOUR, [sequence(byte(7, vb=True))], [macro(0, 3, 0), NOP, load(3, 8)]),
    ("PORT", [3], ALL_FOUR, [sequence(byte(4))], [macro(0, 3, 0), load(3)]),
    ("DST", [8, 8], ALL_FOUR, [sequence(store=byte(3))], [macro(0, 2, 8), load(0, 8)]),
    ("DST", [508, 508], ALL_FOUR, [sequence(store=byte(3))], [macro(0, 2, 508), load(0, 508)]),
]


@pytest.mark.parametrize(("name", "shown", "templates", "sequences", "words"), CASES)
def test_the_sentence_shows_what_meets(
    name: str, shown: list[int], templates: list[int], sequences: list[int], words: list[int]
) -> None:
    s = prepared(templates, sequences)
    s.detail[:] = 77
    number = Thread(s).push(words)
    assert rule(number) == f"VECTOR-MACRO-{name}"
    assert numbers(s, number) == shown


@pytest.mark.parametrize("reg", range(8))
def test_the_register_of_a_hazard(reg: int) -> None:
    """SFPIADD reads VD unnoticed (SFPMAD, second caution); so is the register that is named."""
    product = assemble("SFPMAD", lreg_src_a=1, lreg_src_b=2, lreg_src_c=9, lreg_dest=reg)
    reader = assemble("SFPIADD", lreg_c=9, lreg_dest=reg, instr_mod1=4)
    s = prepared([NOT], [sequence(byte(4, 6))])
    number = Thread(s).push([macro(0, 0, 0), product, reader])
    assert rule(number) == "VECTOR-MACRO-HAZARD"
    assert numbers(s, number) == [reader, reg]


@pytest.mark.parametrize("reg", range(8))
def test_the_register_that_is_overwritten(reg: int) -> None:
    product = assemble("SFPMAD", lreg_src_a=1, lreg_src_b=2, lreg_src_c=9, lreg_dest=reg)
    word = assemble("SFPLOADI", imm16=1, instr_mod0=2, lreg_ind=reg)
    s = prepared([NOT], [sequence(byte(4, 6))], CYCLES)
    number = Thread(s).push([macro(0, 0, 0), product, word])
    assert rule(number) == "VECTOR-MACRO-STALL"
    assert numbers(s, number) == [word, reg]


@pytest.mark.parametrize("reg", range(8))
def test_the_register_that_sfploadmacro_overwrites(reg: int) -> None:
    """VD is VDHi, VDLo (SFPLOADMACRO, Blackhole ISA); bits [7:4] belong to the address."""
    product = assemble("SFPMAD", lreg_src_a=1, lreg_src_b=2, lreg_src_c=9, lreg_dest=reg)
    for loads in range(8):
        address = (loads >> 2) | reg << 4
        word = assemble("SFPLOADMACRO", instr_mod0=2, lreg_ind=4 | loads & 3, dest_reg_addr=address)
        s = prepared([NOT], [sequence(byte(4, 6))], CYCLES)
        number = Thread(s).push([macro(0, 0, 0), product, word])
        assert (rule(number) if number else "") == ("VECTOR-MACRO-STALL" if loads == reg else "")
        if loads == reg:
            assert numbers(s, number) == [word, reg]
