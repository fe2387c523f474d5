"""Causes that stand elsewhere: who set a field, overwrote an address, took a register twice."""

from pathlib import Path
from types import ModuleType
from typing import Any

import planted
import pytest

BUGS = {bug.name: bug for bug in planted.bugs()}
FIRST = [
    ("the address takes the offset of the second half", "has its value from here"),
    ("answers over the jobs that are left", "which PROGRAM.toml sets, with"),
    ("notes over the arguments", "which PROGRAM.toml sets to 0x2, with 0x1"),
    ("the number of a job for its place", "brisc sends trisc1 0x20001"),
    ("the first block is added to what is in L1", "decides the result"),
]
CURES = [
    ("exponents of eight rows each", "Exp_section_size = 0x4 instead of 0x8"),
    ("the threshold as bf16", "the bits of an fp32"),
    ("the square takes the register of the constant", "SFPMUL lreg_dest=0x1, and so who reads it"),
    ("b is a", "is to lie +0x4000 bytes on, as of b.npy, not a.npy"),
]


def found(
    name: str, tmp_path: Path, compiler: ModuleType
) -> tuple[planted.Made, list[dict[str, Any]]]:
    made = planted.make(BUGS[name], tmp_path / "bug", compiler)
    return made, planted.why(made.folder)


@pytest.mark.parametrize(("name", "text"), FIRST)
def test_the_cause_comes_first(name: str, text: str, tmp_path: Path, compiler: ModuleType) -> None:
    made, (first, *_) = found(name, tmp_path, compiler)
    assert text in first["text"]
    assert planted.hit(made, first)


@pytest.mark.parametrize(("name", "text"), CURES)
def test_a_change_that_cures_comes_behind_the_output(
    name: str, text: str, tmp_path: Path, compiler: ModuleType
) -> None:
    made, (first, *others) = found(name, tmp_path, compiler)
    assert first["check"] == "origin"
    cure = next(one for one in others if one["check"] == "cure")
    assert text in cure["text"]
    assert planted.hit(made, cure)
