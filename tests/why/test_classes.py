"""The order in which findings are told, and when a change that cures is told at all."""

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import planted
import pytest

from bhemu.errors import Internal, NoProgress
from bhemu.riscv.assembly import ttinsn
from bhemu.tensix.insn import assemble
from bhemu.why import checks
from bhemu.why.check import Check
from bhemu.why.findings import CLASS_OF, CLASSES, Finding


def told(found_by: str, instant: int | None = None, severity: str = "error") -> Finding:
    return Finding(found_by, severity, found_by, {}, {"instant": instant}, (), "")


def test_every_check_has_a_class_and_a_cure_is_the_last_one() -> None:
    assert {*checks.every()} < {*CLASS_OF}
    assert [*CLASSES] == "error waiting order unwritten contract origin cure".split()
    found = [told(name, instant) for instant in (1, 100) for name in reversed(CLASS_OF)]
    kinds = [one.check for one in checks.ordered(found)]
    assert kinds == sorted(kinds, key=[*CLASSES].index)
    some = [told("barriers"), told("races", 9, "note"), told("transfers", 60), told("stale", 7)]
    ranked = [one.found_by for one in checks.ordered([told("cure", 1), *some])]
    assert ranked == ["stale", "transfers", "barriers", "races", "cure"]


@pytest.mark.parametrize(
    ("error", "others", "expected"),
    [
        (None, [], ["cure"]),
        (Internal("refused"), [], ["cure"]),
        (NoProgress("idle"), [], ["cure"]),
        (NoProgress("hangs", graph=SimpleNamespace(waiters=())), [], []),
        (None, ["races"], ["races"]),
        (None, ["formats"], ["formats"]),
    ],
)
def test_a_cure_is_told_where_nothing_waits_and_nothing_else_is_found(
    error: Any, others: list[str], expected: list[str]
) -> None:
    asked: list[str] = []

    def check(name: str, *found: str) -> Check:
        def run(_: Any) -> list[Finding]:
            asked.append(name)
            return [told(one) for one in found]

        return Check(name, "", "", "", lambda _: 1, run)

    context: Any = SimpleNamespace(
        late=False, skipped=[], say=lambda _: None, symptom=SimpleNamespace(error=error)
    )
    every = [check("cure", "cure"), check("stack", *others)]
    assert [one.found_by for one in checks.findings(context, every)] == expected
    assert ("cure" in asked) == (expected == ["cure"])  # nor is it looked for
    searches = [check("cure", "cure"), check("stack")]
    given = checks.findings(context, searches, [told(one) for one in others])
    assert [one.found_by for one in given] == expected


def test_a_cure_is_a_note_after_the_output_that_differs(tmp_path: Path) -> None:
    """T1 of add1 goes on by 4 rows where it has to by 8: no check finds anything."""
    folder = tmp_path / "add1"
    shutil.copytree(planted.ROOT / "elfs" / "add1", folder)
    code = (folder / "trisc1.elf").read_bytes()
    right, wrong = (
        ttinsn(assemble("SETRWC", bit_mask=4, rwc_cr=4, rwc_d=rows)).to_bytes(4, "little")
        for rows in (8, 4)
    )
    assert code.count(right) == 2
    before, _, after = code.rpartition(right)
    (folder / "trisc1.elf").write_bytes(before + wrong + after)
    first, last = planted.why(folder)
    assert (first["check"], first["severity"]) == ("origin", "error")
    assert (last["check"], last["severity"], last["advice"]) == ("cure", "note", "")
    text = "the run also ends correctly if trisc1 math.c:64 is changed: SETRWC rwc_d = 0x8"
    assert last["text"] == f"{text} instead of 0x4"
