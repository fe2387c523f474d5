"""The check of stacks asks where sp is when a core uses it, however late that is."""

from pathlib import Path

import pytest
from corpus import Line, checked, folder

from bhemu.memmap import LOCAL_BASE
from bhemu.riscv.assembly import A0, SP, ZERO, addi, bne, li, lw, sw


def grows(path: Path, last: list[int]) -> Path:
    """A kernel that calls 3000 times, and then moves sp below its local memory."""
    calls: list[Line] = [li(A0, 3000), addi(SP, SP, -16), sw(A0, SP), addi(SP, SP, 16)]
    back = [addi(A0, A0, -1), bne(A0, ZERO, -16)]
    kernel = [li(SP, LOCAL_BASE + 48), *calls, *back, addi(SP, SP, -64), last]
    return folder(path, {"trisc0": kernel})


@pytest.mark.parametrize(
    ("last", "lines"), [([lw(A0, SP)], [9]), ([sw(A0, SP)], [9]), ([addi(SP, SP, 64)], [])]
)
def test_a_stack_that_grows_late(last: list[int], lines: list[int], tmp_path: Path) -> None:
    found = checked(grows(tmp_path / "late", last), "stack")
    assert [one["culprit"]["line"] for one in found] == lines
