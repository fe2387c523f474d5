"""The tutorials do what they say: every command runs and prints what the page shows."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import tutorial

ROOT = Path(__file__).parents[1]
PAGES = [*sorted((ROOT / "docs/tutorials").glob("*.md")), ROOT / "docs/index.md"]


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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_runs(page: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    if "elfs/" in page.read_text(encoding="utf-8"):
        shutil.copytree(ROOT / "elfs", folder / "elfs")
    assert tutorial.run(page, folder, environment) > 0


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
