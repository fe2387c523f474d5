"""Drives the emulator with stock packages, each in an environment of its own.

    python scripts/test_hosts.py [PART...]

Parts: ttnn, exalens (default: all). What is installed is kept in .hosts, or in the folder that
BHEMU_HOSTS names. A part that cannot be had on this machine is named and left out; one that fails
is exit code 1.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TTNN = ROOT / "scripts" / "stock_ttnn"
EXALENS = ROOT / "scripts" / "stock_exalens"
SECONDS = 900  # for all operations, their kernels' compilation and ours included
TWO = "two chips"
WAYS = {
    "library, fast": "libbhemu.so",
    "library, slow": "libbhemu.so",
    "folder, slow": "",
    f"{TWO}, fast": "libbhemu.so",
    f"{TWO}, slow": "libbhemu.so",
    f"{TWO}, FABRIC_2D, fast": "libbhemu.so",
}
TEST_SECONDS = 6  # in which a simulator whose host has ended must end

sys.path[:0] = [str(TTNN), str(EXALENS)]

import install  # noqa: E402 - from the folders above
import session  # noqa: E402


def simulator(folder: Path, chips: int = 1) -> Path:
    """A simulator folder of this checkout."""
    made = folder / ("simulator" if chips == 1 else f"simulator{chips}")
    line = [sys.executable, "-m", "bhemu", "simulator", made, "-v", "--chips", str(chips)]
    subprocess.run(line, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return made


def environment(folder: Path, way: str) -> dict[str, str]:
    """What ttnn needs beside the simulator; its caches stay in the folder."""
    there = {name: value for name, value in os.environ.items() if name[:3] != "TT_"}
    for name in ("home", "cache"):
        (folder / name).mkdir(exist_ok=True)
    place = simulator(folder, 2 if TWO in way else 1) / WAYS[way]
    chosen = {"TT_METAL_SIMULATOR": place, "TT_METAL_CACHE": folder / "cache"}
    settings = {"TT_SIMULATOR_LOCALHOST": "1", "HOME": f"{folder}/home"}
    if "fast" not in way:
        settings["TT_METAL_SLOW_DISPATCH_MODE"] = "1"
    return {**there, **{k: str(v) for k, v in chosen.items()}, **settings}


def servers(place: str) -> set[str]:
    """The processes that serve a chip to a host whose simulator is `place`."""
    found, named = set(), f"TT_METAL_SIMULATOR={place}".encode()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            settings = (process / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"serve" in words and b"bhemu" in words and named in settings:
            found.add(process.name)
    return found


def ttnn(folder: Path) -> str:
    """Stock ttnn: every operation equal, on a device opened and closed for each, in every way."""
    python = install.install(folder)
    return "; ".join(f"{way}: {operations(folder, python, way)}" for way in WAYS)


def operations(folder: Path, python: Path, way: str) -> str:
    """Every operation with the simulator loaded or started in one way."""
    settings, begin = environment(folder, way), time.monotonic()
    place = settings["TT_METAL_SIMULATOR"]
    log = folder / f"ttnn-{way.replace(', ', '-')}.log"
    program = [TTNN / "mesh.py", *(f for f in way.split(", ") if f.startswith("FABRIC"))]
    with log.open("w") as output:
        done = subprocess.run(
            [python, *(program if TWO in way else [TTNN / "operations.py"])],
            env=settings,
            cwd=folder,
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=SECONDS,
            check=False,
        )
    seconds = time.monotonic() - begin
    lines = log.read_text(errors="replace").splitlines()
    results = [line for line in lines if line.endswith((" equal", " differ"))]
    if done.returncode or not results:
        shown = [line for line in lines if " | info " not in line][-20:]
        raise RuntimeError("\n".join([f"exit code {done.returncode}", *shown, f"see {log}"]))
    end = time.monotonic() + TEST_SECONDS
    while servers(place):
        if time.monotonic() > end:
            raise RuntimeError("a simulator is left behind")
        time.sleep(0.1)
    return f"{', '.join(results)}, {seconds:.1f} s"


def exalens(folder: Path) -> str:
    """Stock tt-exalens, both ways: its commands say what they must, its gdb server serves gdb."""
    folder.mkdir(exist_ok=True)
    begin, place = time.monotonic(), simulator(folder)
    ways = {"folder": place, "library": place / "libbhemu.so"}
    done = "; ".join(f"{way}: {session.check(folder, at)}" for way, at in ways.items())
    return f"{done}; {time.monotonic() - begin:.1f} s"


PARTS: dict[str, Callable[[Path], str]] = {"ttnn": ttnn, "exalens": exalens}


def main(names: Sequence[str]) -> int:
    """Every part in turn."""
    folder = Path(os.environ.get("BHEMU_HOSTS", ROOT / ".hosts")).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    code = 0
    for name in names or PARTS:
        try:
            print(f"{name}: {PARTS[name](folder / name)}", flush=True)
        except (install.Missing, session.Missing) as what:
            print(f"{name}: left out: {what}", flush=True)
        except (RuntimeError, OSError, subprocess.SubprocessError) as problem:
            print(f"{name}: FAILED\n{problem}", flush=True)
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
