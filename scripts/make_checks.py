"""Writes the tables of docs/why.md: the checks from their declarations, the planted bugs."""

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bhemu.why.checks import every  # noqa: E402

TARGET = ROOT / "docs" / "why.md"
BEGIN, END = "<!-- checks: scripts/make_checks.py -->\n", "<!-- end of checks -->\n"

BUGS = ROOT / "tests" / "why" / "planted.toml"
BUGS_BEGIN, BUGS_END = "<!-- bugs: scripts/make_checks.py -->\n", "<!-- end of bugs -->\n"


CHIPS = ROOT / "tests" / "why" / "planted_chips.toml"
CHIPS_BEGIN, CHIPS_END = "<!-- chips: scripts/make_checks.py -->\n", "<!-- end of chips -->\n"


def bugs() -> str:
    """One row for each planted bug."""
    rows = ["| pain | bug | program | in | points |", "|---|---|---|---|---|"]
    for one in tomllib.loads(BUGS.read_text(encoding="utf-8"))["bug"]:
        file = one["change"][0][0]
        points = one.get("points", 2)
        rows.append(f"| {one['pain']} | {one['name']} | {one['program']} | {file} | {points} |")
    return "\n".join(rows) + "\n"


def chips() -> str:
    """One row for each planted bug of a program of several tiles."""
    rows = ["| check | bug | program | in | tile |", "|---|---|---|---|---|"]
    for one in tomllib.loads(CHIPS.read_text(encoding="utf-8"))["bug"]:
        tile = f"({one['tile']})" if "tile" in one else "all"
        file = one["change"][0][0]
        rows.append(f"| `{one['check']}` | {one['name']} | {one['program']} | {file} | {tile} |")
    return "\n".join(rows) + "\n"


def table() -> str:
    """One row for each check."""
    rows = ["| check | what a finding proves | what it cannot see | cost |", "|---|---|---|---|"]
    for check in every().values():
        rows.append(f"| `{check.name}` | {check.proves} | {check.misses} | {check.cost} |")
    return "\n".join(rows) + "\n"


def page() -> str:
    """The page with the table of now."""
    text = TARGET.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    text = before + BEGIN + table() + END + rest.partition(END)[2]
    before, _, rest = text.partition(BUGS_BEGIN)
    text = before + BUGS_BEGIN + bugs() + BUGS_END + rest.partition(BUGS_END)[2]
    before, _, rest = text.partition(CHIPS_BEGIN)
    return before + CHIPS_BEGIN + chips() + CHIPS_END + rest.partition(CHIPS_END)[2]


def main() -> int:
    """Write the page, or with --check compare it."""
    if "--check" in sys.argv:
        return int(TARGET.read_text(encoding="utf-8") != page())
    TARGET.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
