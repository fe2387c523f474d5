"""Writes the tables of docs/why.md and docs/why-corpus.md: the checks, the planted bugs."""

import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bhemu.why.checks import every  # noqa: E402

GUIDE, CORPUS = ROOT / "docs" / "why.md", ROOT / "docs" / "why-corpus.md"

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
CHIPS = ROOT / "tests" / "why" / "planted_chips.toml"


Bug = dict[str, Any]


def planted() -> dict[str, list[Bug]]:
    """The bugs of each file."""
    files = sorted(BUGS.glob("*.toml"))
    return {path.name: tomllib.loads(path.read_text(encoding="utf-8"))["bug"] for path in files}


def by_pain() -> list[Bug]:
    """Those and the mutants, by pain."""
    found = [one for each in planted().values() for one in each]
    found += tomllib.loads(MUTANTS.read_text(encoding="utf-8"))["mutant"]
    return sorted(found, key=lambda one: one["pain"])


def points(bugs: list[Bug]) -> str:
    """What they score, of how many points."""
    return f"{sum(one.get('points', 2) for one in bugs)} of {2 * len(bugs)}"


def pains() -> str:
    """The sum of each pain."""
    found = by_pain()
    rows = ["| pain | | bugs | points of |", "|---|---|---|---|"]
    for pain, what in PAINS.items():
        here = [one for one in found if one["pain"] == pain]
        assert len(here) >= LEAST, what
        rows.append(f"| {pain} | {what} | {len(here)} | {points(here)} |")
    rows.append(f"| | all | {len(found)} | {points(found)} |")
    return "\n".join(rows) + "\n"


def sets() -> str:
    """What each file scores now."""
    rows = ["| `tests/why/planted` | bugs | now |", "|---|---:|---:|"]
    rows += [f"| `{name}` | {len(bugs)} | {points(bugs)} |" for name, bugs in planted().items()]
    return "\n".join(rows) + "\n"


def bugs() -> str:
    """One row for each planted bug."""
    rows = ["| pain | bug | program | in | points |", "|---|---|---|---|---|"]
    for one in by_pain():
        file = one["change"][0][0] if "change" in one else one["source"]
        name, scored = one["name"].replace("_", " "), one.get("points", 2)
        rows.append(f"| {one['pain']} | {name} | {one['program']} | {file} | {scored} |")
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


def page(path: Path, tables: dict[str, Callable[[], str]]) -> str:
    """The page with its tables as of now, each between two marks of its name."""
    text = path.read_text(encoding="utf-8")
    for name, make in tables.items():
        begin, end = f"<!-- {name}: scripts/make_checks.py -->\n", f"<!-- end of {name} -->\n"
        before, found, rest = text.partition(begin)
        assert found, f"{path.name} has no table {name}"
        text = before + begin + make() + end + rest.partition(end)[2]
    return text


PAGES: dict[Path, dict[str, Callable[[], str]]] = {
    GUIDE: {"checks": table, "pains": pains},
    CORPUS: {"sets": sets, "bugs": bugs, "chips": chips},
}


def main() -> int:
    """Write the pages, or with --check compare them."""
    made = {path: page(path, tables) for path, tables in PAGES.items()}
    if "--check" in sys.argv:
        return int(any(path.read_text(encoding="utf-8") != text for path, text in made.items()))
    for path, text in made.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
