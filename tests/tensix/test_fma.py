"""The fused multiply-add of the vector unit (SFPMAD, Blackhole ISA; ttsim's multiply-add model).

Known bit patterns, and random operands against the literal model, all through SFPMAD.
"""

import random

import numpy as np
import pytest
from sfpu_formats import INF, LANES, NAN, SIGN
from sfpu_formats import fma as literal
from sfpu_runner import EDGES, operand
from unit_runner import run

from bhemu.tensix.state import State

ONE, TWO, LARGEST, SMALLEST = 0x3F800000, 0x40000000, 0x7F7FFFFF, 0x00800000
ULP = 0x34000000  # 2**-23
HALF_ULP, ABOVE_HALF = 0x33800000, 0x33800001


def fma(rows: list[tuple[int, int, int]]) -> list[int]:
    """Results of up to 32 operand triples."""
    s = State()
    padded = rows + [(0, 0, 0)] * (32 - len(rows))
    s.lreg[1], s.lreg[2], s.lreg[3] = zip(*padded, strict=True)
    assert run(s, "SFPMAD", lreg_dest=4, lreg_src_a=1, lreg_src_b=2, lreg_src_c=3) == 0
    return [int(v) for v in s.lreg[4][: len(rows)]]


KNOWN = [
    ("1 * 1 + 1", ONE, ONE, ONE, TWO),
    ("tie to even, down", ONE, ONE, HALF_ULP, ONE),
    ("tie to even, up", ONE + 1, ONE, HALF_ULP, ONE + 2),
    ("above the tie", ONE, ONE, ABOVE_HALF, ONE + 1),
    ("a difference cancels to +0", ONE, ONE, ONE | SIGN, 0),
    ("-0 needs both signs", SIGN, ONE, SIGN, SIGN),
    ("-0 + 0 = 0", SIGN, ONE, 0, 0),
    ("denormal factor is zero", 0x007FFFFF, LARGEST, TWO, TWO),
    ("denormal addend is zero", ONE, ONE, 0x807FFFFF, ONE),
    ("denormal sum keeps its sign only", SIGN | 0x00400000, ONE, SIGN, SIGN),
    ("denormal result becomes signed zero", SMALLEST + 1, ONE, SMALLEST | SIGN, 0),
    ("negative denormal result", SMALLEST | SIGN, 0x3F000000, 0, 0x80000000),
    ("product below the range leaves the addend", SMALLEST, SMALLEST, SMALLEST, SMALLEST),
    ("infinity * 0", INF, 0, ONE, NAN),
    ("infinity * denormal", INF, 1, ONE, NAN),
    ("infinity - infinity", INF, ONE, INF | SIGN, NAN),
    ("infinity + infinity", INF, ONE, INF, INF),
    ("NaN is canonical", 0xFF800001, ONE, ONE, NAN),
    ("NaN addend", ONE, ONE, 0x7F800001, NAN),
    ("overflow", LARGEST, TWO, 0, INF),
    ("overflow by rounding", LARGEST, ONE, LARGEST, INF),
    ("an overflowing product beats a finite addend", LARGEST, TWO, LARGEST | SIGN, INF),
    ("an infinite addend beats it", LARGEST, TWO, INF | SIGN, INF | SIGN),
    (
        "what is left of 2**-46 is the sticky bit 2**-26",
        ONE + 1,
        ONE + 1,
        ONE + 2 | SIGN,
        0x32800000,
    ),
]


@pytest.mark.parametrize(("x", "y", "z", "want"), [k[1:] for k in KNOWN], ids=[k[0] for k in KNOWN])
def test_known_results(x: int, y: int, z: int, want: int) -> None:
    assert fma([(x, y, z)]) == [want]
    assert literal(x, y, z) == want


def test_all_pairs_of_edges() -> None:
    """Every edge case as factor and addend, with a second factor of 1.0, -0.5 or itself."""
    triples = [(x, y, z) for x in EDGES for z in EDGES for y in (ONE, 0xBF000000, x)]
    compare(triples)


def compare(triples: list[tuple[int, int, int]], together: int = 32) -> None:
    for at in range(0, len(triples), together):
        rows = triples[at : at + together]
        want = [literal(*row) for row in rows]
        assert fma(rows) == want, [[hex(v) for v in row] for row in rows]


