"""Bugs planted in programs of several tiles: each check finds its own, and nothing in the twins."""

import os
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import planted
import pytest
from corpus import checked

from bhemu.why.findings import CLASS_OF

ROOT = planted.ROOT
BUGS: list[dict[str, Any]] = tomllib.loads(
    (Path(__file__).parent / "planted_chips.toml").read_text(encoding="utf-8")
)["bug"]
CHECKS = sorted({bug["check"] for bug in BUGS})
FIRST = {bug["check"]: bug["name"] for bug in reversed(BUGS)}
PLANTED = BUGS if os.environ.get("BHEMU_LONG") else [b for b in BUGS if b["name"] in FIRST.values()]


def made(bug: dict[str, Any], folder: Path, build: ModuleType) -> planted.Made:
    keys = ("name", "pain", "program", "core", "line")
    changes = tuple((file, old, new) for file, old, new in bug["change"])
    about = {key: bug[key] for key in keys if key in bug}
    return planted.make(planted.Bug(changes=changes, **about), folder, build)


def named(bug: dict[str, Any], bad: planted.Made, finding: dict[str, Any]) -> bool:
    """Whether the culprit is the bug; `use`: file and line of who comes upon it."""
    if "use" not in bug:
        return planted.hit(bad, finding)
    file, text = bug["use"]
    source = (ROOT / "firmware" / file).read_text()
    line = source.count("\n", 0, source.index(text)) + 1
    culprit = finding["culprit"]
    places = [culprit, *culprit.get("inlined", ())]
    return culprit.get("core") == bug["core"] and any(
        place.get("file", "").rpartition("/")[2] == Path(file).name
        and abs(place.get("line", -99) - line) <= planted.NEAR
        for place in places
    )


@pytest.mark.parametrize("bug", PLANTED, ids=lambda bug: bug["name"].replace(" ", "-"))
def test_a_bug_is_found(bug: dict[str, Any], compiler: ModuleType, tmp_path: Path) -> None:
    bad = made(bug, tmp_path / "bug", compiler)
    findings = checked(bad.folder, bug["check"])
    assert findings, "nothing was found"
    first = findings[0]
    assert first["check"] == CLASS_OF[bug["check"]]
    assert named(bug, bad, first), (first["culprit"], first["text"])
    tile = ",".join(map(str, first["culprit"]["tile"]))
    assert tile == bug.get("tile", tile)
    assert not any("more tiles" in line for line in first["evidence"]) or not bug.get("tile")
    if "witness" in bug:
        shown = [line for line in first["evidence"] if line.startswith("shown by bhemu run ")]
        assert shown, first["evidence"]
        assert bug["witness"] in shown[0]
    if "reader" in bug:
        told = [line for line in first["evidence"] if line.startswith("used by ")]
        assert any(all(part in line for part in bug["reader"]) for line in told), first["evidence"]


@pytest.mark.parametrize("name", sorted({bug["program"] for bug in BUGS} | {"all_gather"}))
def test_the_twin_is_silent(name: str) -> None:
    assert checked(ROOT / "elfs" / name, ",".join(CHECKS)) == []
