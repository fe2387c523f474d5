"""Table look-ups (SFPLUT, SFPLUTFP32, Blackhole ISA; ttsim)."""

import random

import pytest
from sfpu_formats import SIGN
from sfpu_runner import EDGES, MASKS, fresh, refused, same

# Magnitudes at and beside the borders of the pieces
BORDERS = [b + d for b in (0x3F000000, 0x3F800000, 0x3FC00000) for d in (-1, 0, 1)]
BORDERS += [b + d for b in (0x40000000, 0x40400000) for d in (-1, 0, 1)] + [0]


@pytest.mark.parametrize("d", [0, 3, 7])
def test_8_bit_table(d: int) -> None:
    for mask in MASKS:
        for seed in range(4):
            s, rng = fresh(seed, mask), random.Random(seed)
            for piece in range(3):
                bytes_ = [
                    (rng.choice((0xFF, 0, 0x80, 0x7F, rng.getrandbits(8))), rng.getrandbits(8))
                ]
                bytes_ += [(rng.getrandbits(8), 0xFF), (0xFF, 0xFF)]
                s.lreg[piece] = [h << 8 | lo | 0xABCD0000 for h, lo in (bytes_ * 11)[:32]]
            s.lreg[3] = [b | SIGN * rng.getrandbits(1) for b in (BORDERS * 2)][:32]
            same(s, "SFPLUT", instr_mod0=4, lreg_ind=d)
            s.lreg[3] = (EDGES * 2)[seed : seed + 32]
            same(s, "SFPLUT", instr_mod0=4, lreg_ind=d)


def test_8_bit_numbers() -> None:
    """-0.5 * 1.5 + 0 with the sign of the argument, and 0xFF as zero."""
    s = fresh(1)
    s.lreg[0], s.lreg[1], s.lreg[2] = 0xFFFF, 0x90FF, 0xFF08
    s.lreg[3] = [0x3F000000, 0x3FC00000, 0xBFC00000, 0x40400000] * 8
    out = same(s, "SFPLUT", instr_mod0=4, lreg_ind=4).reg[4][:4]
    assert out == [0, 0x3F400000, 0xBF400000, 0x3FC00000]


@pytest.mark.parametrize("d", [0, 3, 7])
def test_16_bit_table(d: int) -> None:
    for mask in MASKS:
        for seed in range(4):
            s, rng = fresh(seed, mask), random.Random(seed)
            for reg in (0, 1, 2, 4, 5, 6):
                s.lreg[reg] = [
                    rng.getrandbits(32) & rng.choice((0xFFFFFFFF, 0xBFFFBFFF)) for _ in range(32)
                ]
            s.lreg[3] = [b | SIGN * rng.getrandbits(1) for b in (BORDERS * 2)][:32]
            same(s, "SFPLUTFP32", instr_mod1=2, lreg_dest=d)
            s.lreg[3] = (EDGES * 2)[seed : seed + 32]
            same(s, "SFPLUTFP32", instr_mod1=2, lreg_dest=d)


def test_each_sixteenth_is_used_in_its_interval() -> None:
    """Slopes 0, offsets 1 to 6: the six intervals name their own half."""
    s = fresh(1)
    halves = (0x3C00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600)  # 1 to 6
    for i in range(3):
        s.lreg[i] = 0x7C007C00  # exponent field 31 counts as zero
        s.lreg[4 + i] = halves[2 * i] | halves[2 * i + 1] << 16
    s.lreg[3] = 0
    s.lreg[3, :6] = [0x3E800000, 0x3F400000, 0x3FA00000, 0x3FE00000, 0x40200000, 0xC0A00000]
    out = same(s, "SFPLUTFP32", instr_mod1=2, lreg_dest=7).reg[7][:6]
    assert out == [0x3F800000, 0x40000000, 0x40400000, 0x40800000, 0x40A00000, 0x40C00000]


def test_refused_modes() -> None:
    assert refused("SFPLUT", instr_mod0=1) == refused("SFPLUT", instr_mod0=14) == "VECTOR-MODE"
    assert refused("SFPLUT", instr_mod0=4, lreg_ind=8) == "VECTOR-DEST"
    assert refused("SFPLUT", instr_mod0=4, lreg_ind=12) == "VECTOR-TEMPLATE-LOAD"
    for mod in (1, 5, 9, 11, 13, 15):
        assert refused("SFPLUTFP32", instr_mod1=mod) == "VECTOR-MODE"
    assert refused("SFPLUTFP32", instr_mod1=2, lreg_dest=9) == "VECTOR-DEST"


def test_dest_index_corrupts_the_upper_registers() -> None:
    s = fresh(1)
    s.lane_config[:] = 4
    assert refused("SFPLUT", s, instr_mod0=4, lreg_ind=5) == "TEN-2932"
