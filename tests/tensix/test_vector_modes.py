"""Modes of the vector unit that no golden executes: tables, SFPCONFIG, and what is tolerated."""

import math
import random
import struct

import numpy as np
import pytest
from matrix_reference import rule
from sfpu_runner import MASKS, fresh
from unit_runner import run
from vector_literal_runner import differences, snapshot, unit_of

from bhemu.tensix.insn import assemble
from bhemu.tensix.rules import RULES, UB_WARN, counted
from bhemu.tensix.state import State

LANES = range(32)


def f32(bits: int) -> float:
    return float(struct.unpack("<f", struct.pack("<I", bits))[0])


def agree(s: State, name: str, **fields: int) -> None:
    """Execute on the state and on the second literal model."""
    unit = unit_of(snapshot(s), 0)
    named = {"imm12_math": 0, "imm16_math": 0, **fields}
    unit.execute(name, **named)
    assert run(s, name, **fields) == 0
    assert differences(unit, s) == [], (name, fields)


# SFPARECIP


def exponentials(values: list[int]) -> list[int]:
    s = fresh(1)
    s.lreg[1] = (values + [0] * 32)[:32]
    assert run(s, "SFPARECIP", instr_mod1=2, lreg_dest=2, lreg_c=1) == 0
    return [int(v) for v in s.lreg[2][: len(values)]]


def test_exponential_is_as_accurate_as_the_text_says() -> None:
    """SFPARECIP, Blackhole ISA: 0.9922 e**x < ApproxExp(x) < 1.016 e**x for 0 <= x < 2."""
    rng = random.Random(1)
    patterns = [0x3C80 + i << 16 | rng.getrandbits(16) for i in range(896)]
    for at in range(0, 896, 32):
        for x, got in zip(
            patterns[at : at + 32], exponentials(patterns[at : at + 32]), strict=True
        ):
            assert 0.9922 * math.exp(f32(x)) < f32(got) < 1.016 * math.exp(f32(x))
            assert got & 0xFFFF == x & 0xFFFF


def test_exponential_at_the_ends_of_its_pieces() -> None:
    """e**1 is 2.703125; 1.0 below 2**-126; the lower half of x is kept (ApproxExp)."""
    ends = {0x3F800000: 0x402D0000, 0: 0x3F800000, 0x7FFFFF: 0x3F800000, 0x800001: 0x3F810001}
    ends |= {0x3C7FABCD: 0x3F81ABCD, 0x3C80ABCD: 0x3F82ABCD, 0x3F311234: 0x3FFF1234}
    ends |= {0x3F321234: 0x40001234, 0x3FFF0007: 0x40EA0007, 0x40000007: 0x40800007}
    ends |= {0xBF800000: 0xC02D0000, 0x80000000: 0xBF800000, 0x7FC00000: 0x40800000}
    assert exponentials(list(ends)) == list(ends.values())


# SFPPOPC


@pytest.mark.parametrize("mod", range(1, 16))
def test_the_top_of_an_empty_stack_is_0_and_not_in_use(mod: int) -> None:
    for mask in ("some", "unused"):
        s = fresh(3, mask)
        s.cc_stack[7], s.cc_stack_en[7] = 1, 1  # left from an entry that was popped
        agree(s, "SFPPOPC", instr_mod1=mod)


# SFPCONFIG


def configurable(seed: int, mask: str) -> State:
    """Lanes 0-7 of LReg[0] equal, the rest not; flags of lanes 0-7 equal but for mask "some"."""
    s, rng = fresh(seed, mask), random.Random(seed)
    s.lreg[0, :8] = s.lreg[0, 0]
    if mask == "some":
        s.cc[:8] = rng.getrandbits(1)
    s.macro_template[:] = [rng.getrandbits(32) for _ in range(4)]
    s.macro_sequence[:] = [rng.getrandbits(32) for _ in range(4)]
    s.macro_misc[0] = rng.getrandbits(12)
    s.lane_config[:] = rng.choice((0, 4, 0x100, 0x104))
    return s


@pytest.mark.parametrize("mod", range(8))
@pytest.mark.parametrize("register", range(9))
def test_macro_registers(register: int, mod: int) -> None:
    """Bits 1 and 2 of the mode combine only register 8, of 12 bits; 0-3 take no immediate."""
    for mask in MASKS:
        for seed in range(4):
            imm = random.Random(seed).getrandbits(16) if mod & 1 else 0
            agree(
                configurable(seed, mask),
                "SFPCONFIG",
                config_dest=register,
                instr_mod1=mod,
                imm16_math=imm,
            )


