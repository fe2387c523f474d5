"""Runs the code for AArch64 in an emulated AArch64 process: golden programs, byte for byte.

    python scripts/test_aarch64.py [CASE...]

What is needed (Debian's qemu-user-static and Python for arm64, wheels for aarch64) is kept in .arm,
or in the folder that BHEMU_ARM names. A machine without Debian's tools is named and left out; a
case that differs, or code that is missing, is exit code 1.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from bhemu.jit import host

ROOT = Path(__file__).resolve().parents[1]
FOLDER = Path(os.environ.get("BHEMU_ARM", ROOT / ".arm")).resolve()
PYTHON = "3.11"  # of Debian 12
TOOLS = ("apt-get", "dpkg-deb")
PACKAGES = ("unicorn==2.1.4", "numpy>=2.0", "click>=8.1", "pyelftools>=0.31", "rich>=13.7")
PLATFORMS = ("manylinux2014_aarch64", "manylinux_2_27_aarch64", "manylinux_2_28_aarch64")
CASES = """
import importlib.util, platform, sys
from bhemu.jit import host
from bhemu.jit.subset import JIT
import golden_case
assert platform.machine() == host.level() == "aarch64", host.level()
assert JIT and importlib.util.find_spec("numba") is None, "nothing carried counts"
for name in sys.argv[1:]:
    for engine in ("unicorn", "compiled"):
        case = golden_case.load(name)
        tile = golden_case.start(case, engine=engine)
        assert tile.run(golden_case.DONE, timeout_s=600).reason == "until"
        print(name, engine, "differs" if case.differences(tile.l1) else "equal", flush=True)
"""


def output(*command: str | Path) -> str:
    """What a command prints; its errors go to the terminal."""
    done = subprocess.run(command, cwd=FOLDER, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def debian(folder: Path, packages: Sequence[str], *settings: str) -> None:
    """Unpack packages with what they need into a folder; nothing is installed."""
    names = output("apt-get", *settings, "install", "--print-uris", "-qq", "-y", *packages)
    wanted = [line.split()[1].partition("_")[0] for line in names.splitlines() if line[:1] == "'"]
    store = folder.with_suffix(".debs")
    store.mkdir(exist_ok=True)
    subprocess.run(["apt-get", *settings, "-q", "download", *wanted], cwd=store, check=True)
    for package in store.glob("*.deb"):
        output("dpkg-deb", "-x", package, folder)
    shutil.rmtree(store)


def foreign() -> Iterator[str]:
    """Settings of apt-get for arm64, with a state of its own: this system stays as it is."""
    state = FOLDER / "apt"
    for name in ("lists/partial", "archives/partial"):
        (state / name).mkdir(parents=True, exist_ok=True)
    (state / "status").touch()
    for key, value in (
        ("APT::Architecture", "arm64"),
        ("APT::Architectures", "arm64"),
        ("APT::Install-Recommends", "false"),
        ("Dir::State", state),
        ("Dir::State::status", state / "status"),
        ("Dir::Cache", state),
    ):
        yield from ("-o", f"{key}={value}")


def environment() -> list[str | Path]:
    """The command of an AArch64 Python with what bhemu needs, numba apart."""
    root, site = FOLDER / "root", FOLDER / "site"
    if not site.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        settings = [*foreign()]
        output("apt-get", *settings, "-q", "update")
        debian(root, ["python3", "libstdc++6"], *settings)
        debian(FOLDER / "qemu", ["qemu-user-static"])
        wheels = FOLDER / "wheels"
        pip = [sys.executable, "-m", "pip", "download", "-q", "--only-binary=:all:"]
        chosen = [part for name in PLATFORMS for part in ("--platform", name)]
        output(*pip, *chosen, "--python-version", PYTHON, "-d", wheels, *PACKAGES)
        for wheel in wheels.glob("*.whl"):
            shutil.unpack_archive(wheel, FOLDER / "unpacked", "zip")
        (FOLDER / "unpacked").rename(site)
    qemu = FOLDER / "qemu" / "usr" / "bin" / "qemu-aarch64-static"
    return [qemu, "-L", root, root / "usr" / "bin" / f"python{PYTHON}"]


def main(names: Sequence[str]) -> int:
    """Every case, or those that are named."""
    if missing := [tool for tool in TOOLS if shutil.which(tool) is None]:
        print(f"aarch64: left out: there is no {missing[0]}")
        return 0
    python = environment()
    copy = FOLDER / "checkout"
    shutil.rmtree(copy, ignore_errors=True)
    for part in ("bhemu", "tests"):
        ignored = shutil.ignore_patterns("__pycache__", "*.code")
        shutil.copytree(ROOT / part, copy / part, ignore=ignored)
    carried = host.FOLDER / f"{host.ARM}.code"
    if carried.exists():
        shutil.copy(carried, copy / "bhemu" / "data")
    else:
        made = (ROOT / "scripts" / "make_objects.py", copy / "bhemu" / "data", "--level", host.ARM)
        subprocess.run([sys.executable, *made], cwd=ROOT, check=True)
    paths = os.pathsep.join(map(str, (copy, copy / "tests", FOLDER / "site")))
    variables = {**os.environ, "PYTHONPATH": paths, "BHEMU_CACHE_DIR": str(FOLDER / "cache")}
    cases = names or sorted(path.stem for path in (ROOT / "tests" / "golden").glob("*.npz"))
    ran = [*python, "-c", CASES, *cases]
    done = subprocess.run(ran, cwd=copy, env=variables, stdout=subprocess.PIPE, text=True)
    lines = done.stdout.splitlines()
    equal = sum(line.endswith(" equal") for line in lines)
    print("\n".join(line for line in lines if not line.endswith(" equal")))
    print(f"aarch64: {equal} of {2 * len(cases)} runs of golden programs equal")
    return int(equal != 2 * len(cases) or done.returncode != 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
