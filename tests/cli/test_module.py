"""`python -m bhemu` is the command."""

import subprocess
import sys
from pathlib import Path

import pytest

import bhemu


@pytest.mark.parametrize("module", ["bhemu", "bhemu.cli"])
def test_the_package_runs_as_the_command(module: str) -> None:
    root = Path(bhemu.__file__).parents[1]
    command = [sys.executable, "-m", module]
    done = subprocess.run([*command, "--version"], cwd=root, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"bhemu, version {bhemu.__version__}\n")
    done = subprocess.run([*command, "nonsense"], cwd=root, capture_output=True, text=True)
    assert done.returncode == 2
    assert "no command 'nonsense'" in done.stderr