def aligned(rng: random.Random) -> tuple[int, int, int]:
    """A product and an addend whose exponents are `gap` apart."""
    ex, gap = rng.randrange(60, 190), rng.choice((*range(-33, 70), 0, 1, -1))
    ey = rng.randrange(100, 150)
    ez = min(max(ex + ey - 127 - gap, 0), 255)
    fractions = [rng.choice((0, 1, 0x7FFFFF, 0x400000, rng.getrandbits(23))) for _ in range(3)]
    signs = [rng.getrandbits(1) << 31 for _ in range(3)]
    parts = zip(signs, (ex, ey, ez), fractions, strict=True)
    x, y, z = (s | e << 23 | f for s, e, f in parts)
    return x, y, z


def border(rng: random.Random) -> tuple[int, int, int]:
    """Products near the ends of the exponent range."""
    ex = rng.randrange(1, 255)
    ey = min(max(rng.choice((127, 128, 380, 381, 382)) - ex + rng.randrange(-2, 3), 0), 255)
    ez = rng.choice((0, 1, 2, 253, 254, 255))
    signs = [rng.getrandbits(1) << 31 for _ in range(3)]
    parts = zip(signs, (ex, ey, ez), strict=True)
    x, y, z = (s | e << 23 | rng.getrandbits(23) for s, e in parts)
    return x, y, z


@pytest.mark.parametrize("together", [1, 32])
@pytest.mark.parametrize("kind", ["mixed", "aligned", "border", "cancel"])
def test_random_operands(kind: str, together: int) -> None:
    """One alone too: exponents of one lane at the ends of the range are a matter for all."""
    rng = random.Random(kind)
    triples = []
    for _ in range(3200):
        if kind == "mixed":
            triples.append((operand(rng), operand(rng), operand(rng)))
        elif kind == "border":
            triples.append(border(rng))
        else:
            x, y, z = aligned(rng)
            if kind == "cancel":  # an addend within a few units of the negated product
                near = literal(x, y, 0) ^ SIGN
                z = max(near + rng.randrange(-3, 4), 0) & 0xFFFFFFFF
            triples.append((x, y, z))
    compare(triples, together)


def test_operands_are_independent_of_the_lane() -> None:
    rng = random.Random(8)
    row = (operand(rng), ONE + 5, operand(rng))
    assert fma([row] * len(LANES)) == [literal(*row)] * len(LANES)


def sums(rng: random.Random, kind: str) -> tuple[int, int]:
    """Two addends: any, of near exponents, at the ends of the range, that nearly cancel."""
    if kind == "any":
        return operand(rng), operand(rng)
    low, high = (0, 4) if kind == "small" else (250, 256) if kind == "large" else (40, 200)
    exponent = rng.randrange(low, high)
    other = min(max(exponent + rng.randrange(-30, 31) // rng.choice((1, 9, 30)), 0), 255)
    fraction = rng.getrandbits(23)
    near = fraction + rng.randrange(-3, 4) if kind == "cancel" else rng.getrandbits(23)
    x = rng.getrandbits(1) << 31 | exponent << 23 | fraction
    z = rng.getrandbits(1) << 31 | other << 23 | near & 0x7FFFFF
    return x, z


@pytest.mark.parametrize("kind", ["any", "near", "small", "large", "cancel"])
@np.errstate(over="ignore")  # as in every run
def test_sums_are_those_of_the_multiply_add(kind: str) -> None:
    """SFPADD and SFPADDI, with a factor of 1.0, against SFPMAD: all lanes, and one among zeros."""
    rng, s = random.Random(kind), State()
    for n in range(1500):
        pairs = [sums(rng, kind) for _ in LANES]
        if n % 3 == 0:
            pairs = [pairs[0]] + [(0, 0)] * (len(LANES) - 1)
        s.lreg[1], s.lreg[2] = zip(*pairs, strict=True)
        mode, one_first = n & 3, n & 4
        factors = {"lreg_src_a": 10, "lreg_src_b": 1} if one_first else {}
        given = {"lreg_src_a": 1, "lreg_src_b": 10, "lreg_src_c": 2, "instr_mod1": mode} | factors
        assert run(s, "SFPMAD", lreg_dest=4, **given) == 0
        assert run(s, "SFPADD", lreg_dest=5, **given) == 0
        assert s.lreg[5].tolist() == s.lreg[4].tolist(), [[hex(v) for v in row] for row in pairs]
        immediate = pairs[0][0] >> 16
        s.lreg[6], s.lreg[7] = immediate << 16, s.lreg[2]
        assert run(s, "SFPMAD", lreg_dest=4, lreg_src_a=6, lreg_src_b=10, lreg_src_c=2) == 0
        assert run(s, "SFPADDI", lreg_dest=7, imm16_math=immediate) == 0
        assert s.lreg[7].tolist() == s.lreg[4].tolist(), [hex(immediate)]
