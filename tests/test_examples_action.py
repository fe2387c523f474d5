"""The workflow of GitHub in examples/: it is read, and what its steps run is run here."""

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
WORKFLOW = yaml.safe_load((ROOT / "examples" / "github-action" / "kernel-test.yml").read_text())
STEPS: list[dict[str, Any]] = WORKFLOW["jobs"]["relu"]["steps"]


def run(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    """A command of a step, by the bhemu and pytest of this environment."""
    name, *more = shlex.split(line)
    plain = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
    command = [sys.executable, "-m", name, *more]
    return subprocess.run(command, cwd=folder, env=plain, capture_output=True, text=True)


def test_every_step_runs_something_and_has_a_name() -> None:
    assert all("uses" in step or ("run" in step and "name" in step) for step in STEPS)
    assert WORKFLOW[True] == ["push", "pull_request"]  # YAML reads on as a boolean


def test_the_steps_pass_on_a_new_kernel_and_what_is_kept_is_there(tmp_path: Path) -> None:
    assert run(tmp_path, "bhemu new relu --kernel").returncode == 0
    for line in (step["run"] for step in STEPS if "run" in step and "pip" not in step["run"]):
        done = run(tmp_path, line)
        assert done.returncode == 0, (line, done.stdout, done.stderr)
    kept = STEPS[-1]["with"]["path"].split()
    assert [name for name in kept if not (tmp_path / name).is_file()] == []
