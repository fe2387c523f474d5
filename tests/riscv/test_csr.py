"""Zicsr decode and read-modify-write, and which registers are modelled."""

import importlib.util
import types
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bhemu.riscv import csr

U32 = 0xFFFFFFFF


def _interpreted() -> types.ModuleType:
    """The module as NUMBA_DISABLE_JIT=1 runs it."""
    spec = importlib.util.spec_from_file_location("interpreted_csr", csr.__file__)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with patch("numba.njit", lambda **_: lambda function: function):
        spec.loader.exec_module(module)
    assert isinstance(module.decode, types.FunctionType)
    return module


INTERPRETED = _interpreted()
each_mode = pytest.mark.parametrize("module", [csr, INTERPRETED], ids=["compiled", "interpreted"])

# As GNU as 2.40 assembles them (-march=rv32i_zicsr).
ENCODINGS = [
    (0x7C059573, (0x7C0, csr.CSRRW, 11, 0)),  # csrrw a0,0x7c0,a1
    (0x7C05A573, (0x7C0, csr.CSRRS, 11, 0)),  # csrrs a0,0x7c0,a1
    (0x7C05B573, (0x7C0, csr.CSRRC, 11, 0)),  # csrrc a0,0x7c0,a1
    (0xBC00D573, (0xBC0, csr.CSRRW, 1, 1)),  # csrrwi a0,0xbc0,1
    (0xBC9FE573, (0xBC9, csr.CSRRS, 31, 1)),  # csrrsi a0,0xbc9,31
    (0xBCA17573, (0xBCA, csr.CSRRC, 2, 1)),  # csrrci a0,0xbca,2
    (0xB0002573, (0xB00, csr.CSRRS, 0, 0)),  # csrr a0,mcycle
    (0xC8202573, (0xC82, csr.CSRRS, 0, 0)),  # rdinstreth a0
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


@each_mode
@pytest.mark.parametrize(("word", "expected"), ENCODINGS)
def test_decode(module: types.ModuleType, word: int, expected: tuple[int, ...]) -> None:
    assert module.decode(word) == expected
    assert module.decode(np.uint32(word)) == expected
    assert module.decode(np.uint64(word)) == expected


@each_mode
@pytest.mark.parametrize("word", NO_CSR.values(), ids=NO_CSR.keys())
def test_no_csr_instruction(module: types.ModuleType, word: int) -> None:
    assert module.decode(word) == (0, csr.NOT_CSR, 0, 0)


@given(word=st.integers(0, U32))
def test_decode_is_the_same_in_both_modes(word: int) -> None:
    compiled = csr.decode(word)
    assert INTERPRETED.decode(word) == compiled


@each_mode
@pytest.mark.parametrize(
    ("kind", "expected"),
    [(csr.CSRRW, 0x8000000A), (csr.CSRRS, 0xC000000F), (csr.CSRRC, 0x40000005)],
)
def test_new_value(module: types.ModuleType, kind: int, expected: int) -> None:
    """Write, set and clear bits (RISC-V unprivileged ISA, "Zicsr")."""
    assert module.new_value(kind, 0x40000005, 0x8000000A) == expected
    assert module.new_value(kind, np.uint32(0x40000005), np.uint32(0x8000000A)) == expected


@each_mode
def test_clear_leaves_the_other_bits(module: types.ModuleType) -> None:
    assert module.new_value(csr.CSRRC, U32, 1 << 18) == 0xFFFBFFFF


@each_mode
def test_new_value_of_no_csr_instruction_is_no_value(module: types.ModuleType) -> None:
    assert module.new_value(csr.NOT_CSR, 5, 5) == -1


@each_mode
def test_set_and_clear_with_x0_or_zero_do_not_write(module: types.ModuleType) -> None:
    """RISC-V unprivileged ISA, "Zicsr", table "Conditions determining whether a CSR is written"."""
    assert [module.writes(csr.CSRRW, f) for f in (0, 1, 31)] == [True, True, True]
    assert [module.writes(csr.CSRRS, f) for f in (0, 1, 31)] == [False, True, True]
    assert [module.writes(csr.CSRRC, f) for f in (0, 1, 31)] == [False, True, True]
    assert not module.writes(csr.NOT_CSR, 1)


def test_every_name_is_used_once() -> None:
    names = [*csr.NAMES.values(), *csr.UNMODELLED_NAMES.values()]
    assert len(set(names)) == len(names)
    assert not set(csr.NAMES) & set(csr.UNMODELLED_NAMES)
    assert csr.NAMES[0xBC9] == "tt_cfg_sstatus7"
