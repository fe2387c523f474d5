"""Writes docs/options.md: every option of a run, from the table in bhemu/program/options.py."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bhemu.program.options import OPTIONS, ChipOptions, Option, TileOptions, flag_of  # noqa: E402

TARGET = ROOT / "docs" / "options.md"
HEAD = """<!-- Written by scripts/make_options.py; do not edit. -->
# Options of a run

An option has the same values in Python, in PROGRAM.toml and on the command line. A keyword argument
of `launch()` overrides the command line, the command line overrides `[run]`, and `[run]` overrides
`[chip]`. The flags of `bhemu run` are those of every command that runs a program; their names are
also parameters of a [sweep](sweep.md).

| option | values | what it does | default in Python | Python | PROGRAM.toml | command line |
|---|---|---|---|---|---|---|
"""


def row(name: str, option: Option) -> str:
    """The row of an option."""
    tile, chip = (name in table.__annotations__ for table in (TileOptions, ChipOptions))
    python = [kind for kind, takes in (("Tile", tile), ("Chip", chip)) if takes] or ["run()"]
    default = "" if option.default is None or callable(option.default) else repr(option.default)
    tables = [f"`[{where}]`" for where in ("run", "chip") if where in option.where]
    tables = ["`[chip]`"] if name == "harvest" else tables
    takes = (("run", "flag"), ("serve", "serve"), ("diff", "diff"))
    commands = [c for c, where in takes if where in option.where]
    flag = f"`--{flag_of(name, option)}`: {', '.join(commands)}" if commands else ""
    about = re.sub(r" \(default: (off|\d+)\)", "", option.help)
    cells = f"`{name}`", option.kind.values, about, default, ", ".join(python), " ".join(tables)
    return "| " + " | ".join((*cells, flag)) + " |\n"


def page() -> str:
    """The text of docs/options.md."""
    return HEAD + "".join(row(name, option) for name, option in OPTIONS.items())


def main() -> int:
    """Write the page, or with --check compare it."""
    if "--check" in sys.argv:
        return int(TARGET.read_text(encoding="utf-8") != page())
    TARGET.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
