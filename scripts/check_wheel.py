"""Install the wheel into a fresh environment, away from the checkout, and run programs there.

An editable install hides what a wheel lacks: modules that something else happens to import, files
that are not packaged.  make wheel-check
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ("add1",)


def run(*command: str | Path, folder: Path) -> None:
    """Run a command in `folder`, without this checkout on the path; ends the script if it fails."""
    print("+", *command, flush=True)
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run([str(part) for part in command], cwd=folder, env=environment)
    if done.returncode:
        sys.exit(f"{command[0]}: exit {done.returncode}")


def check(wheel: Path, programs: list[str], folder: Path) -> None:
    """Install `wheel` below `folder` and run the programs there."""
    run(sys.executable, "-m", "venv", folder / "env", folder=folder)
    python = folder / "env" / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", wheel, folder=folder)
    bhemu = python.with_name("bhemu")
    run(bhemu, "--version", folder=folder)
    for name in programs:
        shutil.copytree(ROOT / "elfs" / name, folder / name)
        run(bhemu, "check", name, folder=folder)
        run(bhemu, "run", name, folder=folder)


def main() -> None:
    """Build nothing: take the newest wheel of dist/."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--program", action="append", help="a folder of elfs/ (default: add1)")
    chosen = options.parse_args()
    wheels = sorted((ROOT / "dist").glob("bhemu-*.whl"), key=lambda path: path.stat().st_mtime)
    if not wheels:
        sys.exit("dist/ holds no wheel: make wheel")
    with tempfile.TemporaryDirectory(prefix="bhemu-wheel-") as folder:
        check(wheels[-1], chosen.program or list(PROGRAMS), Path(folder))
    print(f"{wheels[-1].name}: installed and run away from the checkout")


if __name__ == "__main__":
    main()
