"""The pages do what they say: every command runs and prints what the page shows."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import tutorial

ROOT = Path(__file__).parents[1]
FOLDERS = ("docs", "examples", "firmware", "tests/golden", "tests/vectors")
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *(p for f in FOLDERS for p in sorted((ROOT / f).rglob("*.md"))),
]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A path on which `bhemu` and `python` are these, and nothing needs to be installed."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, arguments in (("bhemu", " -m bhemu"), ("python", "")):
        (folder / name).write_text(f'#!/bin/sh\nexec "{sys.executable}"{arguments} "$@"\n')
        (folder / name).chmod(0o755)
    (folder / "pip").symlink_to("/bin/true")
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}


def runs(page: Path) -> bool:
    """Whether a block of a page is run here."""
    return any(not b.not_run and b.language in tutorial.RUN for b in tutorial.blocks(page))


@pytest.mark.parametrize("page", [*filter(runs, PAGES)], ids=lambda page: page.stem)
def test_a_page_runs(page: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    text = page.read_text(encoding="utf-8")
    for name, why in (("elfs", "elfs/"), ("firmware", "elfs/"), ("examples", "examples/")):
        if why in text:
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("*-results"))
    assert tutorial.run(page, folder, environment) > 0


def test_what_a_page_does_not_run_says_why() -> None:
    """A command is in a block that is run, says why not, or names the test that runs it."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        found = list(tutorial.blocks(page))
        said = re.findall(r"^<!-- not run:", text, re.MULTILINE)
        assert len(said) == sum("not run:" in b.not_run for b in found), page
        for block in found:
            other = re.fullmatch(r"run by (tests/[\w/]+\.py)", block.not_run)
            if other is not None:
                assert page.name in (ROOT / other[1]).read_text(encoding="utf-8"), block
            elif not block.not_run and block.language not in tutorial.RUN:
                assert not re.search(r"^(\$ |bhemu \w+ )", block.text, re.MULTILINE), (page, block)


def test_a_line_that_is_not_printed_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```console\n$ echo one; echo two\nt\n```\n")
    assert tutorial.run(page, tmp_path, os.environ) == 1
    page.write_text("```console\n$ echo one; echo two\ntwo\none\n```\n")
    with pytest.raises(AssertionError, match="does not print\none"):
        tutorial.run(page, tmp_path, os.environ)
    page.write_text("```console { .exit-3 }\n$ true\n```\n")
    with pytest.raises(AssertionError, match="exit 0"):
        tutorial.run(page, tmp_path, os.environ)


def test_the_notebooks_run() -> None:
    pytest.importorskip("nbclient", reason="the extra docs is not installed")
    command = [sys.executable, str(ROOT / "scripts/run_notebooks.py"), "--check"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
