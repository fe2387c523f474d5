"""Writes tests/vectors/*.npz with a user's own libttsim.so, or checks that it gives the same."""

import argparse
import datetime
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from bhemu.errors import BhemuError  # noqa: E402
from bhemu.oracle.libttsim import Library, find  # noqa: E402
from random_programs import vectors  # noqa: E402

FOLDER = ROOT / "tests" / "vectors"


def write(library: Library, unit: str, folder: Path, provenance: dict[str, str]) -> Path:
    """One file; its path."""
    made, counts = vectors.make(library, unit)
    path = folder / f"{unit}.npz"
    vectors.save(path, unit, made, counts, provenance)
    size = path.stat().st_size // 1024
    print(f"{unit}: {len(made)} programs, {len(counts)} cells, {size} KiB", flush=True)
    return path


def check(library: Library, unit: str) -> bool:
    """Whether the library gives the committed vectors, byte for byte."""
    with tempfile.TemporaryDirectory() as folder:
        meta, new = vectors.load(write(library, unit, Path(folder), {}))
    old_meta, old = vectors.load(FOLDER / f"{unit}.npz")
    same = new == old and meta["coverage"] == old_meta["coverage"]
    if not same:
        print(f"{unit}: differs from tests/vectors/{unit}.npz")
    return same


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ttsim", help="libttsim.so, else $BHEMU_TTSIM")
    parser.add_argument("--version", default="1.10.0", help="of ttsim; the library does not say")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("units", nargs="*")
    given = parser.parse_args()
    try:
        library = find(given.ttsim)
    except BhemuError as problem:
        print(problem, file=sys.stderr)
        return problem.exit_code
    units = given.units or list(vectors.CHOICES)
    if given.check:
        wrong = [unit for unit in units if not check(library, unit)]
        return int(bool(wrong))
    FOLDER.mkdir(exist_ok=True)
    today = datetime.date.today().isoformat()
    provenance = {"model": f"ttsim v{given.version} (Blackhole)", "date": today}
    for unit in units:
        write(library, unit, FOLDER, provenance)
    return 0


if __name__ == "__main__":
    sys.exit(main())
