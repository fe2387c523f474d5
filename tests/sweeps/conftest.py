"""Sweeps over programs of elfs/, in a folder of their own."""

import os
import shutil
from pathlib import Path

import pytest

ELFS = Path(__file__).parents[2] / "elfs"
ADD1 = """sweep = 1
name = "scalars"
program = "add1"
set = ["runtime_args+4=f32:{scalar}"]
[parameters]
scalar = [0.5, 1.0, 2.0]
quantum = { first = 100, last = 1000, step = 300 }
engine = "compiled"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with add1 and hang_cycle in it."""
    for name in ("add1", "hang_cycle"):
        shutil.copytree(ELFS / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    root = str(Path(__file__).parents[2])  # workers import the same bhemu
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([root, os.environ.get("PYTHONPATH", "")]))
    return tmp_path


@pytest.fixture
def add1(folder: Path) -> Path:
    """SWEEP.toml with 12 runs of add1, of which 4 are ok and 8 differ."""
    path = folder / "SWEEP.toml"
    path.write_text(ADD1)
    return path
