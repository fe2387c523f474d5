"""Compile every entry for levels of x86-64, into files that a wheel carries.  make wheel"""

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from bhemu.jit.host import CARRIED


def _entries() -> list[Any]:
    from bhemu.machine.precompile import every_entry
    from bhemu.why.order.observe import ENTRIES

    return [*every_entry(), *ENTRIES]


def compiled(number: int) -> tuple[str, bytes]:
    """Label and packed image of one entry."""
    from bhemu.jit import build

    entry = _entries()[number]
    return entry.label(), build.image(entry)


def make(path: Path) -> None:
    """Write the file of the level that the environment names."""
    from bhemu.jit import host
    from bhemu.sweeps.engine import Lost, calls

    count = len(_entries())
    images = {}
    for number, found in calls(compiled, range(count)):
        if isinstance(found, Lost):
            raise RuntimeError(f"entry {number}: {found}") from found.problem
        label, image = found
        images[label] = image
    path.write_bytes(content := host.pack(images))
    print(f"{path}: {count} entries, {len(content) / 1e6:.1f} MB", flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", type=Path, help="where the files go")
    options.add_argument("--level", choices=CARRIED, help="only this one")
    chosen = options.parse_args()
    for level in [chosen.level] if chosen.level else CARRIED:
        if os.environ.get("NUMBA_CPU_NAME") == level:
            make(chosen.folder / f"{level}.code")
            continue
        # numba reads the processor's name when it is loaded
        target = {"NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": ""}
        command = [sys.executable, *sys.argv[:1], str(chosen.folder), "--level", level]
        subprocess.run(command, env={**os.environ, **target}, check=True)


if __name__ == "__main__":
    main()
