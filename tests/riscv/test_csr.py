"""Zicsr: which words are CSR instructions, read-modify-write, and which registers are modelled."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bhemu.riscv import csr
from bhemu.riscv.formats import Csr
from bhemu.riscv.isa import decode
from bhemu.riscv.isa.rv32i import CSRRC, CSRRCI, CSRRS, CSRRSI, CSRRW, CSRRWI
from bhemu.riscv.semantics import NONE, csr_value, csr_writes

U32 = 0xFFFFFFFF

# As GNU as 2.40 assembles them (-march=rv32i_zicsr): class, register, field of the operand.
ENCODINGS: list[tuple[int, tuple[Any, int, int]]] = [
    (0x7C059573, (CSRRW, 0x7C0, 11)),  # csrrw a0,0x7c0,a1
    (0x7C05A573, (CSRRS, 0x7C0, 11)),  # csrrs a0,0x7c0,a1
    (0x7C05B573, (CSRRC, 0x7C0, 11)),  # csrrc a0,0x7c0,a1
    (0xBC00D573, (CSRRWI, 0xBC0, 1)),  # csrrwi a0,0xbc0,1
    (0xBC9FE573, (CSRRSI, 0xBC9, 31)),  # csrrsi a0,0xbc9,31
    (0xBCA17573, (CSRRCI, 0xBCA, 2)),  # csrrci a0,0xbca,2
    (0xB0002573, (CSRRS, 0xB00, 0)),  # csrr a0,mcycle
    (0xC8202573, (CSRRS, 0xC82, 0)),  # rdinstreth a0
]
NO_CSR = {
    "ecall": 0x00000073,
    "ebreak": 0x00100073,
    "mret": 0x30200073,
    "SYSTEM with reserved funct3 100": 0x7C05C573,
    "slli a0,a1,0": 0x00059513,
    "clz a0,a1": 0x60059513,
    ".ttinsn": 0x7C059572,
}


@pytest.mark.parametrize(("word", "expected"), ENCODINGS)
def test_decode(word: int, expected: tuple[Any, int, int]) -> None:
    cls, number, source = expected
    assert decode(word) is cls
    assert (cls.csr.get(word), cls.rs1.get(word)) == (number, source)
    assert cls.assemble(10, number, source) == word


@pytest.mark.parametrize("word", NO_CSR.values(), ids=NO_CSR.keys())
def test_no_csr_instruction(word: int) -> None:
    cls = decode(word)
    assert cls is None or not issubclass(cls, Csr)
    assert csr_value(word, 5, 5) == csr_writes(word) == NONE


@given(word=st.integers(0, U32))
def test_any_word_is_the_same_in_both_modes(word: int) -> None:
    cls = decode(word)
    known = cls is not None and issubclass(cls, Csr)
    assert (csr_writes(word) != NONE) == (csr_value(word, 5, 6) != NONE) == known


OLD, A1 = 0x40000005, 0x8000000A


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        (0x7C059573, 0x8000000A),  # csrrw a0,0x7c0,a1
        (0x7C05A573, 0xC000000F),  # csrrs
        (0x7C05B573, 0x40000005),  # csrrc
        (0x7C01D573, 3),  # csrrwi a0,0x7c0,3
        (0x7C01E573, 0x40000007),  # csrrsi
        (0x7C01F573, 0x40000004),  # csrrci
    ],
)
def test_new_value(word: int, expected: int) -> None:
    """Write, set and clear bits, by a register or an immediate (RISC-V unprivileged ISA)."""
    assert csr_value(word, OLD, A1) == expected
    cls: Any = decode(word)
    operand = cls.rs1.get(word) if cls.immediate else A1
    assert cls.execute(OLD, operand) == expected


def test_clear_leaves_the_other_bits() -> None:
    assert csr_value(0x7C05B573, U32, 1 << 18) == 0xFFFBFFFF


@pytest.mark.parametrize("cls", [CSRRW, CSRRS, CSRRC, CSRRWI, CSRRSI, CSRRCI])
def test_set_and_clear_with_x0_or_zero_do_not_write(cls: type[Csr]) -> None:
    """RISC-V unprivileged ISA, "Zicsr", table "Conditions determining whether a CSR is written"."""
    always = cls in (CSRRW, CSRRWI)
    for source, writes in ((0, always), (1, True), (31, True)):
        assert cls.writes(source) == csr_writes(cls.assemble(10, 0x7C0, source)) == writes


def test_every_name_is_used_once() -> None:
    names = [*csr.NAMES.values(), *csr.UNMODELLED_NAMES.values()]
    assert len(set(names)) == len(names)
    assert not set(csr.NAMES) & set(csr.UNMODELLED_NAMES)
    assert csr.NAMES[0xBC9] == "tt_cfg_sstatus7"
