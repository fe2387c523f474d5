"""Every SFPU word that the golden programs execute, against the second literal model.

Their results equal the golden model's, so the second reading is held against it word by word.
"""

from collections import Counter
from functools import cache

import golden_case
import pytest
from vector_literal_runner import differences, snapshot, unit_of

from bhemu.tensix.insn import decode

SFPU = range(0x70, 0x9A)
MATH = 1
CASES = sorted(path.stem for path in golden_case.GOLDEN.glob("*sfpu*.npz"))


@cache
def executed_words(name: str) -> int:
    """Words that the math thread executes, and that no other executes an SFPU word."""
    tile = golden_case.start(golden_case.load(name))
    assert tile.run(golden_case.DONE, timeout_s=60).reason == "until"
    assert tile.state.op_count[[0, 2]][:, SFPU].sum() == 0
    return int(tile.state.executed[MATH])


@pytest.mark.parametrize("name", CASES)
def test_the_second_reading_agrees_on_every_golden_operand(name: str) -> None:
    total, compared = executed_words(name), Counter[str]()
    tile = golden_case.start(golden_case.load(name))
    s = tile.state
    tile.tstep(MATH, 0)  # a step stops with the next word at the gate
    for n in range(total):
        assert (s.executed[MATH], s.gate_full[MATH]) == (n, 1)
        word, before = int(s.gate_word[MATH]), snapshot(s)
        if n + 1 < total:
            tile.tstep(MATH)
        else:
            tile.run(golden_case.DONE, timeout_s=60)
        cls = decode(word)
        if cls is None or cls.opcode not in SFPU:
            continue
        unit = unit_of(before, MATH)
        unit.execute(cls.name, **cls.operands(word))
        assert differences(unit, s) == [], f"word {n}: {cls.name} {cls.operands(word)}"
        compared[cls.name] += 1
    assert compared.total() == s.op_count[MATH, SFPU].sum() > 0

