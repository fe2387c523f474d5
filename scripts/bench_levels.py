"""Write docs/benchmarks.md: every benchmark with the code of each level of x86-64.  make bench

Each row is measured by `bhemu bench` in a process of its own, one level after the other, so that
levels and ttsim share the state of the machine.
"""

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile

from bhemu import __version__
from bhemu.bench import benchmarks
from bhemu.cli.bench import processor
from bhemu.jit import host
from bhemu.program.schema import ENGINES

_HEAD = ("benchmark", "unit", "ttsim", "level", *ENGINES, *(f"ratio {name}" for name in ENGINES))


def _rows(name: str, level: str, ttsim: str | None) -> list[dict[str, Any]]:
    """The rows of a benchmark, one per engine, with code of a level ("": of this processor)."""
    command = [sys.executable, "-m", "bhemu", "bench", name, "--engine", "both", "--json"]
    environment = {**os.environ, **({"BHEMU_LEVEL": level} if level else {})}
    command += ["--ttsim", ttsim] if ttsim else []
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stdout.decode()}")
    rows: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
    return rows


def _line(level: str, rows: list[dict[str, Any]]) -> str:
    ratios = [f"{row['ratio']:.1f}x" if row["ratio"] else "" for row in rows]
    golden = f"{rows[0]['ttsim']:.1f}" if rows[0]["ttsim"] else ""
    rates = [f"{row['bhemu']:.1f}" for row in rows]
    cells = (rows[0]["name"], rows[0]["unit"], golden, level.rpartition("-")[2], *rates, *ratios)
    return f"| {' | '.join(cells)} |"


def _built(ttsim: str, flags: str) -> str:
    """How the golden model was compiled: its compiler says so in the file, its flags the caller."""
    with Path(ttsim).open("rb") as opened:
        section = ELFFile(opened).get_section_by_name(".comment")
        by = section.data().strip(b"\0").decode() if section else "an unknown compiler"
    return f"ttsim was compiled by {by}, {flags or 'flags not stated'}."


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--ttsim", help="libttsim.so to run the same images on, in turns")
    options.add_argument("--flags", default="", help="the flags that it was compiled with")
    options.add_argument("--output", type=Path, default=Path("docs/benchmarks.md"))
    chosen = options.parse_args()
    levels = [level for level in host.executed() if level in host.CARRIED] or [""]
    load, known = os.getloadavg()[0], benchmarks(Path("elfs"))
    lines = []
    for benchmark in known:
        for level in levels:
            line = _line(level, _rows(benchmark.name, level, chosen.ttsim))
            print(line, flush=True)
            lines.append(line)
    tools = ", ".join(f"{name} {metadata.version(name)}" for name in ("numba", "numpy", "unicorn"))
    absent = [level for level in host.LEVELS if level not in host.executed()]
    text = [
        "<!-- Written by `make bench`; do not edit. -->",
        "# Benchmarks",
        "",
        f"{datetime.date.today().isoformat()}; {processor()}; bhemu {__version__}, CPython"
        f" {platform.python_version()}, {tools}.",
        *([_built(chosen.ttsim, chosen.flags)] if chosen.ttsim else []),
        "",
        "Medians of samples of at least 0.3 s after one warm-up run; every run starts with cold"
        " translations. Where ttsim has a figure, it ran the same L1 images in turns with bhemu,"
        " and every byte of L1 was equal. `level` is the level of x86-64 that bhemu's code was"
        " compiled for (`BHEMU_LEVEL`), measured on this processor: not what a processor of that"
        " level does. Absolute rates move with the machine and its load (load average when it"
        f" began: {load:.1f}, at the end: {os.getloadavg()[0]:.1f}).",
        *(["", f"This processor does not execute {', '.join(absent)}."] if absent else []),
        "",
        f"| {' | '.join(_HEAD)} |",
        f"|{'---|' * len(_HEAD)}",
        *lines,
        "",
        "| benchmark | what runs |",
        "|---|---|",
        *(f"| {benchmark.name} | {benchmark.what} |" for benchmark in known),
        "",
    ]
    chosen.output.write_text("\n".join(text), encoding="utf-8")


if __name__ == "__main__":
    main()
