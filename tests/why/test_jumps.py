"""A core that leaves its own code: the line that made it do so."""

from pathlib import Path

import pytest
from corpus import Line, checked, folder, store

from bhemu.riscv.assembly import A0, A1, NOP, addi, jal, li, word

OUT, AWAY = 0x20200, 0x50000
JUMPS: dict[str, Line] = {
    "function pointer": [*li(A0, AWAY), word("jalr", 1, A0, 0)],
    "after what only computes": [addi(A1, A1, 1), addi(A1, A1, 1), jal(0, 0x4000)],
}

CALLS: list[Line] = [jal(1, 8), jal(0, 12), word("jalr", 0, 1, 0), NOP]  # within the code


@pytest.mark.parametrize("name", JUMPS)
def test_a_jump_out_of_the_code_is_named(name: str, tmp_path: Path) -> None:
    kernel: list[Line] = [[NOP] * 3, JUMPS[name], store(OUT, 1)]
    path = folder(tmp_path, {"trisc0": CALLS, "trisc1": kernel}, outputs={OUT: [1]})
    (finding,) = checked(path, "jumps")
    assert "trisc1 leaves its own code" in finding["text"]
    assert (finding["culprit"]["file"], finding["culprit"]["line"]) == ("trisc1.s", 2)
