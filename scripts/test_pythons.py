"""Installs bhemu for several Pythons, each into a new environment, and runs the main job there.

    python scripts/test_pythons.py [PYTHON...]

Default: python3.11 python3.12 python3.13, those at hand. A Python that is named and missing, or in
which anything fails, is exit code 1.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SUPPORTED = ("python3.11", "python3.12", "python3.13")
TESTS = ("tests/program", "tests/test_errors.py", "tests/test_limits.py", "tests/e2e/test_add1.py")
VERSION = "import platform; print(platform.python_version())"


def output(*command: str | Path, cwd: Path | None = None) -> str:
    """What a command prints; RuntimeError with the end of it when it fails."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=cwd, env=clean, capture_output=True, text=True, check=False)
    if done.returncode:
        tail = (done.stdout + done.stderr).strip()[-2000:]
        raise RuntimeError(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{tail}")
    return done.stdout.strip()


def version(name: str) -> str | None:
    """The version of a Python, None where there is none: a name may stand for one not installed."""
    path = shutil.which(name)
    try:
        return None if path is None else output(path, "-c", VERSION)
    except RuntimeError:
        return None


def main_job(name: str, folder: Path) -> str:
    """Install into a new environment, run add1 away from the checkout, run TESTS; the summary."""
    output(name, "-m", "venv", folder / "env")
    binaries = folder / "env" / "bin"
    pip = (binaries / "pip", "install", "-q", "--disable-pip-version-check")
    output(*pip, f"{ROOT}[test]")
    shutil.copytree(ROOT / "elfs" / "add1", folder / "add1")
    ran = output(binaries / "bhemu", "run", "add1", cwd=folder)
    if "equal (1024 of 1024)" not in ran:
        raise RuntimeError(f"add1 did not say that its output is equal:\n{ran}")
    tests = [ROOT / test for test in TESTS]
    shown = output(
        binaries / "pytest", "-p", "no:cacheprovider", "-rN", "--color=no", *tests, cwd=folder
    )
    return f"add1 equal, tests: {shown.splitlines()[-1].strip('= ')}"


def main(names: Sequence[str]) -> int:
    """Every Python in turn."""
    shutil.rmtree(ROOT / "build", ignore_errors=True)  # what was there would be installed
    at_hand = {name: version(name) for name in names or SUPPORTED}
    code = 0
    for name, number in at_hand.items():
        if number is None:
            print(f"{name}: not at hand", flush=True)
            code = 1 if names else code
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                print(f"{name} ({number}): {main_job(name, Path(folder))}", flush=True)
            except RuntimeError as problem:
                print(f"{name} ({number}): FAILED\n{problem}", flush=True)
                code = 1
    return code if any(at_hand.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
