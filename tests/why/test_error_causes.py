"""Causes that stand elsewhere: who set a field, overwrote an address or an argument."""

from pathlib import Path
from types import ModuleType

import planted
import pytest

BUGS = {bug.name: bug for bug in planted.bugs()}
FIRST = [
    ("the address takes the offset of the second half", "has its value from here"),
    ("notes over the arguments", "which PROGRAM.toml sets to 0x2, with 0x1"),
    ("the first block is added to what is in L1", "decides the result"),
]


@pytest.mark.parametrize(("name", "text"), FIRST)
def test_the_cause_comes_first(name: str, text: str, tmp_path: Path, compiler: ModuleType) -> None:
    made = planted.make(BUGS[name], tmp_path / "bug", compiler)
    first, *_ = planted.why(made.folder)
    assert text in first["text"]
    assert planted.hit(made, first)
