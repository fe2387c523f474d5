"""Every SFPU word that the golden programs execute, against the second literal model.

The programs end with the golden model's L1; the second reading is held against each word on the
way: registers, flags, generators and Dst before it, and after it.
"""

from collections import Counter
from collections.abc import Callable

import golden_case
import numpy as np
import pytest
from vector_literal_runner import differences, snapshot, unit_of

from bhemu.machine.tile import Tile
from bhemu.tensix.insn import decode
from random_programs import vectors
from random_programs.units import generate

SFPU = range(0x70, 0x9A)
MATH = 1
CASES = sorted(path.stem for path in golden_case.GOLDEN.glob("*sfpu*.npz"))
_, PROGRAMS = vectors.load(golden_case.GOLDEN.parent / "vectors" / "vector.npz")
EVERYWHERE = {"SFPLOAD", "SFPSTORE", "SFPLOADI", "SFPENCC", "SFPCONFIG"}


def executed_words(tile: Tile) -> int:
    """Words that the math thread executes until the end; no other executes an SFPU word."""
    assert tile.run(golden_case.DONE, timeout_s=60).reason == "until"
    assert tile.state.op_count[[0, 2]][:, SFPU].sum() == 0
    return int(tile.state.executed[MATH])


def compared(start: Callable[[], Tile]) -> tuple[Tile, Counter[str]]:
    """Run a program twice, the second time word by word; the tile, and words by mnemonic."""
    total, counted, tile = executed_words(start()), Counter[str](), start()
    s = tile.state
    tile.tstep(MATH, 0)  # until a word stands at the gate
    for n in range(total):
        assert (s.executed[MATH], s.gate_full[MATH]) == (n, 1)
        cls, word = decode(int(s.gate_word[MATH])), int(s.gate_word[MATH])
        vector = cls is not None and cls.opcode in SFPU
        unit = unit_of(snapshot(s), MATH) if vector else None
        if n + 1 < total:
            tile.tstep(MATH)
            tile.tstep(MATH, 0)
        else:
            assert tile.run(golden_case.DONE, timeout_s=60).reason == "until"
        if cls and unit:
            unit.execute(cls.name, **cls.operands(word))
            assert differences(unit, s) == [], f"word {n}: {cls.name} {cls.operands(word)}"
            counted[cls.name] += 1
    assert counted.total() == s.op_count[MATH, SFPU].sum() > 0
    return tile, counted


@pytest.mark.parametrize("name", CASES)
def test_the_second_reading_agrees_on_every_golden_operand(name: str) -> None:
    case = golden_case.load(name)
    tile, _ = compared(lambda: golden_case.start(case))
    assert case.differences(tile.l1) == []


def _started(image: bytes) -> Tile:
    return golden_case.start(golden_case.Case("", np.frombuffer(image, np.uint8), None, []))


@pytest.mark.parametrize("vector", PROGRAMS, ids=lambda vector: str(vector.index))
def test_the_second_reading_agrees_on_every_vector(vector: vectors.Vector) -> None:
    case = generate("vector", vectors.SEED, vector.index).case()
    tile, counted = compared(lambda: _started(case.image))
    assert counted.keys() - EVERYWHERE
    assert vectors.digest(np.asarray(tile.l1)) == vector.digest
