"""Which instructions use a result, along the paths of the code."""

from bhemu.riscv.assembly import addi, beq, jal, lw, sw
from bhemu.why.repair.edits import computed_for, readers

A, B, C = 10, 11, 12


def test_readers_stand_on_every_path_until_the_result_is_replaced() -> None:
    code = [
        addi(A, 0, 5),  # 0
        beq(B, 0, 12),  # 4: to 16
        sw(A, C),  # 8: a reader
        addi(A, 0, 1),  # 12: the result is gone
        addi(C, A, 1),  # 16: a reader, by way of the branch
        jal(0, -20),  # 20
    ]
    words = {4 * n: word for n, word in enumerate(code)}
    assert set(readers(words, 0)) == {8, 16}
    assert set(readers(words, 12)) == {16}


def test_what_has_no_line_is_followed_to_what_has_one() -> None:
    code = [lw(A, B, 0), addi(C, A, 1), addi(B, C, 1), sw(B, 2)]
    words = {4 * n: word for n, word in enumerate(code)}
    assert computed_for(words, 0, lambda pc: 7 if pc == 12 else 0) == {12}
    assert computed_for(words, 0, lambda pc: 7 if pc == 4 else 0) == {4}
