"""Compile every entry for all processors, into files that a wheel carries.  make wheel"""

import argparse
import functools
from pathlib import Path
from typing import Any

from bhemu.jit.host import CARRIED


def _entries() -> list[Any]:
    from bhemu.machine.precompile import every_entry
    from bhemu.why.order.observe import ENTRIES

    return [*every_entry(), *ENTRIES]


def compiled(levels: list[str], number: int) -> tuple[str, dict[str, bytes]]:
    """Label of one entry, and its packed image for each level.

    What this machine runs is kept in its cache too, so that a checkout need not compile it again.
    """
    from bhemu.jit import build, emit, host

    entry = _entries()[number]
    if levels == [host.level()]:
        return entry.path, {levels[0]: build.image(entry)}
    source = emit.front_end(entry.signature, entry.resolved())
    images = {name: emit.lowered(source, emit.target(name)).packed() for name in levels}
    return entry.path, images


def make(folder: Path, levels: list[str]) -> None:
    """Write the files of these levels."""
    from bhemu.jit import host
    from bhemu.sweeps.engine import Lost, calls

    count = len(_entries())
    images: dict[str, dict[str, bytes]] = {name: {} for name in levels}
    for number, found in calls(functools.partial(compiled, levels), range(count)):
        if isinstance(found, Lost):
            raise RuntimeError(f"entry {number}: {found}") from found.problem
        label, made = found
        for name, image in made.items():
            images[name][label] = image
    for name in levels:
        path = folder / f"{name}.code"
        path.write_bytes(content := host.pack(images[name]))
        print(f"{path}: {count} entries, {len(content) / 1e6:.1f} MB", flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", type=Path, help="where the files go")
    options.add_argument("--level", choices=CARRIED, action="append", help="only this one")
    chosen = options.parse_args()
    make(chosen.folder, chosen.level or list(CARRIED))


if __name__ == "__main__":
    main()
