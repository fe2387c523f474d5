"""A rule is one line, however long; ruff looks at no line's length in these rooms, so this does."""

import re
from pathlib import Path

import bhemu

RULE = re.compile(r"^_?[A-Z0-9_]+ = ((rules\.)?(access_)?error|condition)\(.*\)  # fmt: skip$")


ROOMS = ("tensix", "riscv", "devices", "noc")


def sources() -> list[Path]:
    """The modules of the rooms that declare rules."""
    return [p for room in ROOMS for p in (Path(bhemu.__file__).parent / room).rglob("*.py")]


def long_lines(text: str) -> list[str]:
    """Lines of a source that are too long and no rule."""
    return [line for line in text.splitlines() if len(line) > 100 and not RULE.match(line)]


def test_only_rules_are_longer_than_100_columns() -> None:
    found = {
        str(path): lines
        for path in sources()
        if (lines := long_lines(path.read_text(encoding="utf-8")))
    }
    assert found == {}
    assert long_lines("x = " + "1 + " * 40 + "1") != []


def test_rules_do_not_span_lines() -> None:
    opening = re.compile(r"^_?[A-Z0-9_]+ = (rules\.)?(access_)?error\($", re.M)
    assert [p.name for p in sources() if opening.search(p.read_text(encoding="utf-8"))] == []
    assert opening.search("_MODE = error(\n")
