"""Bugs in compiled kernels: a line of a shipped program is another; the program is the twin."""

import importlib.metadata
from pathlib import Path
from typing import Any

import pytest
from corpus import checked, found, shipped
from script_module import script

from bhemu.why.findings import CLASS_OF

SCRIPT = script("scripts/make_mutants.py")
MUTANTS: list[dict[str, Any]] = SCRIPT.listed()


def mutated(tmp_path: Path, mutant: dict[str, Any]) -> Path:
    data = (SCRIPT.MUTANTS / f"{mutant['name']}.elf").read_bytes()
    return shipped(tmp_path / "p", mutant["program"], **{mutant["core"]: data})


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant["name"])
def test_the_bug_is_named(mutant: dict[str, Any], tmp_path: Path) -> None:
    path = mutated(tmp_path, mutant)
    whole = mutant["name"] == "math_does_not_wait"  # the others: without the checks that cure
    first, *_ = found(path) if whole else checked(path, "races,unwritten,barriers,stale")
    culprit = first["culprit"]
    assert first["check"] == CLASS_OF[mutant["check"]], first["text"]
    assert (culprit["core"], culprit["file"]) == (mutant["core"], mutant["file"]), first["text"]
    assert abs(culprit["line"] - mutant["line"]) <= 2, (culprit["line"], first["text"])


def test_the_elfs_are_what_the_sources_give(tmp_path: Path) -> None:
    try:
        version = importlib.metadata.version("ziglang")
    except importlib.metadata.PackageNotFoundError:
        version = "none"
    if version != script("firmware/build.py").ZIGLANG:
        pytest.skip("needs the pinned compiler")
    for mutant in MUTANTS:
        SCRIPT.build(mutant, tmp_path / "fresh.elf")
        kept = (SCRIPT.MUTANTS / f"{mutant['name']}.elf").read_bytes()
        assert (tmp_path / "fresh.elf").read_bytes() == kept, mutant["name"]