@pytest.mark.parametrize("mod", range(8))
def test_lane_config(mod: int) -> None:
    for mask in MASKS:
        for value in (0, 4, 0x100, 0x104):
            s = configurable(value, mask)
            s.lreg[0, :8] = value
            imm = value if mod & 1 else 0
            agree(s, "SFPCONFIG", config_dest=15, instr_mod1=mod, imm16_math=imm)


@pytest.mark.parametrize("mod", range(16))
@pytest.mark.parametrize("register", [11, 13, 14])
def test_constants_of_each_column(register: int, mod: int) -> None:
    """Lanes 0-7 give value and enable; bit 3 takes even bits of the immediate as column mask."""
    for mask in MASKS:
        for seed in range(4):
            imm = random.Random(seed).getrandbits(16) if mod & 9 else 0
            agree(
                fresh(seed, mask), "SFPCONFIG", config_dest=register, instr_mod1=mod, imm16_math=imm
            )


def test_constants_may_differ_from_column_to_column() -> None:
    s = fresh(1)
    s.lreg[0] = np.arange(32)
    assert run(s, "SFPCONFIG", config_dest=12) == 0
    assert s.lreg[12].tolist() == [lane & 7 for lane in LANES]


# What the text says of silicon, executed only where undefined behaviour is tolerated

TOLERATED = [
    *(("SFPSWAP", "VECTOR-SWAP-MODE", {"instr_mod1": mod, "lreg_src_c": 2}) for mod in (10, 15)),
    *(("SFPSHFT", "VECTOR-SHIFT-MODE", {"instr_mod1": mod, "lreg_c": 3}) for mod in (4, 6, 8, 14)),
    ("SFPSHFT", "VECTOR-SHIFT-MODE", {"instr_mod1": 15, "lreg_c": 3, "imm12_math": 0xFFD}),
    *(("SFPMOV", "VECTOR-MOV-MODE", {"instr_mod1": mod, "lreg_c": 3}) for mod in (4, 5, 7, 15)),
    *(
        ("SFPMUL24", "VECTOR-MUL24-ADDEND", {"instr_mod1": mod, "lreg_src_b": 2, "lreg_src_c": c})
        for mod in (0, 1, 5, 8)
        for c in (0, 3, 8, 10)
    ),
]


@pytest.mark.parametrize(("name", "broken", "fields"), TOLERATED)
def test_reserved_modes_do_what_silicon_does(
    name: str, broken: str, fields: dict[str, int]
) -> None:
    for seed in range(6):
        s = fresh(seed, MASKS[seed % 4])
        assert rule(run(s, name, lreg_dest=1, **fields)) == broken
        s.ub_mode[0] = UB_WARN
        agree(s, name, lreg_dest=1, **{"lreg_src_a": 4} if name == "SFPMUL24" else {}, **fields)
        assert {RULES[number].rule: n for number, n in counted(s).items()} == {broken: 1}


def test_writes_to_fixed_constants_do_nothing() -> None:
    s = fresh(1)
    s.ub_mode[0] = UB_WARN
    before = s.lreg.copy()
    assert run(s, "SFPCONFIG", config_dest=9) == run(s, "SFPCONFIG", config_dest=10) == 0
    assert (s.lreg == before).all()


# SFPSHFT2


@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("d", [0, 3, 7, 8, 11])
def test_copies_of_four_registers_ignore_the_destination(mode: int, d: int) -> None:
    """`VD < 12` is all that SFPSHFT2 asks of it in these modes."""
    agree(fresh(mode, "some"), "SFPSHFT2", instr_mod1=mode, lreg_dest=d, lreg_src_c=5)


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_from_12_on_the_destination_is_a_template(mode: int) -> None:
    s, fields = fresh(mode), {"instr_mod1": mode, "lreg_dest": 13, "lreg_src_c": 5}
    before = s.lreg.copy()
    s.gate_word[0] = assemble("SFPSHFT2", **fields)
    assert run(s, "SFPSHFT2", **fields) == 0
    assert (s.lreg == before).all()
    assert s.macro_template[1] == s.gate_word[0]


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("SFPADD", {"lreg_src_a": 2, "lreg_src_b": 5}),
        ("SFPMUL", {"lreg_src_a": 2, "lreg_src_b": 5, "lreg_src_c": 3}),
    ],
)
def test_a_template_takes_operands_that_an_instruction_refuses(
    name: str, fields: dict[str, int]
) -> None:
    """SFPLOADMACRO replaces them; as a regular instruction they have no model."""
    s = fresh(1)
    assert rule(run(s, name, lreg_dest=3, **fields)) in ("VECTOR-ADD-ONE", "VECTOR-MUL-ZERO")
    s.gate_word[0] = assemble(name, lreg_dest=13, **fields)
    assert run(s, name, lreg_dest=13, **fields) == 0
    assert s.macro_template[1] == s.gate_word[0]
