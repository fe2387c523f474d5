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
    ("the end of unpacking for the end of all", "the run is to end with word 0x100"),
    ("notes over the arguments", "which PROGRAM.toml sets to 0x2, with 0x1"),
    ("the number of a job for its place", "brisc sends trisc1 0x20001"),
    ("packs what is bf16 as fp32", "In_data_format = 0x5 instead of 0x0"),
    ("exponents of eight rows each", "Exp_section_size = 0x4 instead of 0x8"),
    ("one format too few", "0x5 is missing before value 8"),
    ("the threshold as bf16", "the bits of an fp32"),
    ("the square takes the register of the constant", "SFPMUL lreg_dest=0x1, and so who reads it"),
    ("b is a", "is to lie +0x4000 bytes on, as of b.npy, not a.npy"),
    ("the first block is added to what is in L1", "decides the result"),
]


def first(name: str, tmp_path: Path, compiler: ModuleType) -> tuple[planted.Made, dict[str, Any]]:
    made = planted.make(BUGS[name], tmp_path / "bug", compiler)
    return made, planted.why(made.folder)[0]


@pytest.mark.parametrize(("name", "text"), FIRST)
def test_the_cause_comes_first(name: str, text: str, tmp_path: Path, compiler: ModuleType) -> None:
    made, found = first(name, tmp_path, compiler)
    assert text in found["text"]
    assert planted.hit(made, found)
