"""What a finding of a wrong value says besides its causes: what was added to, modes set twice."""

from pathlib import Path
from types import ModuleType

import planted
import pytest

PACK, MATH = "lib/pack_half.h", "eltwise/math.c"


def first_of(
    compiler: ModuleType, out: Path, program: str, core: str, *changes: planted.Change
) -> str:
    """The text of the first finding of a program with changes."""
    bug = planted.Bug("own", 1, program, changes, core, "")
    found: str = planted.why(planted.make(bug, out / "p", compiler).folder)[0]["text"]
    return found


def test_what_a_word_adds_to_although_it_was_packed(compiler: ModuleType, tmp_path: Path) -> None:
    """The packer gives a half of Dst back without ZEROACC."""
    change = PACK, "    TT_ZEROACC(2, 0, 0, 0, half);\n", "    (void)half;\n"
    text = first_of(compiler, tmp_path, "matmul", "trisc2", change)
    assert "; MVMUL adds to 0x" in text
    assert "still holds: packed at clock" in text


@pytest.mark.parametrize("mode", ["STEP_0", "STEP_1"])
def test_a_mode_that_is_set_twice(compiler: ModuleType, tmp_path: Path, mode: str) -> None:
    old = "    } else {\n        ADDR_MODE(STEP_0, AB_STEP(ROWS, ROWS), DST_STEP(ROWS));\n"
    second = "        ADDR_MODE({}, AB_STEP(ROWS, {}), DST_STEP(ROWS));\n"
    change = MATH, old + second.format("STEP_1", "ROWS"), old + second.format(mode, "24")
    text = first_of(compiler, tmp_path, "eltwise", "trisc1", change)
    assert ("is set at math.c:" in text) == (mode == "STEP_0")
    assert ("goes by mode" in text) == (mode == "STEP_0")
