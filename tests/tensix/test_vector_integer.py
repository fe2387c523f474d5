"""Integer and bit operations of the vector unit (SFPIADD, SFPSHFT, ..., Blackhole ISA; ttsim)."""

import pytest
from sfpu_formats import LANES
from sfpu_runner import EDGES, MASKS, fresh, refused, same

SEEDS = range(6)


@pytest.mark.parametrize("mode", [0, 1, 2, 4, 5, 6, 8, 9, 10])
def test_sums_wrap_and_set_flags(mode: int) -> None:
    for mask in MASKS:
        for seed, imm in zip(SEEDS, (0, 1, 0x7FF, 0x800, 0xFFF, 0xABC), strict=True):
            s = fresh(seed, mask)
            same(s, "SFPIADD", instr_mod1=mode, lreg_dest=seed, lreg_c=5, imm12_math=imm)
            same(s, "SFPIADD", instr_mod1=mode, lreg_dest=2, lreg_c=2, imm12_math=imm)


def test_a_sum_changes_the_mask_only_afterwards() -> None:
    """The lanes that lose their flag still receive the sum."""
    s = fresh(1)
    s.lreg[1], s.lreg[2] = 5, 6
    same(s, "SFPIADD", lreg_dest=1, lreg_c=2)
    assert s.lreg[1].tolist() == [11] * 32 and not s.cc.any()


@pytest.mark.parametrize("mode", [0, 1, 2, 3, 5, 7])
def test_shifts(mode: int) -> None:
    """Amounts count modulo 32, negative ones shift right, bit 1 keeps the sign."""
    for mask in MASKS:
        for seed, imm in zip(SEEDS, (0, 1, 31, 0x800, 0xFFF, 0xFE1), strict=True):
            s = fresh(seed, mask)
            imm *= mode & 1
            same(s, "SFPSHFT", instr_mod1=mode, lreg_dest=4, lreg_c=seed, imm12_math=imm)


@pytest.mark.parametrize("amount", [0, 1, 31, 32, 33, -1, -31, -32, -33, 1 << 31])
def test_shift_by_a_register(amount: int) -> None:
    s = fresh(9)
    s.lreg[1], s.lreg[2] = amount & 0xFFFFFFFF, (EDGES * 2)[:32]
    same(s, "SFPSHFT", instr_mod1=2, lreg_dest=2, lreg_c=1)


def test_the_literal_shift_amounts() -> None:
    s = fresh(1)
    s.lreg[1] = 0x80000010
    assert same(s, "SFPSHFT", instr_mod1=3, lreg_dest=1, imm12_math=0xFFC).reg[1][0] == 0xF8000001
    assert same(s, "SFPSHFT", instr_mod1=1, lreg_dest=1, imm12_math=4).reg[1][0] == 0x80000010
    assert same(s, "SFPSHFT", instr_mod1=1, lreg_dest=1, imm12_math=0xFFC).reg[1][0] == 0x08000001


@pytest.mark.parametrize("name", ["SFPAND", "SFPOR"])
def test_and_or_name_a_third_register_in_mode_1(name: str) -> None:
    for mask in MASKS:
        s = fresh(4, mask)
        same(s, name, lreg_dest=1, lreg_c=2)
        for third in (0, 7, 8, 15):
            same(s, name, instr_mod1=1, lreg_dest=3, lreg_c=12, imm12_math=third)


@pytest.mark.parametrize("name", ["SFPXOR", "SFPNOT"])
def test_xor_and_not(name: str) -> None:
    for mask in MASKS:
        for d, c in ((1, 2), (3, 3), (7, 15)):
            same(fresh(d, mask), name, lreg_dest=d, lreg_c=c)


@pytest.mark.parametrize("mode", [0, 2, 4])
def test_leading_zeros(mode: int) -> None:
    for mask in MASKS:
        s = fresh(5, mask)
        powers = [
            [(1 << i) - 1, 1 << i, 3 << i >> 1, (0xFFFFFFFF << i) & 0xFFFFFFFF] for i in LANES
        ]
        for k in range(4):
            s.lreg[k] = [p[k] & 0xFFFFFFFF for p in powers]
            same(s, "SFPLZ", instr_mod1=mode, lreg_dest=6, lreg_c=k)


@pytest.mark.parametrize("mode", [0, 1])
def test_absolute_values(mode: int) -> None:
    """-2**31 stays, and so does a negative NaN in float mode."""
    for mask in MASKS:
        for seed in SEEDS:
            s = fresh(seed, mask)
            s.lreg[3] = (EDGES * 2)[seed : seed + 32]
            same(s, "SFPABS", instr_mod1=mode, lreg_dest=2, lreg_c=3)


@pytest.mark.parametrize("mode", [0, 1])
def test_products_of_23_bits(mode: int) -> None:
    for mask in MASKS:
        for seed in SEEDS:
            s = fresh(seed, mask)
            s.lreg[3], s.lreg[4] = (EDGES * 2)[seed : seed + 32], (EDGES * 3)[5 + 2 * seed :][:32]
            for a, b in ((3, 4), (1, 2), (6, 6)):
                fields = {"lreg_src_c": 9, "lreg_src_b": b, "lreg_src_a": a}
                same(s, "SFPMUL24", instr_mod1=mode, lreg_dest=6, **fields)


REFUSED = [
    ("SFPSHFT", "VECTOR-SHIFT-MODE", {"instr_mod1": 4}),
    ("SFPSHFT", "VECTOR-SHIFT-MODE", {"instr_mod1": 6}),
    ("SFPSHFT", "VECTOR-SHIFT-MODE", {"instr_mod1": 8}),
    ("SFPSHFT", "VECTOR-IMMEDIATE", {"instr_mod1": 2, "imm12_math": 1}),
    ("SFPAND", "VECTOR-MODE", {"instr_mod1": 2}),
    ("SFPAND", "VECTOR-BITS-REGISTER", {"imm12_math": 1}),
    ("SFPOR", "VECTOR-MODE", {"instr_mod1": 3}),
    ("SFPOR", "VECTOR-BITS-REGISTER", {"imm12_math": 15}),
    ("SFPLZ", "VECTOR-MODE-RESERVED", {"instr_mod1": 1}),
    ("SFPLZ", "VECTOR-MODE-RESERVED", {"instr_mod1": 15}),
    ("SFPABS", "VECTOR-MODE-RESERVED", {"instr_mod1": 2}),
    ("SFPMUL24", "VECTOR-MODE-RESERVED", {"instr_mod1": 2, "lreg_src_c": 9}),
    ("SFPMUL24", "VECTOR-MODE-RESERVED", {"instr_mod1": 14, "lreg_src_c": 9}),
    ("SFPMUL24", "VECTOR-MUL24-ADDEND", {"lreg_src_c": 8}),
]
NAMES = ("SFPIADD", "SFPSHFT", "SFPAND", "SFPOR", "SFPXOR", "SFPNOT", "SFPLZ", "SFPABS", "SFPMUL24")


@pytest.mark.parametrize(("name", "rule", "fields"), REFUSED)
def test_refused_modes(name: str, rule: str, fields: dict[str, int]) -> None:
    assert refused(name, **fields) == rule


@pytest.mark.parametrize("name", NAMES)
def test_constants_are_not_written(name: str) -> None:
    for d in (8, 11):
        assert refused(name, lreg_dest=d) == "VECTOR-DEST"
