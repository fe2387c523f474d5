"""Bugs planted in copies of our kernels and of small programs of these tests (own_programs.py): one
change of a source or of PROGRAM.toml each.

The corrected twin of a bug is the program as it is shipped. `make` builds what a bug changes; `hit`
says whether a finding names it: its core, and its line within two.
"""

import json
import re
import shutil
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import foreign_programs
import numpy as np
import own_programs
from click.testing import CliRunner

import bhemu as package
from bhemu.cli import main
from bhemu.errors import EXIT_INPUT

ROOT = Path(package.__file__).parent.parent
NEAR = 2  # lines
TOML = "PROGRAM.toml"
PROGRAMS = Path(__file__).parent / "programs"  # of these tests alone: sources and PROGRAM.toml


Change = tuple[str, str, str]


@dataclass(frozen=True)
class Bug:
    """One planted bug.

    `changes`: (file below firmware/ or foreign/, or PROGRAM.toml, text, replacement); the first is
    the bug.
    `also`: changes of bug and corrected twin. `points`: 2 where the first finding is to name it, 1
    where another one does. `core`: whose code is wrong, "" for PROGRAM.toml; of a header that
    several use any of them, "brisc, ncrisc"; `line`: text of the
    changed file on the line that is to be named, "" = where the change begins; `accept`: of
    other lines that may be named as well, in this file or the program's; `program`: below elfs/, or
    one of programs/ or of foreign/.
    """

    name: str
    pain: int
    program: str
    changes: tuple[Change, ...]
    core: str
    line: str = ""
    points: int = 2
    also: tuple[Change, ...] = ()
    accept: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        """The file that is wrong."""
        return self.changes[0][0]


def bugs() -> list[Bug]:
    """Those of planted/*.toml."""
    return [
        Bug(
            **{k: v for k, v in one.items() if k not in ("change", "also", "accept")},
            changes=tuple((file, old, new) for file, old, new in one["change"]),
            also=tuple((file, old, new) for file, old, new in one.get("also", ())),
            accept=tuple(one.get("accept", ())),
        )
        for path in sorted((Path(__file__).parent / "planted").glob("*.toml"))
        for one in tomllib.loads(path.read_text(encoding="utf-8"))["bug"]
    ]


Line = tuple[str, int]  # name of the file, number


@dataclass(frozen=True)
class Made:
    """A bug's program in its folder, and the places of which one is to be named."""

    folder: Path
    core: str
    lines: frozenset[Line]


def _first_line(before: str, after: str) -> int:
    """The first line that is another one."""
    pairs = zip(before, after, strict=False)
    at = next((n for n, (a, b) in enumerate(pairs) if a != b), len(before) - 1)
    return after.count("\n", 0, at) + 1


def _accepted(bug: Bug, files: Sequence[Path]) -> Iterator[Line]:
    for text in bug.accept:
        found = next(path for path in files if text in path.read_text())
        content = found.read_text()
        yield found.name, content.count("\n", 0, content.index(text)) + 1


def make(bug: Bug, out: Path, build: ModuleType, *, twin: bool = False) -> Made:
    """Write a bug's program to `out`; `build`: firmware/build.py over a copy of the sources.

    twin: the corrected one instead.
    """
    if foreign_programs.is_foreign(bug.program):
        return _make_foreign(bug, out, twin=twin)
    programs = build.PROGRAMS
    if (PROGRAMS / bug.program).is_dir():
        programs = own(bug.program, out, build)
    else:
        shutil.copytree(ROOT / "elfs" / bug.program, out)
    originals: dict[Path, str] = {}
    culprit, line = out, 0
    lines: set[Line] = set()
    try:
        for number, change in enumerate((*bug.also, *(() if twin else bug.changes))):
            path, before, after = _changed(bug, change, out, build.ROOT)
            if change[0] != TOML:
                originals.setdefault(path, before)
            if number == len(bug.also):
                culprit, line = path, _first_line(before, after)
            path.write_text(after)
        folder = build.ROOT / "firmware"
        if not twin:
            text = culprit.read_text()
            at = text.count("\n", 0, text.index(bug.line)) + 1 if bug.line else line
            lines.add((culprit.name, at))
            near = sorted((folder / bug.program).glob("*.[ch]"))
            lines |= set(_accepted(bug, [*originals, out / TOML, *near]))
        for each in programs if originals else ():
            if each.elf.startswith(f"elfs/{bug.program}/") and _uses(build, each, originals):
                build.build(each, out / Path(each.elf).relative_to(f"elfs/{bug.program}"), folder)
        if any(path.is_relative_to(folder) for path in originals):
            _keep_sources(bug.program, folder, out / "src")
    finally:
        for path, before in originals.items():
            path.write_text(before)
    return Made(out, bug.core, frozenset(lines))


