"""docs/sweep.md names the columns and options that there are."""

import re
from pathlib import Path

from bhemu.sweeps.spec import RESULTS, TEMPLATES, options
from bhemu.sweeps.worker import FOUND, OUTCOMES

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "sweep.md"


def words(text: str) -> set[str]:
    return set(re.findall(r"`(\w+)`", text))


def test_the_page_names_every_option_flag_column_and_outcome() -> None:
    text = PAGE.read_text(encoding="utf-8")
    named = text.partition("These parameters need no flag")[2].partition(". A format")[0]
    assert "`check`" in named and words(named) <= set(options())
    keys = next(line for line in text.splitlines() if line.startswith("| `set`"))
    assert words(keys.split("|")[1]) == set(TEMPLATES)
    table = text.partition("| columns | |")[2].partition("\n\n")[0]
    named = {word for line in table.splitlines()[2:] for word in words(line.split("|")[1])}
    assert named == set(RESULTS)
    outcomes = next(line for line in table.splitlines() if "`outcome`" in line)
    assert set(re.findall(r'"([^"]+)"', outcomes)) == {*OUTCOMES.values(), FOUND}
