"""The check of stacks is bounded by the changes of sp that it looks at, not by time."""

from pathlib import Path

import pytest
from corpus import Line, checked, folder

from bhemu.memmap import LOCAL_BASE
from bhemu.riscv.assembly import A0, SP, ZERO, addi, bne, li
from bhemu.why.checks import cores

CHANGES = 2 + 2 * 3000 + 1  # of sp: two set it up, each call there and back, the last one


def grows(path: Path) -> Path:
    """A kernel that calls 3000 times, and then moves sp below its local memory."""
    calls: list[Line] = [li(A0, 3000), addi(SP, SP, -16), addi(SP, SP, 16), addi(A0, A0, -1)]
    kernel = [li(SP, LOCAL_BASE + 48), *calls, bne(A0, ZERO, -12), addi(SP, SP, -64)]
    return folder(path, {"trisc0": kernel})


@pytest.mark.parametrize(("most", "lines"), [(20_000, [7]), (CHANGES, [7]), (CHANGES - 1, [])])
def test_a_stack_that_grows_late(
    most: int, lines: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cores, "_MOST", most)
    found = checked(grows(tmp_path / "late"), "stack")
    assert [one["culprit"]["line"] for one in found] == lines
