"""Writes the tables of docs/why.md: the checks from their declarations, the planted bugs."""

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bhemu.why.checks import every  # noqa: E402

TARGET = ROOT / "docs" / "why.md"
BEGIN, END = "<!-- checks: scripts/make_checks.py -->\n", "<!-- end of checks -->\n"

BUGS = ROOT / "tests" / "why" / "planted"
MUTANTS = ROOT / "tests" / "why" / "mutants" / "mutants.toml"
LEAST = 3  # bugs of each pain
PAINS = {
    1: "it hangs",
    2: "unpack, math and pack race",
    3: "banks and Dst halves handed over wrongly",
    4: "configuration overwritten",
    5: "state left for the next launch",
    6: "replay and MOP overwritten",
    7: "what nobody has written",
    8: "stale lines of a data cache",
    9: "cores that hardware cannot debug",
    10: "looking at it hides it",
    11: "circular buffers",
    12: "barriers and alignment of the NoC",
    13: "formats and shapes",
    14: "NaN and infinity",
    15: "precision",
    16: "the packer's configuration",
    17: "registers that cannot be seen",
    18: "stack, mailboxes and arguments overwritten",
    19: "lines of inlined code",
    20: "the simulator stops",
    21: "the packer's addresses and counters",
    22: "set-up of the program",
}
BUGS_BEGIN, BUGS_END = "<!-- bugs: scripts/make_checks.py -->\n", "<!-- end of bugs -->\n"


CHIPS = ROOT / "tests" / "why" / "planted_chips.toml"
CHIPS_BEGIN, CHIPS_END = "<!-- chips: scripts/make_checks.py -->\n", "<!-- end of chips -->\n"


def bugs() -> str:
    """The sum of each pain, and one row for each planted bug."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(BUGS.glob("*.toml"))]
    found = [one for text in texts for one in tomllib.loads(text)["bug"]]
    found += tomllib.loads(MUTANTS.read_text(encoding="utf-8"))["mutant"]
    found.sort(key=lambda one: one["pain"])
    sums = ["| pain | | bugs | points of |", "|---|---|---|---|"]
    rows = ["| pain | bug | program | in | points |", "|---|---|---|---|---|"]
    for pain, what in PAINS.items():
        points = [one.get("points", 2) for one in found if one["pain"] == pain]
        assert len(points) >= LEAST, what
        sums.append(f"| {pain} | {what} | {len(points)} | {sum(points)} of {2 * len(points)} |")
    total = sum(one.get("points", 2) for one in found)
    sums.append(f"| | all | {len(found)} | {total} of {2 * len(found)} |")
    for one in found:
        file = one["change"][0][0] if "change" in one else one["source"]
        name, points = one["name"].replace("_", " "), one.get("points", 2)
        rows.append(f"| {one['pain']} | {name} | {one['program']} | {file} | {points} |")
    return "\n".join([*sums, "", *rows]) + "\n"


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
