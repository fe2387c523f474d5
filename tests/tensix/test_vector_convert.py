"""Exponent, mantissa, sign, casts and rounding (SFPDIVP2, SFPEXEXP, ..., SFPSTOCHRND; ttsim)."""

import pytest
from sfpu_reference import INF, NAN, SIGN
from sfpu_runner import EDGES, MASKS, fresh, refused, same

from bhemu.tensix.state import State

SEEDS = range(4)
ROUND_LIMITS = {2: 255, 3: 127, 6: 65535, 7: 32767}


def edged(seed: int, mask: str) -> State:
    """Random registers, edge cases in LReg 1 and 2."""
    s = fresh(seed, mask)
    s.lreg[1], s.lreg[2] = (EDGES * 2)[7 * seed :][:32], (EDGES * 3)[13 * seed + 3 :][:32]
    return s


def result(name: str, *values: int, **fields: int) -> list[int]:
    """LReg[2] for these values in LReg[1]."""
    s = fresh(1)
    s.lreg[1] = 0
    s.lreg[1, : len(values)] = values
    return same(s, name, lreg_dest=2, **fields).reg[2][: len(values)]


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("imm", [0, 1, 0x7F, 0xF80, 0xFFF, 0xFE0])
@pytest.mark.parametrize("mode", [0, 1])
def test_divp2(mode: int, imm: int, mask: str) -> None:
    for seed in SEEDS:
        s = edged(seed, mask)
        same(s, "SFPDIVP2", instr_mod1=mode, lreg_dest=5, lreg_c=1, imm12_math=imm)
        same(s, "SFPDIVP2", instr_mod1=mode, lreg_dest=3, lreg_c=3, imm12_math=imm)


def test_divp2_wraps_and_keeps_infinities() -> None:
    scaled = result(
        "SFPDIVP2", 0x3F800000, 0x7F000000, 0, INF, NAN, instr_mod1=1, lreg_c=1, imm12_math=2
    )
    assert scaled == [0x40800000, 0, 0x01000000, INF, NAN]


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("mode", [0, 1, 2, 10])
def test_exponent_and_its_flag(mode: int, mask: str) -> None:
    for seed in SEEDS:
        same(edged(seed, mask), "SFPEXEXP", instr_mod1=mode, lreg_dest=seed, lreg_c=1)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("mode", [0, 1])
def test_mantissa(mode: int, mask: str) -> None:
    for seed in SEEDS:
        same(edged(seed, mask), "SFPEXMAN", instr_mod1=mode, lreg_dest=seed, lreg_c=1)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize(
    ("name", "mode", "imm"),
    [
        *(("SFPSETEXP", 0, 0), ("SFPSETEXP", 2, 0), ("SFPSETEXP", 1, 0), ("SFPSETEXP", 1, 255)),
        *(("SFPSETMAN", 0, 0), ("SFPSETMAN", 1, 0)),
        *(("SFPSETSGN", 0, 0), ("SFPSETSGN", 1, 0), ("SFPSETSGN", 1, 1)),
    ],
)
def test_replaced_fields(name: str, mode: int, imm: int, mask: str) -> None:
    for seed in SEEDS:
        s = edged(seed, mask)
        for d, c in ((2, 1), (3, 4), (5, 5), (6, 13)):
            same(s, name, instr_mod1=mode, lreg_dest=d, lreg_c=c, imm12_math=imm)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("mode", [0, 3])
def test_casts(mode: int, mask: str) -> None:
    for seed in SEEDS:
        s = edged(seed, mask)
        for c in range(8):
            same(s, "SFPCAST", instr_mod1=mode, lreg_dest=7 - c, lreg_src_c=c)


def test_integers_round_to_even() -> None:
    """24 bits are exact; above, halves go to the even neighbour; -0 keeps its sign."""
    values = (0, SIGN, 1, SIGN | 1, 0x1000001, 0x1000003, 0x1000002, 0x7FFFFFFF, 0x7FFFFFBF)
    want = [0, SIGN, 0x3F800000, 0xBF800000, 0x4B800000, 0x4B800002, 0x4B800001]
    want += [0x4F000000, 0x4EFFFFFF]
    assert result("SFPCAST", *values, lreg_src_c=1) == want


def test_two_complement_and_back() -> None:
    values = (5, SIGN | 5, 0xFFFFFFFB, SIGN, 0x7FFFFFFF, 0xFFFFFFFF)
    want = [5, 0xFFFFFFFB, SIGN | 5, SIGN, 0x7FFFFFFF, 0x80000001]
    assert result("SFPCAST", *values, instr_mod1=3, lreg_src_c=1) == want


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("mode", [1, 2, 3, 6, 7])
def test_rounding(mode: int, mask: str) -> None:
    """The random state of each enabled lane steps even though nearest rounding needs none."""
    for seed in SEEDS:
        s = edged(seed, mask)
        for c in range(4):
            same(s, "SFP_STOCH_RND", instr_mod1=mode, lreg_dest=7 - c, lreg_src_c=c)