def _keep_sources(program: str, folder: Path, out: Path) -> None:
    """What the ELFs are built from, beside them, as a user has it."""
    for name in (program, "lib", "dataflow"):
        if (folder / name).is_dir():
            shutil.copytree(folder / name, out / name, dirs_exist_ok=True)


def _make_foreign(bug: Bug, out: Path, *, twin: bool) -> Made:
    """The same for a program of foreign/, whose sources stay beside its ELFs."""
    foreign_programs.sources(bug.program, out)
    lines: set[Line] = set()
    for number, (file, text, instead) in enumerate((*bug.also, *(() if twin else bug.changes))):
        path = out / Path(file).name
        before = path.read_text()
        assert text in before, (bug.name, text)
        after = before.replace(text, instead, 1)
        path.write_text(after)
        if number == len(bug.also):
            at = after.count("\n", 0, after.index(bug.line)) + 1 if bug.line else 0
            lines.add((path.name, at or _first_line(before, after)))
    if not twin:
        lines |= set(_accepted(bug, [out / Path(bug.file).name]))
    return Made(foreign_programs.built(bug.program, out), bug.core, frozenset(lines))


def own(program: str, out: Path, build: ModuleType) -> list[Any]:
    """A program of these tests alone, in its folder and built; its kernels."""
    if foreign_programs.is_foreign(program):
        foreign_programs.folder(program, out)
        return []
    if own_programs.is_own(program):
        own_programs.built(program, out, build)
        return own_programs.elfs(program, build)
    own, sources = PROGRAMS / program, build.ROOT / "firmware" / program
    shutil.copytree(own, sources, dirs_exist_ok=True)
    shutil.copytree(ROOT / "elfs" / "copy_dram" / "firmware", out / "firmware")
    shutil.copy(own / TOML, out)
    if program in own_programs.KERNEL_DATA:
        for name, values in own_programs.KERNEL_DATA[program]().items():
            np.save(out / f"{name}.npy", values)
    else:
        (spec,) = tomllib.loads((own / TOML).read_text())["input"]
        data = np.load(ROOT / "elfs" / "add1_chip" / "in.npy").reshape(-1)
        np.save(out / "in.npy", data[: np.prod(spec["shape"])].reshape(spec["shape"]))
    kernels = [
        build.Program(
            f"elfs/{program}/{path.stem}.elf", path.stem.rpartition("_")[2],
            ("firmware/kernel/crt0.S", f"firmware/{program}/{path.name}"), moves=True,
        )
        for path in sorted(own.glob("*_*.c"))
    ]  # fmt: skip
    for each in kernels:
        build.build(each, out / Path(each.elf).name, build.ROOT / "firmware")
    return kernels


def _changed(bug: Bug, change: Change, out: Path, root: Path) -> tuple[Path, str, str]:
    """The file that a change is of, its text before and after."""
    file, text, instead = change
    path = out / TOML if file == TOML else root / "firmware" / file
    before = path.read_text()
    assert text in before, (bug.name, text)
    return path, before, before.replace(text, instead, 1)


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
    found: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    assert done.exit_code in (int(bool(found)), EXIT_INPUT)
    return found


def hit(made: Made, finding: dict[str, Any]) -> bool:
    """Whether the culprit of a finding is the bug."""
    culprit = finding["culprit"]
    if culprit.get("core", "") not in made.core.split(", "):
        return False
    places = [culprit, *culprit.get("inlined", ())]
    return any(
        place.get("file", "").rpartition("/")[2] == file
        and abs(place.get("line", -99) - line) <= NEAR
        for place in places
        for file, line in made.lines
    )


def rank(made: Made, findings: Sequence[dict[str, Any]]) -> int:
    """The place of the first finding that names the bug, from 1; 0 where none does."""
    return next((n for n, one in enumerate(findings, 1) if hit(made, one)), 0)
