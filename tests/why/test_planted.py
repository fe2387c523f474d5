"""The planted bugs that why finds, and their corrected twins, in which it finds nothing."""

import os
from pathlib import Path
from types import ModuleType

import planted
import pytest

from bhemu.program.toml import line_of_key

ROOT = planted.ROOT
BUGS = planted.bugs()
WITH_TWIN = [bug for bug in BUGS if bug.also]
FOUND = [bug for bug in BUGS if bug.points]
# With these and the tests beside it every line of why is executed that a planted bug reaches.
REACHING = {
    "a page after the last one is read",
    "a step of the ring too few taken",
    "address without the header's 16 bytes",
    "call of a function that nobody set",
    "column of no DRAM",
    "counters of unit 3 instead of bit 2",
    "descriptor of fp16",
    "does not wait for tiles of B",
    "flag that is not set back",
    "last word of the outbox never made",
    "limit too small",
    "noc write off by sixteen",
    "notes of math in a page of the input",
    "one page more than slots",
    "one word after the done words",
    "one word past the page and its sums",
    "pack clears the format of SrcA",
    "page awaited by the word that it begins",
    "page changed after it is announced",
    "pages sent one further than they are",
    "plain 14: a constant of exp is infinite, and infinity less infinity is NaN",
    "reader reads the page before",
    "reads one tile further on",
    "relu left on",
    "replay length one too long",
    "semaphore set up again for each tile",
    "some time instead of the answer",
    "step announced before it is received",
    "takes from another semaphore",
    "takes in place of waiting",
    "the ring the other way",
}
PLANTED = [
    bug for i, bug in enumerate(BUGS) if bug.points and (i % 40 == 0 or bug.name in REACHING)
]
TWINS = WITH_TWIN[::4]  # of 3 to 60 s
if os.environ.get("BHEMU_LONG"):
    PLANTED, TWINS = FOUND, WITH_TWIN


def test_the_chosen_bugs_are_there() -> None:
    assert {bug.name for bug in FOUND} >= REACHING


@pytest.mark.parametrize("bug", PLANTED, ids=lambda bug: bug.name.replace(" ", "-"))
def test_a_planted_bug(bug: planted.Bug, compiler: ModuleType, tmp_path: Path) -> None:
    """2 points: the first finding names it; 1: another one does; 0: none."""
    made = planted.make(bug, tmp_path / "bug", compiler)
    findings = planted.why(made.folder)
    rank = planted.rank(made, findings)
    found = findings[0]["text"] if findings else "nothing was found"
    assert (0 if rank == 0 else 2 if rank == 1 else 1) >= bug.points, found


@pytest.mark.parametrize("name", sorted({bug.program for bug in BUGS}))
def test_the_corrected_twin(name: str, compiler: ModuleType, tmp_path: Path) -> None:
    path = ROOT / "elfs" / name
    if not path.is_dir():
        path = tmp_path / "twin"
        planted.own(name, path, compiler)
    assert planted.why(path) == []


@pytest.mark.parametrize("bug", TWINS, ids=lambda bug: bug.name.replace(" ", "-"))
def test_a_corrected_twin_of_its_own(
    bug: planted.Bug, compiler: ModuleType, tmp_path: Path
) -> None:
    assert planted.why(planted.make(bug, tmp_path / "twin", compiler, twin=True).folder) == []


def test_lines_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "PROGRAM.toml"
    path.write_text(
        '[[set]] # first\nat = 1\nvalues = ["u32:1", # one\n  "u32:2",\n  "u32:3"]\n'
        '[[set]]\nvalues = ["u32:4", "u32:5"]\n[run]\nlimit = 3\n'
    )
    assert [line_of_key(path, *one) for one in (("set", 1, "at"), ("run", 0, "limit"))] == [6, 9]
    assert line_of_key(path, "none", 0, "at") == 1
