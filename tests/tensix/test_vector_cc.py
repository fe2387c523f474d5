"""Condition codes, their stack and comparisons (SFPSETCC, SFPENCC, SFPPUSHC, SFPGT, ...; ttsim)."""

import random

import pytest
from sfpu_runner import EDGES, MASKS, fresh, refused, same
from unit_runner import run

SEEDS = range(4)


@pytest.mark.parametrize("mask", ["all", "some", "none"])
@pytest.mark.parametrize("mode", [0, 2, 4, 6])
def test_setcc_compares_with_zero_in_enabled_lanes(mode: int, mask: str) -> None:
    for seed in SEEDS:
        s = fresh(seed, mask)
        s.lreg[2, ::3] = 0
        same(s, "SFPSETCC", instr_mod1=mode, lreg_c=seed)


def test_setcc_only_narrows() -> None:
    """A disabled lane keeps flag 0 even when its value passes."""
    s = fresh(1)
    s.lreg[1] = 0
    s.cc[5] = 0
    same(s, "SFPSETCC", instr_mod1=6, lreg_c=1)
    assert s.cc.tolist() == [int(i != 5) for i in range(32)]


@pytest.mark.parametrize(("mode", "imm"), [(0, 0), (10, 0), (10, 1), (10, 2), (10, 3)])
def test_encc_sets_all_lanes(mode: int, imm: int) -> None:
    for mask in MASKS:
        same(fresh(2, mask), "SFPENCC", instr_mod1=mode, imm12_math=imm)


def test_a_disabled_lane_is_enabled_again_by_encc() -> None:
    s = fresh(2, "none")
    same(s, "SFPENCC", instr_mod1=10, imm12_math=3)
    assert s.cc.all() and s.cc_en[0] == 1


def test_the_stack_holds_eight_entries() -> None:
    """Flags and enable are pushed together and come back last in, first out."""
    for mask in MASKS:
        s, rng = fresh(3, mask), random.Random(3)
        for _ in range(8):
            same(s, "SFPPUSHC")
            s.cc[:] = [rng.getrandbits(1) for _ in range(32)]
            s.cc_en[0] = rng.getrandbits(1)
        assert refused("SFPPUSHC", s) == "VECTOR-CC-OVERFLOW"
        for _ in range(8):
            same(s, "SFPPOPC")
        assert refused("SFPPOPC", s) == "VECTOR-CC-UNDERFLOW"


@pytest.mark.parametrize("mask", ["all", "some", "none"])
def test_compc_stays_inside_the_enclosing_block(mask: str) -> None:
    s = fresh(4, mask)
    same(s, "SFPCOMPC")
    same(s, "SFPPUSHC")
    same(s, "SFPSETCC", lreg_c=1)
    same(s, "SFPCOMPC")
    same(s, "SFPCOMPC")


def test_compc_below_unused_flags_clears_them() -> None:
    """SFPCOMPC, Wormhole ISA: false unless both the current and the pushed flags are in use."""
    s = fresh(4, "unused")
    assert s.cc.any()
    assert run(s, "SFPPUSHC") == 0 == run(s, "SFPCOMPC")
    assert not s.cc.any()
    s.cc_en[0], s.cc[:] = 1, 0
    assert run(s, "SFPCOMPC") == 0
    assert not s.cc.any()


def test_if_else_selects_every_lane_once() -> None:
    """v_if / v_else as compilers emit them: PUSHC, SETCC, COMPC, POPC."""
    s = fresh(5)
    s.lreg[1] = [i - 16 & 0xFFFFFFFF for i in range(32)]
    same(s, "SFPPUSHC")
    same(s, "SFPSETCC", lreg_c=1)
    same(s, "SFPMOV", lreg_dest=2, lreg_c=11)
    same(s, "SFPCOMPC")
    same(s, "SFPMOV", lreg_dest=2, lreg_c=10)
    same(s, "SFPPOPC")
    assert s.lreg[2].tolist() == [0xBF800000] * 16 + [0x3F800000] * 16
    assert s.cc.all() and s.cc_depth[0] == 0


@pytest.mark.parametrize("mode", [1, 8])
@pytest.mark.parametrize("name", ["SFPGT", "SFPLE"])
def test_comparisons_order_all_patterns(name: str, mode: int) -> None:
    """Sign-magnitude order: -NaN < -infinity < ... < -0 < +0 < ... < infinity < NaN."""
    for mask in MASKS:
        for seed in SEEDS:
            s = fresh(seed, mask)
            s.lreg[1], s.lreg[2] = (EDGES * 2)[seed : seed + 32], (EDGES * 3)[9 * seed :][:32]
            s.lreg[2, ::4] = s.lreg[1, ::4]
            for d, c in ((3, 4), (1, 2), (2, 1), (1, 9), (5, 5)):
                same(s, name, instr_mod1=mode, lreg_dest=d, lreg_c=c)


REFUSED = [
    ("SFPSETCC", "VECTOR-IMMEDIATE", {"instr_mod1": 9, "imm12_math": 1}),
    ("SFPSETCC", "VECTOR-IMMEDIATE", {"imm12_math": 1}),
    ("SFPENCC", "VECTOR-MODE", {"instr_mod1": 4}),
    ("SFPENCC", "VECTOR-MODE", {"instr_mod1": 14}),
    ("SFPENCC", "VECTOR-IMMEDIATE", {"instr_mod1": 1, "imm12_math": 1}),
    ("SFPENCC", "VECTOR-IMMEDIATE", {"imm12_math": 1}),
    ("SFPPUSHC", "VECTOR-CC-TOP", {"instr_mod1": 1}),
    ("SFPPUSHC", "VECTOR-CC-TOP", {"instr_mod1": 15}),
    ("SFPLE", "VECTOR-DEST", {"instr_mod1": 8, "lreg_dest": 9}),
    ("SFPGT", "VECTOR-DEST", {"instr_mod1": 9, "lreg_dest": 11}),
]


@pytest.mark.parametrize(("name", "rule", "fields"), REFUSED)
def test_refused_modes(name: str, rule: str, fields: dict[str, int]) -> None:
    assert refused(name, **fields) == rule


@pytest.mark.parametrize("name", ["SFPSETCC", "SFPENCC", "SFPPUSHC", "SFPPOPC", "SFPCOMPC"])
def test_no_destination(name: str) -> None:
    for d in (1, 7, 8, 11):
        assert refused(name, lreg_dest=d) == "VECTOR-DEST-ZERO"
