"""RV32IM and Zaamo results as the engine computes them: random words and operands on both."""

import random
from typing import Any

import pytest

from bhemu.machine.tile import Tile
from bhemu.riscv import formats
from bhemu.riscv.assembly import A0, A1, A2, PARK, addi, code, jalr, li, sw
from bhemu.riscv.isa import decode

START, RESULT = 0x10000, 0x8000
EDGES = (0, 1, 2, 31, 32, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFF, 0xFFFFFFFE, 0xFF, 0x8000)
# funct7, funct3 of the register forms: RV32I, M, Zba, Zbb
REGISTER = (
    *((0x00, f) for f in range(8)),
    *((0x20, 0), (0x20, 5)),
    *((0x01, f) for f in range(8)),
    *((0x10, 2), (0x10, 4), (0x10, 6), (0x20, 7), (0x20, 6), (0x20, 4), (0x05, 5), (0x30, 1)),
)


def operand(rng: random.Random) -> int:
    return rng.choice(EDGES) if rng.random() < 0.5 else rng.getrandbits(32)


def computed(word: int, a: int, b: int) -> int:
    """The result of the word's class."""
    cls: Any = decode(word)
    return int(cls.compute(word, START, a, b))


def executed(cases: list[tuple[int, int, int]]) -> list[int]:
    """a0 after each (word, a1, a2), by the engine."""
    body = [
        [*li(A1, a), *li(A2, b), word, *li(13, RESULT + 4 * i), sw(A0, 13)]
        for i, (word, a, b) in enumerate(cases)
    ]
    tile = Tile()
    tile.write(START, code([w for part in body for w in part], PARK))
    tile.core["trisc0"].set_reset_pc(START)
    tile.core["trisc0"].release()
    tile.run()
    return [tile.read32(RESULT + 4 * i) for i in range(len(cases))]


def test_register_forms() -> None:
    rng = random.Random(1)
    cases = [
        (f7 << 25 | A2 << 20 | A1 << 15 | f3 << 12 | A0 << 7 | 0x33, operand(rng), operand(rng))
        for f7, f3 in REGISTER
        for _ in range(12)
    ]
    assert [computed(*case) for case in cases] == executed(cases)


def test_immediate_forms() -> None:
    rng = random.Random(2)
    words = [
        rng.getrandbits(12) << 20 | A1 << 15 | f3 << 12 | A0 << 7 | 0x13
        for f3 in (0, 2, 3, 4, 6, 7)
        for _ in range(12)
    ]
    shifts = [
        f7 << 25 | rng.randrange(32) << 20 | A1 << 15 | f3 << 12 | A0 << 7 | 0x13
        for f7, f3 in ((0, 1), (0, 5), (0x20, 5), (0x30, 5))
        for _ in range(8)
    ]
    cases = [(word, operand(rng), 0) for word in words + shifts]
    assert [computed(*case) for case in cases] == executed(cases)


@pytest.mark.parametrize(
    "word",
    [
        0x7F << 25 | 0x33,
        0x7F << 25 | 1 << 12 | 0x13,
        2 << 12 | 0x63,
        0x05 << 27 | 2 << 12 | 0x2F,
        3 << 12 | 0x03,
        3 << 12 | 0x23,
        1 << 12 | 0x67,
    ],
)
def test_words_that_are_no_instruction_have_no_class(word: int) -> None:
    assert decode(word) is None


@pytest.mark.parametrize("funct3", [0, 1, 4, 5, 6, 7])
def test_branches_and_their_distance(funct3: int) -> None:
    """Each case jumps over a store of 1 or does not; the target is where the engine goes."""
    from bhemu.riscv.assembly import branch

    rng = random.Random(funct3)
    pairs = [(operand(rng), operand(rng)) for _ in range(20)] + [(x, x) for x in EDGES]
    word = branch(funct3, A1, A2, 8)
    assert formats.B_IMM.get(word) == 8
    assert formats.B_IMM.get(branch(funct3, A1, A2, -4096)) == -4096
    parts: list[int] = []
    for i, (a, b) in enumerate(pairs):
        target = li(13, RESULT + 4 * i)
        parts += [*li(A1, a), *li(A2, b), *target, addi(A0, 0, 1), word, addi(A0, 0, 0), sw(A0, 13)]
    tile = Tile()
    tile.write(START, code(parts, PARK))
    tile.core["trisc0"].set_reset_pc(START)
    tile.core["trisc0"].release()
    tile.run()
    got = [bool(tile.read32(RESULT + 4 * i)) for i in range(len(pairs))]
    assert got == [bool(computed(word, a, b)) for a, b in pairs]


def test_offsets() -> None:
    from bhemu.riscv.assembly import jal, lw

    for offset in (0, 4, -4, 2047, -2048):
        assert formats.I_IMM.get(lw(A0, A1, offset)) == offset
        assert formats.I_IMM.get(jalr(A0, A1, offset)) == offset
        assert formats.S_IMM.get(sw(A0, A1, offset)) == offset
    for offset in (4, -4, 0xFFFFE, -0x100000):
        assert formats.J_IMM.get(jal(A0, offset)) == offset


def changed(word: int, old: int, operand: int) -> int:
    cls: Any = decode(word)
    return int(cls.changed(old, operand))


def test_atomics() -> None:
    """amo*.w rd, a2, (a1) over a word in L1."""
    rng = random.Random(3)
    numbers = (0x00, 0x01, 0x04, 0x08, 0x0C, 0x10, 0x14, 0x18, 0x1C)
    cases = [(n, operand(rng), operand(rng)) for n in numbers for _ in range(6)]
    words = [n << 27 | A2 << 20 | A1 << 15 | 2 << 12 | A0 << 7 | 0x2F for n, _, _ in cases]
    parts: list[int] = []
    tile = Tile()
    for i, ((_, old, new), word) in enumerate(zip(cases, words, strict=True)):
        tile.write32(RESULT + 4 * i, old)
        parts += [*li(A1, RESULT + 4 * i), *li(A2, new), word]
    tile.write(START, code(parts, PARK))
    tile.core["trisc0"].set_reset_pc(START)
    tile.core["trisc0"].release()
    tile.run()
    got = [tile.read32(RESULT + 4 * i) for i in range(len(cases))]
    assert got == [changed(w, old, new) for w, (_, old, new) in zip(words, cases, strict=True)]


@pytest.mark.parametrize("funct3", [0, 1, 2, 4, 5])
def test_loads(funct3: int) -> None:
    value = 0x80C3F17F
    word = funct3 << 12 | A1 << 15 | A0 << 7 | 0x03
    tile = Tile()
    tile.write32(RESULT + 64, value)
    tile.write(START, code(li(A1, RESULT + 64), word, PARK))
    tile.core["trisc0"].set_reset_pc(START)
    tile.core["trisc0"].release()
    tile.run()
    cls: Any = decode(word)
    assert int(tile.core["trisc0"].regs[A0]) == cls.loaded(value)
