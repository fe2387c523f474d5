"""SFPMAD and its short forms, SFPARECIP, and what all vector instructions share: the lane mask,
destinations that are constants or templates (SFPMAD, SFPARECIP, Blackhole ISA; ttsim)."""

from fractions import Fraction

import pytest
from sfpu_formats import INF, SIGN
from sfpu_runner import EDGES, MASKS, fresh, refused, same
from unit_runner import run

from bhemu.tensix.insn import assemble

ENABLE_DEST_INDEX = 4
SEEDS = range(4)


def test_products_below_the_smallest_number_are_zero_in_all_lanes() -> None:
    """No other lane has a result that asks for care."""
    s = fresh(1)
    s.lreg[1], s.lreg[2] = 0x01000000, 0x3E800001  # 2**-125, a little above 2**-2
    same(s, "SFPMAD", lreg_src_a=1, lreg_src_b=2, lreg_src_c=9, lreg_dest=3)
    assert not s.lreg[3].any()


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
def test_multiply_add(mode: int) -> None:
    for mask in MASKS:
        for seed in SEEDS:
            regs = {"lreg_src_a": seed, "lreg_src_b": 5, "lreg_src_c": 6}
            same(fresh(seed, mask), "SFPMAD", instr_mod1=mode, lreg_dest=6 - seed, **regs)


@pytest.mark.parametrize("mode", range(4, 16))
def test_mad_through_lreg_7(mode: int) -> None:
    """Each lane names its own factor or destination; constants are not written (ISA text)."""
    for mask in MASKS:
        for seed in SEEDS:
            s = fresh(seed, mask)
            s.lreg[7] = [(5 * i + 3 * seed) % 16 + 16 * i for i in range(32)]
            regs = {"lreg_src_a": seed, "lreg_src_b": 5, "lreg_src_c": 6}
            same(s, "SFPMAD", instr_mod1=mode, lreg_dest=6 - seed, **regs)


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
@pytest.mark.parametrize(("a", "b"), [(10, 4), (4, 10), (10, 10)])
def test_add(a: int, b: int, mode: int) -> None:
    for mask in MASKS:
        regs = {"lreg_src_a": a, "lreg_src_b": b, "lreg_src_c": 6}
        same(fresh(7, mask), "SFPADD", instr_mod1=mode, lreg_dest=4, **regs)


@pytest.mark.parametrize("mode", [0, 1])
def test_multiply(mode: int) -> None:
    for mask in MASKS:
        regs = {"lreg_src_a": 1, "lreg_src_b": 2, "lreg_src_c": 9}
        same(fresh(7, mask), "SFPMUL", instr_mod1=mode, lreg_dest=1, **regs)


@pytest.mark.parametrize("imm", [0, 0x3F80, 0xBF00, 0x8000, 0x0001, 0x7F80, 0x7FC0, 0x4049, 0x0080])
@pytest.mark.parametrize("name", ["SFPADDI", "SFPMULI"])
def test_immediates(name: str, imm: int) -> None:
    for mask in MASKS:
        s = fresh(7, mask)
        s.lreg[3] = EDGES[:32]
        same(s, name, lreg_dest=2, imm16_math=imm)
        same(s, name, lreg_dest=3, imm16_math=imm)


def test_reciprocal() -> None:
    for mask in MASKS:
        for seed in SEEDS:
            s = fresh(seed, mask)
            s.lreg[5] = (EDGES * 2)[seed : seed + 32]
            same(s, "SFPARECIP", lreg_dest=1, lreg_c=5)
            same(s, "SFPARECIP", lreg_dest=2, lreg_c=2)


def test_reciprocal_of_every_leading_mantissa() -> None:
    """All 128 entries of the table: 1/x within 2**-7.5 of its value in the middle of the entry."""
    for start in range(0, 128, 32):
        s = fresh(1)
        s.lreg[1] = [0x3F800000 | i << 16 for i in range(start, start + 32)]
        out = same(s, "SFPARECIP", lreg_dest=2, lreg_c=1).reg[2]
        for i, value in zip(range(start, start + 32), out, strict=True):
            assert value >> 23 == 126 and value & 0xFFFF == 0
            got = Fraction(128 + (value >> 16 & 127), 256)
            assert abs(got - Fraction(256, 257 + 2 * i)) < Fraction(1, 512)


def test_reciprocal_at_the_ends_of_the_range() -> None:
    s = fresh(1)
    s.lreg[1] = 0
    ends = [0, SIGN, 0x7FFFFF, 0x800000, 0x7E7FFFFF, 0x7E800000, INF, SIGN | INF, 0x7FC00000]
    s.lreg[1, : len(ends)] = ends
    out = same(s, "SFPARECIP", lreg_dest=2, lreg_c=1).reg[2]
    want = [INF, INF | SIGN, INF, 0x7E7F0000, 0x00800000, 0, 0, SIGN, 0]
    assert out[: len(ends)] == want


REFUSED = [
    ("SFPADD", "VECTOR-ADD-ONE", {"instr_mod1": 4, "lreg_src_a": 10}),
    ("SFPADD", "VECTOR-ADD-ONE", {"lreg_src_a": 1, "lreg_src_b": 2}),
    ("SFPMUL", "VECTOR-MUL-ZERO", {"lreg_src_c": 3}),
    ("SFPADDI", "VECTOR-MODE", {"instr_mod1": 1}),
    ("SFPADDI", "VECTOR-MODE", {"instr_mod1": 14}),
    ("SFPMULI", "VECTOR-MODE", {"instr_mod1": 4}),
    ("SFPARECIP", "VECTOR-IMMEDIATE", {"instr_mod1": 2, "imm12_math": 3}),
    ("SFPARECIP", "VECTOR-IMMEDIATE", {"imm12_math": 3}),
]


@pytest.mark.parametrize(("name", "rule", "fields"), REFUSED)
def test_refused_modes(name: str, rule: str, fields: dict[str, int]) -> None:
    assert refused(name, **fields) == rule


NAMES = ("SFPMAD", "SFPADDI", "SFPMULI", "SFPARECIP")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("d", [8, 9, 11])
def test_constants_are_not_written(name: str, d: int) -> None:
    assert refused(name, lreg_dest=d) == "VECTOR-DEST"


@pytest.mark.parametrize("name", NAMES)
def test_dest_index_corrupts_the_upper_registers(name: str) -> None:
    """Erratum TEN-2932: LReg 4-7 cannot be written with LaneConfig.ENABLE_DEST_INDEX set."""
    s = fresh(1)
    s.lane_config[:] = ENABLE_DEST_INDEX
    assert refused(name, s, lreg_dest=4) == "TEN-2932"
    same(s, name, lreg_dest=3)


@pytest.mark.parametrize("d", [12, 13, 14, 15])
@pytest.mark.parametrize("name", [*NAMES, "SFPIADD", "SFPSWAP", "SFPSETCC", "SFPTRANSP", "SFPCAST"])
def test_destinations_12_to_15_store_a_template(name: str, d: int) -> None:
    """The word itself is stored, whatever its mode, and nothing is executed."""
    s = fresh(1)
    word = assemble(name, lreg_dest=d)
    s.gate_word[0] = word
    registers = s.lreg.copy()
    assert run(s, name, lreg_dest=d) == 0
    assert s.macro_template.tolist() == [word if i == d - 12 else 0 for i in range(4)]
    assert (s.lreg == registers).all()
    assert refused(name, fresh(1, "some"), lreg_dest=d) == "VECTOR-TEMPLATE-LANES"
