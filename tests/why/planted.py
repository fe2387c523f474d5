"""Bugs planted in copies of our kernels: one change of a source or of PROGRAM.toml each.

The corrected twin of a bug is the program as it is shipped. `make` builds what a bug changes; `hit`
says whether a finding names it: its core, and its line within two.
"""

import json
import re
import shutil
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from click.testing import CliRunner

import bhemu as package
from bhemu.cli import main

ROOT = Path(package.__file__).parent.parent
NEAR = 2  # lines
TOML = "PROGRAM.toml"


@dataclass(frozen=True)
class Bug:
    """One planted bug.

    `changes`: (file below firmware/, or PROGRAM.toml, text, replacement); the first is the bug.
    `points`: 2 where the first finding is to name it, 1 where another one does.
    `core`: whose code is wrong, "" for PROGRAM.toml; `line`: text of the changed file on the line
    that is to be named, "" = where the change begins; `program`: below elfs/.
    """

    name: str
    pain: int
    program: str
    changes: tuple[tuple[str, str, str], ...]
    core: str
    line: str = ""
    points: int = 2

    @property
    def file(self) -> str:
        """The file that is wrong."""
        return self.changes[0][0]


def bugs() -> list[Bug]:
    """Those of planted.toml."""
    text = (Path(__file__).parent / "planted.toml").read_text(encoding="utf-8")
    return [
        Bug(
            **{k: v for k, v in one.items() if k != "change"},
            changes=tuple((file, old, new) for file, old, new in one["change"]),
        )
        for one in tomllib.loads(text)["bug"]
    ]


@dataclass(frozen=True)
class Made:
    """A bug's program in its folder, and the place that is to be named."""

    folder: Path
    core: str
    file: str
    lines: tuple[int, ...]


def _line_of(bug: Bug, before: str, after: str) -> tuple[int, ...]:
    if bug.line:
        at = after.index(bug.line)
    else:
        pairs = zip(before, after, strict=False)
        at = next((n for n, (a, b) in enumerate(pairs) if a != b), len(before) - 1)
    return (after.count("\n", 0, at) + 1,)


def make(bug: Bug, out: Path, build: ModuleType) -> Made:
    """Write a bug's program to `out`; `build`: firmware/build.py over a copy of the sources."""
    shutil.copytree(ROOT / "elfs" / bug.program, out)
    sources = build.ROOT
    originals: dict[Path, str] = {}
    lines: tuple[int, ...] = ()
    for file, text, instead in bug.changes:
        path = out / TOML if file == TOML else sources / "firmware" / file
        before = path.read_text()
        assert text in before, (bug.name, text)
        if file != TOML:
            originals.setdefault(path, before)
        after = before.replace(text, instead, 1)
        lines = lines or _line_of(bug, before, after)
        path.write_text(after)
    try:
        if originals:
            for each in build.PROGRAMS:
                if each.elf.startswith(f"elfs/{bug.program}/") and _uses(build, each, originals):
                    build.build(each, out / Path(each.elf).name, sources / "firmware")
    finally:
        for path, before in originals.items():
            path.write_text(before)
    return Made(out, bug.core, Path(bug.file).name, lines)


def _uses(build: ModuleType, each: Any, changed: dict[Path, str]) -> bool:
    """Whether a program of the build includes one of the changed files."""
    todo = [build.ROOT / source for source in each.sources]
    seen: set[Path] = set()
    while todo:
        path = todo.pop()
        if path in seen or not path.exists():
            continue
        seen.add(path)
        for name in re.findall(r'#include "([^"]+)"', path.read_text()):
            todo.append(build.ROOT / "firmware" / name)
    return bool(seen & set(changed))


def why(path: Path) -> list[dict[str, Any]]:
    """The findings of `bhemu why`."""
    done = CliRunner().invoke(main, ["why", "-q", "--json", str(path)])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.output
    found: list[dict[str, Any]] = json.loads(done.output)["findings"]
    assert done.exit_code == int(bool(found))
    return found


def hit(made: Made, finding: dict[str, Any]) -> bool:
    """Whether the culprit of a finding is the bug."""
    culprit = finding["culprit"]
    if culprit.get("core", "") != made.core:
        return False
    places = [culprit, *culprit.get("inlined", ())]
    return any(
        place.get("file", "").rpartition("/")[2] == made.file
        and any(abs(place.get("line", -99) - line) <= NEAR for line in made.lines)
        for place in places
    )


def rank(made: Made, findings: Sequence[dict[str, Any]]) -> int:
    """The place of the first finding that names the bug, from 1; 0 where none does."""
    return next((n for n, one in enumerate(findings, 1) if hit(made, one)), 0)
