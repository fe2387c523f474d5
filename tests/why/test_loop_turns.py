"""Edits of how a loop begins: what a turn steps is put back where the loop is entered."""

import pytest

from bhemu.riscv.assembly import addi, jal
from bhemu.riscv.isa.rv32i import ADD, BLTU, BNE, SUB
from bhemu.why.repair.edits import NOP, Code
from bhemu.why.repair.turns import begins

AT = 0x1000
BODY = (addi(6, 6, 1), ADD.assemble(7, 7, 8), addi(9, 0, 3), addi(9, 9, 1))


def edits(*words: int) -> dict[str, list[dict[int, tuple[int, ...]]]]:
    """What is tried, by its text: the instructions at each changed place."""
    code = Code({0: {AT + 4 * n: word for n, word in enumerate(words)}})
    found: dict[str, list[dict[int, tuple[int, ...]]]] = {}
    for edit in begins(code, 0):
        found.setdefault(edit.text, []).append(dict(edit.code))
    return found


def test_steps_are_taken_back_at_the_entry() -> None:
    """The count, and what goes on by the same each turn; not what each turn sets anew."""
    found = edits(NOP, *BODY, BNE.assemble(6, 5, -16), NOP)
    first = found["begin this loop 1 turn earlier"][0]
    assert first[AT] == (NOP, addi(6, 6, -1), SUB.assemble(7, 7, 8))
    later = found["begin this loop 1 turn later"][0]
    assert later[AT] == (NOP, addi(6, 6, 1), ADD.assemble(7, 7, 8))


@pytest.mark.parametrize("kept", [True, False])
def test_branch_around_a_loop(kept: bool) -> None:
    """It is kept, on a loop that was entered, or left out, where it kept from entering."""
    around = BLTU.assemble(6, 5, 24)
    found = edits(around, *BODY, BNE.assemble(6, 5, -16), NOP)
    codes = [one[AT] for one in found["begin this loop 1 turn earlier"]]
    steps = (addi(6, 6, -1), SUB.assemble(7, 7, 8))
    inverted = around ^ 1 << 12
    expected = (inverted & ~0xFE000F80 | 8 << 7, jal(0, 24), *steps) if kept else (NOP, *steps)
    assert expected in codes


def test_loop_entered_by_a_jump() -> None:
    """The steps come before the jump into it."""
    found = edits(jal(0, 12), *BODY, BNE.assemble(6, 5, -16), NOP)
    first = found["begin this loop 1 turn earlier"][0]
    assert first[AT] == (addi(6, 6, -1), SUB.assemble(7, 7, 8), jal(0, 12))


def test_straight_code_has_no_loop() -> None:
    """Nothing is tried where no branch goes back."""
    assert edits(NOP, *BODY, BNE.assemble(6, 5, 8), NOP, NOP) == {}