def test_bf16_halves_go_away_from_zero() -> None:
    values = (0x3F808000, 0x3F818000, 0x3F807FFF, 0xBF808000, 0x807FFFFF, 0x7FC00001, 0xFF800001)
    want = [0x3F810000, 0x3F820000, 0x3F800000, 0xBF810000, 0, INF, SIGN | INF]
    assert result("SFP_STOCH_RND", *values, instr_mod1=1, lreg_src_c=1) == want
    assert result("SFP_STOCH_RND", 0x7F7F8000, instr_mod1=1, lreg_src_c=1) == [INF]


@pytest.mark.parametrize(("mode", "limit"), ROUND_LIMITS.items())
def test_integers_round_half_up_and_saturate(mode: int, limit: int) -> None:
    """Unsigned modes drop the sign, signed ones keep it unless the magnitude is 0."""
    minus = SIGN if mode & 1 else 0
    values = (
        0x3EFFFFFF,
        0x3F000000,
        0xBF000000,
        0x3FC00000,
        0xC2280000,
        0x47800000,
        SIGN | INF,
        NAN,
    )
    want = [0, 1, minus | 1, 2, minus | 42, limit, minus | limit, limit]
    assert result("SFP_STOCH_RND", *values, instr_mod1=mode, lreg_src_c=1) == want
    assert result("SFP_STOCH_RND", 0xBEFFFFFF, SIGN, instr_mod1=mode, lreg_src_c=1) == [0, 0]


REFUSED = [
    ("SFPDIVP2", "VECTOR-MODE-RESERVED", {"instr_mod1": 2}),
    ("SFPDIVP2", "VECTOR-DIVP2-IMMEDIATE", {"imm12_math": 0x80}),
    ("SFPDIVP2", "VECTOR-DIVP2-IMMEDIATE", {"imm12_math": 0xF7F}),
    ("SFPEXEXP", "VECTOR-MODE-RESERVED", {"instr_mod1": 4}),
    ("SFPEXEXP", "VECTOR-MODE-UNIMPLEMENTED", {"instr_mod1": 3}),
    ("SFPEXEXP", "VECTOR-MODE-UNIMPLEMENTED", {"instr_mod1": 8}),
    ("SFPEXMAN", "VECTOR-MODE-RESERVED", {"instr_mod1": 2}),
    ("SFPSETEXP", "VECTOR-MODE", {"instr_mod1": 3}),
    ("SFPSETEXP", "VECTOR-IMMEDIATE", {"imm12_math": 1}),
    ("SFPSETMAN", "VECTOR-MODE", {"instr_mod1": 2}),
    ("SFPSETMAN", "VECTOR-IMMEDIATE", {"instr_mod1": 1, "imm12_math": 1}),
    ("SFPSETSGN", "VECTOR-MODE-RESERVED", {"instr_mod1": 2}),
    ("SFPSETSGN", "VECTOR-IMMEDIATE", {"imm12_math": 1}),
    ("SFPCAST", "VECTOR-MODE-RESERVED", {"instr_mod1": 4}),
    ("SFPCAST", "VECTOR-CAST-STOCHASTIC", {"instr_mod1": 1}),
    ("SFPCAST", "VECTOR-CAST-ABS", {"instr_mod1": 2}),
    ("SFP_STOCH_RND", "VECTOR-MODE-UNDEFINED", {"instr_mod1": 8}),
    ("SFP_STOCH_RND", "VECTOR-ROUND-FORMAT", {"instr_mod1": 0}),
    ("SFP_STOCH_RND", "VECTOR-ROUND-FORMAT", {"instr_mod1": 12}),
    ("SFP_STOCH_RND", "VECTOR-ROUND-SCALE", {"instr_mod1": 1, "imm8_math": 1}),
    ("SFP_STOCH_RND", "VECTOR-ROUND-MODE", {"instr_mod1": 1, "rnd_mode": 1}),
]


@pytest.mark.parametrize(("name", "rule", "fields"), REFUSED)
def test_refused_modes(name: str, rule: str, fields: dict[str, int]) -> None:
    assert refused(name, **fields) == rule


@pytest.mark.parametrize("name", sorted({case[0] for case in REFUSED}))
def test_constants_are_not_written(name: str) -> None:
    assert refused(name, lreg_dest=9) == "VECTOR-DEST"
