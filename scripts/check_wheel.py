"""Install the wheel into a fresh environment, away from the checkout, and run programs there.

An editable install hides what a wheel lacks: modules that something else happens to import, files
that are not packaged.  The wheel's machine code must do for every program of elfs/ and for tests of
tt-llk's kind on the stand-in for tt-exalens: numba is not installed there, and the cache stays
empty.  make wheel-check
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bhemu.jit import host
from bhemu.jit.cache import NOTES

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = sorted(path.parent.name for path in (ROOT / "elfs").glob("*/PROGRAM.toml"))
HANGS = 3  # exit code of `bhemu run` for a program that makes no progress
_TYPED = "import bhemu; open(bhemu.__path__[0] + '/py.typed').close()"  # type checkers look for it
_COMPILED = (
    "from importlib.util import find_spec; from bhemu.jit.subset import JIT;"
    " assert JIT and not find_spec('numba') and not find_spec('llvmlite')"
)


def run(*command: str | Path, folder: Path, code: int = 0, **variables: str) -> None:
    """Run a command in `folder`, without this checkout on the path; ends the script if it fails."""
    print("+", *command, flush=True)
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment = {k: v for k, v in environment.items() if not k.startswith(("NUMBA_", "BHEMU_"))}
    environment |= variables
    done = subprocess.run([str(part) for part in command], cwd=folder, env=environment)
    if done.returncode != code:
        sys.exit(f"{command[0]}: exit {done.returncode}, not {code}")


def check(python: str, wheel: Path, programs: list[str], folder: Path, carried: bool) -> None:
    """Install `wheel` below `folder` and run the programs there; with `carried`, without numba.

    Nothing is interpreted there, so that an entry whose code is not carried would be an error.
    """
    run(python, "-m", "venv", folder / "env", folder=folder)
    inside = folder / "env" / "bin" / "python"
    run(
        inside,
        "-m",
        "pip",
        "install",
        "-q",
        "--disable-pip-version-check",
        f"{wheel}[{'build' if carried else 'build,compile'}]",
        folder=folder,
    )
    bhemu = inside.with_name("bhemu")
    run(bhemu, "--version", folder=folder)
    run(inside, "-c", _TYPED, folder=folder)
    cache = folder / "cache"
    variables = {"BHEMU_CACHE_DIR": str(cache)}
    if carried:
        run(inside, "-c", _COMPILED, folder=folder, **variables)

    def program(name: str) -> None:
        shutil.copytree(ROOT / "elfs" / name, folder / name)
        run(bhemu, "check", name, folder=folder, **variables)
        code = HANGS if name.startswith("hang_") else 0
        run(bhemu, "run", name, folder=folder, code=code, **variables)

    with ThreadPoolExecutor(os.cpu_count()) as several:
        list(several.map(program, programs))
    for command in ("new relu --kernel", "build relu", "run --check all relu", "why relu"):
        run(bhemu, *command.split(), folder=folder, **variables)
    check_llk(inside, folder, variables)
    if carried and (
        kept := [path.name for path in cache.iterdir() if not path.name.startswith(NOTES)]
    ):
        sys.exit(f"compiled: {', '.join(sorted(kept))}")


def check_llk(inside: Path, folder: Path, variables: dict[str, str]) -> None:
    """Two tests of tt-llk's kind, with the folder on the path that `bhemu llk --path` prints."""
    (folder / "tests").mkdir()
    for name in ("llk_host.py", "llk_runner.py"):
        shutil.copy(ROOT / "tests" / name, folder / "tests" / name)
    shutil.copytree(ROOT / "elfs" / "llk_like", folder / "elfs" / "llk_like")
    ask = [inside.with_name("bhemu"), "llk", "--path"]
    path = subprocess.run(
        ask, cwd=folder, capture_output=True, text=True, check=True
    ).stdout.strip()
    paths = [path, *filter(None, [variables.get("PYTHONPATH")])]
    variables = variables | {"PYTHONPATH": os.pathsep.join(paths)}
    run(inside, folder / "tests" / "llk_host.py", folder=folder, **variables)


def main() -> None:
    """Build nothing: take the newest wheel of dist/."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--program", action="append", help="a folder of elfs/ (default: all)")
    options.add_argument("--python", action="append", help="of the environment (default: this)")
    chosen = options.parse_args()
    wheels = sorted((ROOT / "dist").glob("bhemu-*.whl"), key=lambda path: path.stat().st_mtime)
    if not wheels:
        sys.exit("dist/ holds no wheel: make wheel")
    carried = bool(host.level())
    if not carried:
        print("this processor does not execute the code that the wheel carries: compiling")
    for python in chosen.python or [sys.executable]:
        with tempfile.TemporaryDirectory(prefix="bhemu-wheel-") as folder:
            check(python, wheels[-1], chosen.program or PROGRAMS, Path(folder), carried)
    print(f"{wheels[-1].name}: installed and run away from the checkout")


if __name__ == "__main__":
    main()
