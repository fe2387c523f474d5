"""The generators of random programs: found beside the package, and missed from a wheel."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import bhemu
from bhemu.oracle.libttsim import ENVIRONMENT

PACKAGE = Path(bhemu.__file__).parent
COMMANDS = [("diff", "--random", "matrix"), ("bench", "--formats", "--elfs", ".")]


def python(folder: Path, bhemu_in: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """An interpreter in `folder` that finds bhemu in `bhemu_in`, and nothing of tests/."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(bhemu_in)},
        capture_output=True,
        text=True,
    )


def test_a_checkout_has_them_beside_the_package(tmp_path: Path) -> None:
    code = (
        "from importlib.util import find_spec; from bhemu.oracle import programs;"
        "plan = programs.load('units').generate('sync', 3, 0);"
        "print(plan.name, programs.load('units').generate is not None, find_spec('golden_case'))"
    )
    done = python(tmp_path, PACKAGE.parent, "-c", code)
    assert done.stdout == "sync --seed 3 index 0 True None\n", done.stderr


@pytest.mark.skipif(not os.environ.get(ENVIRONMENT), reason="the library is the user's own")
def test_diff_random_in_a_checkout(tmp_path: Path) -> None:
    command = ("-m", "bhemu", "diff", "--random", "sync", "--seed", "3", "--count", "1")
    done = python(tmp_path, PACKAGE.parent, *command)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("sync --seed 3: 1 programs")


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_an_installed_package_says_where_they_are(command: tuple[str, ...], tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "bhemu", ignore=shutil.ignore_patterns("__pycache__"))
    done = python(tmp_path, tmp_path, "-m", "bhemu", *command)
    assert done.returncode == 2, done.stderr
    error, hint = done.stderr.splitlines()
    assert "the generators of random programs belong to bhemu's source checkout" in error
    assert "clone" in hint
