"""What bugs in programs of foreign style showed to be missing: one of each kind, always planted."""

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import foreign_programs
import planted
import pytest
from click.testing import CliRunner

from bhemu.cli import main

BUGS = {bug.name: bug for bug in planted.bugs()}


@pytest.mark.parametrize(
    "name",
    [
        "page counted before it is copied",  # a core's poll counts for what it pushes
        "progress over an argument",
        "each call keeps a copy on the stack",  # code without a line
        "last word of a block never queued",  # a bound that is computed in front of a loop
        "Dst of 16 bits",  # two fields that belong together
        "tiles half as far apart",  # values that are right, at another place
        "accumulation left on",  # a launch leaves a mode that adds to what memory holds
    ],
)
def test_it_is_named_first(name: str, compiler: ModuleType, tmp_path: Path) -> None:
    made = planted.make(BUGS[name], tmp_path / "bug", compiler)
    findings = planted.why(made.folder)
    assert planted.rank(made, findings) == 1, findings[0]["text"]


@pytest.mark.parametrize("name", ["ringpk", "tilz"])
def test_nothing_is_found_in_programs_that_are_right(
    name: str, compiler: ModuleType, tmp_path: Path
) -> None:
    """Polls of two counters; rows of 16 numbers that are read as faces."""
    path = foreign_programs.folder(name, tmp_path / name)
    done = CliRunner().invoke(main, ["run", "-q", "--check", "all", str(path)])
    assert done.exit_code == 0, done.output
    assert planted.why(path) == []


def _checked(path: Path) -> list[dict[str, Any]]:
    done = CliRunner().invoke(main, ["run", "-q", "--json", "--check", "powerup", str(path)])
    found: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    return found


def test_lanes_that_are_on_since_power_up_are_found_where_that_is_asked(
    compiler: ModuleType, tmp_path: Path
) -> None:
    made = planted.make(BUGS["lanes are never switched on"], tmp_path / "bug", compiler)
    assert planted.why(made.folder) == []
    (one,) = _checked(made.folder)
    assert one["text"].startswith("the lanes that are on decide the result")
    assert one["culprit"]["core"] == "trisc1"
    assert one["advice"] == "SFPENCC before this"
    assert _checked(foreign_programs.folder("saxpy", tmp_path / "twin")) == []


def test_counters_of_every_tile_of_a_chip_are_looked_at(
    compiler: ModuleType, tmp_path: Path
) -> None:
    change = ("add1_chip/math.c", "    TTI_SETRWC(0, 0, 0, 0, 0, RWC_ALL);\n", "")
    bug = planted.Bug("counters of power-up", 20, "add1_chip", (change,), "trisc1")
    (one,) = _checked(planted.make(bug, tmp_path / "bug", compiler).folder)
    assert one["text"].startswith("the RWC counters decide the result")
    assert one["culprit"]["core"] == "trisc1"
    assert _checked(planted.make(bug, tmp_path / "twin", compiler, twin=True).folder) == []


def test_counters_that_are_0_since_power_up_are_found(tmp_path: Path) -> None:
    """ringpk with a SETRWC in front of its loop, and without."""
    assert _checked(foreign_programs.folder("ringpk", tmp_path / "twin")) == []
    path = foreign_programs.sources("ringpk", tmp_path / "bug")
    source = path / "trisc1.c"
    before = source.read_text()
    source.write_text(before.replace("ttinsn(0x37000000 | 15);", ""))
    assert source.read_text() != before
    (one,) = _checked(foreign_programs.built("ringpk", path))
    assert one["text"].startswith("the RWC counters decide the result")
    assert (one["culprit"]["core"], one["advice"]) == ("trisc1", "SETRWC before this")
