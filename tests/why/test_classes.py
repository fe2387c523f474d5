"""The order in which findings are told, and when a change that cures is told at all."""

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import planted
import pytest

from bhemu.errors import Internal, NoProgress
from bhemu.why import checks
from bhemu.why.check import Check
from bhemu.why.findings import CLASS_OF, CLASSES, Finding


def told(found_by: str, likelihood: int = 50) -> Finding:
    return Finding(found_by, "error", found_by, {}, {}, (), "", likelihood)


def test_every_check_has_a_class_and_a_cure_is_the_last_one() -> None:
    assert {*checks.every()} < {*CLASS_OF}
    assert [*CLASSES] == "error waiting order unwritten contract origin cure".split()
    found = [told(name, likelihood) for likelihood in (1, 100) for name in reversed(CLASS_OF)]
    kinds = [one.check for one in checks.ordered(found)]
    assert kinds == sorted(kinds, key=[*CLASSES].index)
    both = checks.ordered([told("races", 60), told("stale", 90), told("repair", 99)])
    assert [one.found_by for one in both] == ["stale", "races", "repair"]


@pytest.mark.parametrize(
    ("error", "others", "expected"),
    [
        (None, [], ["repair"]),
        (Internal("refused"), [], ["repair"]),
        (NoProgress("idle"), [], ["repair"]),
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
    every = [check("repair", "repair"), check("stack", *others)]
    assert [one.found_by for one in checks.findings(context, every)] == expected
    assert ("repair" in asked) == (expected == ["repair"])  # nor is it looked for
    given = checks.findings(
        context, [check("stack")], [told(one) for one in others], [told("repair")]
    )
    assert [one.found_by for one in given] == expected


def test_a_cure_is_a_note_behind_the_output_that_differs(tmp_path: Path) -> None:
    """A number of add1 is another one: the run is wrong, and no check finds anything."""
    folder = tmp_path / "add1"
    shutil.copytree(planted.ROOT / "elfs" / "add1", folder)
    text = (folder / planted.TOML).read_text()
    (folder / planted.TOML).write_text(text.replace('"f32:1.0"', '"f32:2.0"'))
    first, *others = planted.why(folder)
    assert (first["check"], first["severity"]) == ("origin", "error")
    kinds = [one["check"] for one in others]
    assert "cure" in kinds and kinds == sorted(kinds, key="origin cure".split().index)
    cures = [one for one in others if one["check"] == "cure"]
    assert {(one["severity"], one["advice"]) for one in cures} == {("note", "")}
    assert all(one["text"].startswith("the run also ends correctly if ") for one in cures)
