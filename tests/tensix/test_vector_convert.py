"""Exponent, mantissa and sign (SFPDIVP2, SFPEXEXP, SFPSETEXP, ...; ttsim)."""

import pytest
from sfpu_formats import INF, NAN
from sfpu_runner import MASKS, edged, refused, result, same

SEEDS = range(4)


@pytest.mark.parametrize("imm", [0, 1, 0x7F, 0xF80, 0xFFF, 0xFE0])
@pytest.mark.parametrize("mode", [0, 1])
def test_divp2(mode: int, imm: int) -> None:
    for mask in MASKS:
        for seed in SEEDS:
            s = edged(seed, mask)
            same(s, "SFPDIVP2", instr_mod1=mode, lreg_dest=5, lreg_c=1, imm12_math=imm)
            same(s, "SFPDIVP2", instr_mod1=mode, lreg_dest=3, lreg_c=3, imm12_math=imm)


def test_divp2_wraps_and_keeps_infinities() -> None:
    scaled = result(
        "SFPDIVP2", 0x3F800000, 0x7F000000, 0, INF, NAN, instr_mod1=1, lreg_c=1, imm12_math=2
    )
    assert scaled == [0x40800000, 0, 0x01000000, INF, NAN]


@pytest.mark.parametrize("mode", [0, 1, 2, 10])
def test_exponent_and_its_flag(mode: int) -> None:
    for mask in MASKS:
        for seed in SEEDS:
            same(edged(seed, mask), "SFPEXEXP", instr_mod1=mode, lreg_dest=seed, lreg_c=1)


@pytest.mark.parametrize("mode", [0, 1])
def test_mantissa(mode: int) -> None:
    for mask in MASKS:
        for seed in SEEDS:
            same(edged(seed, mask), "SFPEXMAN", instr_mod1=mode, lreg_dest=seed, lreg_c=1)


@pytest.mark.parametrize(
    ("name", "mode", "imm"),
    [
        *(("SFPSETEXP", 0, 0), ("SFPSETEXP", 2, 0), ("SFPSETEXP", 1, 0), ("SFPSETEXP", 1, 255)),
        *(("SFPSETMAN", 0, 0), ("SFPSETMAN", 1, 0)),
        *(("SFPSETSGN", 0, 0), ("SFPSETSGN", 1, 0), ("SFPSETSGN", 1, 1)),
    ],
)
def test_replaced_fields(name: str, mode: int, imm: int) -> None:
    for mask in MASKS:
        for seed in SEEDS:
            s = edged(seed, mask)
            for d, c in ((2, 1), (3, 4), (5, 5), (6, 13)):
                same(s, name, instr_mod1=mode, lreg_dest=d, lreg_c=c, imm12_math=imm)


REFUSED = [
    ("SFPDIVP2", "VECTOR-MODE-RESERVED", {"instr_mod1": 2}),
    ("SFPDIVP2", "VECTOR-DIVP2-IMMEDIATE", {"imm12_math": 0x80}),
    ("SFPDIVP2", "VECTOR-DIVP2-IMMEDIATE", {"imm12_math": 0xF7F}),
    ("SFPEXEXP", "VECTOR-MODE-RESERVED", {"instr_mod1": 4}),
    ("SFPEXEXP", "VECTOR-MODE-RESERVED", {"instr_mod1": 15}),
    ("SFPEXMAN", "VECTOR-MODE-RESERVED", {"instr_mod1": 2}),
    ("SFPSETEXP", "VECTOR-MODE", {"instr_mod1": 4}),
    ("SFPSETEXP", "VECTOR-IMMEDIATE", {"imm12_math": 1}),
    ("SFPSETMAN", "VECTOR-MODE", {"instr_mod1": 2}),
    ("SFPSETMAN", "VECTOR-IMMEDIATE", {"instr_mod1": 0, "imm12_math": 1}),
    ("SFPSETSGN", "VECTOR-MODE-RESERVED", {"instr_mod1": 2}),
    ("SFPSETSGN", "VECTOR-IMMEDIATE", {"imm12_math": 1}),
]


@pytest.mark.parametrize(("name", "rule", "fields"), REFUSED)
def test_refused_modes(name: str, rule: str, fields: dict[str, int]) -> None:
    assert refused(name, **fields) == rule


@pytest.mark.parametrize("name", sorted({case[0] for case in REFUSED}))
def test_constants_are_not_written(name: str) -> None:
    assert refused(name, lreg_dest=9) == "VECTOR-DEST"
