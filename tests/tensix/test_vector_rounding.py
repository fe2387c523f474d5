"""Casts and rounding: nearest (ttsim), stochastic and to zero (SFPCAST, SFPSTOCHRND pages)."""

import numpy as np
import pytest
from sfpu_formats import INF, NAN, SIGN, step
from sfpu_runner import MASKS, edged, fresh, refused, result, same

SEEDS = range(4)
ROUND_LIMITS = {2: 255, 3: 127, 6: 65535, 7: 32767}
NEAREST, STOCHASTIC, TO_ZERO = 0, 1, 2


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
def test_casts(mode: int) -> None:
    for mask in MASKS:
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


def test_absolute_value_keeps_the_lowest_integer() -> None:
    """SFPCAST_IntAbs: silicon computes the two's complement absolute value in mode 2."""
    values = (5, 0xFFFFFFFB, SIGN, 0x80000001, 0x7FFFFFFF)
    want = [5, 5, SIGN, 0x7FFFFFFF, 0x7FFFFFFF]
    assert result("SFPCAST", *values, instr_mod1=2, lreg_src_c=1) == want


@pytest.mark.parametrize("rnd", [NEAREST, STOCHASTIC, TO_ZERO])
@pytest.mark.parametrize("mode", [*range(8), 10, 14])
def test_rounding(mode: int, rnd: int) -> None:
    """The random state of each enabled lane steps even where no mode needs it."""
    for mask in MASKS:
        for seed in SEEDS:
            s = edged(seed, mask)
            for c in range(4):
                fields = {"lreg_dest": 7 - c, "lreg_src_c": c, "lreg_src_b": 3, "rnd_mode": rnd}
                same(s, "SFP_STOCH_RND", instr_mod1=mode, **fields)


@pytest.mark.parametrize("rnd", [NEAREST, STOCHASTIC, TO_ZERO])
@pytest.mark.parametrize("mode", [12, 13])
def test_descaling_by_the_immediate(mode: int, rnd: int) -> None:
    for by in range(32):
        s = edged(by % 4, "some")
        fields = {"instr_mod1": mode, "imm8_math": by, "rnd_mode": rnd, "lreg_src_b": 5}
        for c in range(4):
            same(s, "SFP_STOCH_RND", lreg_dest=7 - c, lreg_src_c=c, **fields)


def test_descaled_integers() -> None:
    """21.5 is rounded away from zero, 300 is clamped; unsigned modes drop the sign."""
    values = (43, SIGN | 43, 600, SIGN | 600, 1, SIGN)
    fields = {"lreg_src_c": 1, "imm8_math": 1}
    signed = [22, SIGN | 22, 127, SIGN | 127, 1, 0]
    assert result("SFP_STOCH_RND", *values, instr_mod1=13, **fields) == signed
    assert result("SFP_STOCH_RND", *values, instr_mod1=12, **fields) == [22, 22, 255, 255, 1, 0]


def test_rounding_to_zero_errs_where_the_hardware_does() -> None:
    """The three fp32 values that SFPSTOCHRND_FloatInt names go up instead of down."""
    values = (0x3F7FFFFE, 0x3F7FFFFF, 0x3FFFFFFF, 0x3F7FFFFD, 0x3FFFFFFE, 0x403FFFFF)
    fields = {"lreg_src_c": 1, "rnd_mode": TO_ZERO}
    assert result("SFP_STOCH_RND", *values, instr_mod1=3, **fields) == [1, 1, 2, 0, 1, 2]
    assert result("SFP_STOCH_RND", 0x3F80FFFF, 0x3F80FFFE, instr_mod1=1, **fields) == [
        0x3F810000,
        0x3F800000,
    ]


def test_stochastic_rounding_goes_up_in_proportion() -> None:
    """Over many draws 1 + a quarter of a bf16 step rounds up in a quarter of the cases."""
    s = fresh(5)
    s.lreg[1] = 0x3F804000
    ups = 0
    for _ in range(256):
        model = same(s, "SFP_STOCH_RND", instr_mod1=1, rnd_mode=1, lreg_dest=2, lreg_src_c=1)
        ups += sum(v == 0x3F810000 for v in model.reg[2])
    assert 0.22 < ups / (256 * 32) < 0.28


def test_each_lane_draws_its_own_bits_once() -> None:
    """Lane l compares with the state it had before; disabled lanes keep state and register."""
    s = fresh(9, "some")
    before, enabled = s.prng.copy(), s.cc.astype(bool)
    s.lreg[1], s.lreg[2] = 0x3F808000, 0
    same(s, "SFP_STOCH_RND", instr_mod1=1, rnd_mode=1, lreg_dest=2, lreg_src_c=1)
    up = (before & 0x7FFFFF) >> 7 <= 0x8000
    want = np.where(enabled, np.where(up, 0x3F810000, 0x3F800000), 0)
    assert s.lreg[2].tolist() == want.tolist()
    stepped = [step(int(v)) if e else int(v) for v, e in zip(before, enabled, strict=True)]
    assert s.prng.tolist() == stepped


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
    ("SFPCAST", "VECTOR-MODE-RESERVED", {"instr_mod1": 4}),
    ("SFP_STOCH_RND", "VECTOR-ROUND-SCALE", {"instr_mod1": 1, "imm8_math": 1}),
    ("SFP_STOCH_RND", "VECTOR-ROUND-SCALE", {"instr_mod1": 4, "imm8_math": 1}),
    ("SFP_STOCH_RND", "VECTOR-ROUND-MODE", {"instr_mod1": 1, "rnd_mode": 3}),
]


@pytest.mark.parametrize(("name", "rule", "fields"), REFUSED)
def test_refused_modes(name: str, rule: str, fields: dict[str, int]) -> None:
    assert refused(name, **fields) == rule


@pytest.mark.parametrize("name", sorted({case[0] for case in REFUSED}))
def test_constants_are_not_written(name: str) -> None:
    assert refused(name, lreg_dest=9) == "VECTOR-DEST"
