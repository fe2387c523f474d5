"""docs/adding-an-instruction.md, done as it is written, in a copy of the project."""

import ast
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SYNC = "bhemu/tensix/units/sync.py"
GOLDEN = """
import golden_case
case = golden_case.load("sem_ring")
tile = golden_case.start(case)
assert tile.run(golden_case.DONE, timeout_s=60).reason == "until"
assert case.differences(tile.l1) == []
"""


def blocks() -> tuple[str, str]:
    """The class and the test of the page."""
    text = (ROOT / "docs" / "adding-an-instruction.md").read_text()
    found = [textwrap.dedent(block) for block in re.findall(r" *```python\n(.*?) *```", text, re.S)]
    assert len(found) == 2
    return found[0], found[1]


def split(source: str, name: str) -> tuple[str, str]:
    """A module without one of its classes, and that class."""
    (node,) = (n for n in ast.parse(source).body if isinstance(n, ast.ClassDef) and n.name == name)
    lines = source.splitlines(keepends=True)
    assert node.end_lineno is not None
    first, end = node.lineno - 1, node.end_lineno
    return "".join(lines[:first] + lines[end:]), "".join(lines[first:end])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for folder in ("bhemu", "tests"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    path = tmp_path / SYNC
    path.write_text(split(path.read_text(), "SEMPOST")[0])
    return tmp_path


def run(project: Path, *command: str) -> subprocess.CompletedProcess[str]:
    folders = os.pathsep.join((str(project), str(project / "tests")))
    environment = {**os.environ, "PYTHONPATH": folders}
    return subprocess.run(
        [sys.executable, *command],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_page_shows_the_class_as_it_is() -> None:
    assert split((ROOT / SYNC).read_text(), "SEMPOST")[1] == blocks()[0]


def test_the_page_adds_an_instruction(project: Path) -> None:
    meaning, test = blocks()
    (project / "tests" / "tensix" / "test_page.py").write_text(test)
    pytest_page = ("-m", "pytest", "-p", "no:cacheprovider", "tests/tensix/test_page.py")
    before = run(project, *pytest_page)
    assert before.returncode != 0
    assert "no Tensix instruction is called SEMPOST" in before.stdout, before.stdout

    with (project / SYNC).open("a") as file:
        file.write("\n\n" + meaning)
    shown = run(project, "-m", "bhemu", "isa", "SEMPOST")
    assert "up to 15 (SEMPOST, Blackhole ISA)" in shown.stdout, shown.stderr
    after = run(project, *pytest_page)
    assert "2 passed" in after.stdout, after.stdout
    golden = run(project, "-c", GOLDEN)
    assert golden.returncode == 0, golden.stderr
